// SPDX-License-Identifier: Apache-2.0
#include "drover/health/report_html_parts.h"

namespace drover::inline v1::health::html {

// After a change take the new hash from the failing test (tests/health/html_page_test.py).
const std::string_view kStyleHash = "sha256-/Tp2Y+uXLxUeKx6QOgCtRXeE2oNirKKIU+zgjnIfCWI=";
const std::string_view kScriptHash = "sha256-0kJjXjmuZbESpiA4eI+Y3DX82+ggRLt9jpiQEFhqIBM=";

const std::string_view kStyle = R"css(:root {
  --page: #fbfaf7; --card: #ffffff; --text: #1d1f22; --soft: #565b61; --line: #dedbd3; --link: #0b4f8a;
  --critical: #a3123a; --on-critical: #ffffff; --warning: #8a4700; --on-warning: #ffffff;
  --unknown: #5a3a90; --on-unknown: #ffffff; --note: #e4e6ea; --on-note: #2f3338; --ok: #1a6647; --on-ok: #ffffff;
  --h0: #edf2f7; --h1: #cfdff0; --h2: #a5c6e6; --h3: #356fa8; --h4: #1f5389; --h5: #0c3866;
  --on-low: #16202b; --on-high: #ffffff; --spark: #1f5f9e;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #15171a; --card: #1d2024; --text: #e6e7e9; --soft: #a9aeb5; --line: #33373d; --link: #8cc2ff;
    --critical: #ff8fa6; --on-critical: #2c0010; --warning: #f3b65c; --on-warning: #2a1700;
    --unknown: #c8abff; --on-unknown: #1e0b3e; --note: #353a41; --on-note: #e1e4e8; --ok: #7ed3a9; --on-ok: #002112;
    --h0: #22272e; --h1: #26384d; --h2: #2b4a6d; --h3: #6ea9e2; --h4: #93c3f1; --h5: #bcdcfa;
    --on-low: #f0f3f6; --on-high: #0d1a28; --spark: #7db8f0;
  }
}
* { box-sizing: border-box; }
html { font: 16px/1.5 system-ui, sans-serif; color: var(--text); background: var(--page); }
body { max-width: 76rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1, h2, h3, p, dl, ul, ol { margin: 0; }
h1 { font-size: 1.75rem; line-height: 1.2; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin-bottom: .6rem; }
h3 { font-size: .95rem; margin: 1rem 0 .4rem; }
a { color: var(--link); }
code { font: .875em/1.5 ui-monospace, monospace; overflow-wrap: anywhere; }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; border-radius: 3px; }
.brand, .hint, .who, .none, dt, .cell .gpu { color: var(--soft); }
.brand { font-size: .85rem; letter-spacing: .04em; }
.hint { font-size: .9rem; margin-bottom: .5rem; }
.verdict { margin-top: .75rem; font-size: 1.05rem; overflow-wrap: anywhere; }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1.1rem; list-style: none; padding: 1rem 0 0; }
section { margin-top: 2.25rem; }
.badge { display: inline-block; padding: .05rem .45rem; border-radius: .3rem; font-size: .75rem; font-weight: 700; letter-spacing: .03em; }
.s-critical.badge { background: var(--critical); color: var(--on-critical); }
.s-warning.badge { background: var(--warning); color: var(--on-warning); }
.s-unknown.badge { background: var(--unknown); color: var(--on-unknown); }
.s-info.badge { background: var(--note); color: var(--on-note); }
.s-ok.badge { background: var(--ok); color: var(--on-ok); }
details { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; margin-bottom: .5rem; }
summary { cursor: pointer; padding: .55rem .8rem; overflow-wrap: anywhere; }
.finding { border-left-width: 5px; }
.finding.s-critical { border-left-color: var(--critical); }
.finding.s-warning { border-left-color: var(--warning); }
.finding.s-unknown { border-left-color: var(--unknown); }
.more { margin-left: 5px; }
.more[open] { padding: 0 .6rem .2rem; }
.more > summary { color: var(--soft); }
.finding dl { display: grid; grid-template-columns: 7rem 1fr; gap: .5rem 1rem; padding: .3rem 1rem 1rem; }
dd { margin: 0; overflow-wrap: anywhere; min-width: 0; }
dd ul, dd ol { padding-left: 1.2rem; }
.who { font-size: .9rem; }
.node { display: grid; grid-template-columns: 9rem 1fr; gap: .25rem 1rem; align-items: start; padding: .35rem 0; }
.node h3 { margin: .3rem 0 0; overflow-wrap: anywhere; }
.node .problem { overflow-wrap: anywhere; padding-top: .3rem; }
.cells { display: grid; grid-template-columns: repeat(auto-fill, minmax(7rem, 1fr)); gap: .35rem; list-style: none; padding: 0; }
.cell { display: flex; flex-direction: column; align-items: flex-start; padding: .35rem .5rem; border-radius: .35rem; font-size: .8rem; line-height: 1.35; overflow-wrap: anywhere; }
.cell b { font-size: 1.1rem; }
.cell .badge { margin-top: .3rem; }
.h0 { background: var(--h0); } .h1 { background: var(--h1); } .h2 { background: var(--h2); }
.h3 { background: var(--h3); } .h4 { background: var(--h4); } .h5 { background: var(--h5); }
.h0, .h1, .h2, .h0 .gpu, .h1 .gpu, .h2 .gpu { color: var(--on-low); }
.h3, .h4, .h5, .h3 .gpu, .h4 .gpu, .h5 .gpu { color: var(--on-high); }
.hx { border: 2px dashed var(--soft); }
.flagged { outline: 3px solid var(--warning); outline-offset: -1px; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; background: var(--card); border: 1px solid var(--line); }
th, td { padding: .4rem .6rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
th { font-weight: 600; }
th button { font: inherit; color: inherit; background: none; border: 0; padding: 0; cursor: pointer; text-align: left; text-decoration: underline dotted; text-underline-offset: .25em; }
th[aria-sort=ascending] button::after { content: " \25B2"; }
th[aria-sort=descending] button::after { content: " \25BC"; }
.n { font-variant-numeric: tabular-nums; white-space: nowrap; }
.text, .command { overflow-wrap: anywhere; }
.command { font: .85em/1.45 ui-monospace, monospace; }
.spark { display: block; margin-top: .15rem; background: var(--h0); border-radius: 2px; }
.spark polyline { fill: none; stroke: var(--spark); stroke-width: 1.5; vector-effect: non-scaling-stroke; }
.limits { columns: 16rem; list-style: none; padding: .2rem 1rem 1rem; }
@media (max-width: 60rem) {
  table, tbody, tr, td { display: block; }
  table { background: none; border: 0; }
  caption { display: block; }
  thead { display: block; }
  thead tr { display: flex; flex-wrap: wrap; gap: .1rem .9rem; padding-bottom: .5rem; }
  th { padding: .1rem 0; border: 0; }
  tbody tr { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; margin-bottom: .5rem; padding: .4rem .7rem; }
  td { display: grid; grid-template-columns: 7rem 1fr; gap: .6rem; padding: .15rem 0; border: 0; white-space: normal; }
  td.line { display: block; }
  td.line::before { display: inline-block; width: 7.6rem; }
  td.line .spark { margin-left: 7.6rem; }
  td.line br { display: none; }
  td::before { content: attr(data-label); color: var(--soft); font: .85rem/1.5 system-ui, sans-serif; }
  .node { grid-template-columns: 1fr; }
}
@media (max-width: 30rem) {
  .finding dl { grid-template-columns: 1fr; gap: .1rem; }
  .finding dd { margin-bottom: .5rem; }
}
@media print { details { break-inside: avoid; } nav { display: none; } }
)css";

const std::string_view kScript = R"js("use strict";
const value = (row, column) => {
  const cell = row.cells[column];
  return cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v);
};
const compare = (a, b) => typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", {numeric: true});
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const rows = [...body.rows], numbers = typeof value(rows[0], column) === "number";
      const now = head.getAttribute("aria-sort");
      const descending = now === "none" ? numbers : now === "ascending";
      for (const other of heads) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      rows.sort((a, b) => (descending ? -1 : 1) * compare(value(a, column), value(b, column)));
      body.append(...rows);
    });
  });
}
)js";

}  // namespace drover::inline v1::health::html
