#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: html_page_test.py PATH_OF_DROVER FOLDER_OF_THE_FALSE_DRIVER: `drover inspect --html` in a real browser.
With PAGES=FOLDER in the environment, pictures of the pages are left there."""
import base64
import hashlib
import html.parser
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import driver  # noqa: E402
import html_browser  # noqa: E402
import merge_reports  # noqa: E402

fake_folder = sys.argv.pop(2)
SIZES = ((360, 740), (1280, 800))
EVIL = ["</script><img src=x onerror=window.owned=1>", "<script>window.owned=2</script>", "\"'><svg onload=window.owned=3>",
        "</style><style>*{display:none}</style>", "--><!--", "\x1b]0;t\x07\x1b[2J", "\u2028window.owned=4//", "\u202egpj", "&lt;b&gt;", "a" * 3000]
# Of every element with text of its own: the contrast with what lies behind it (WCAG 2).
CONTRAST = """
const rgb = (text) => { const n = text.match(/[\\d.]+/g).map(Number); return n.length < 4 ? [...n, 1] : n; };
const luminance = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
  .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
const behind = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c[3] === 1) return c; }
  return matchMedia("(prefers-color-scheme: dark)").matches ? [0, 0, 0] : [255, 255, 255]; };
const result = [];
for (const e of document.querySelectorAll("body *")) {
  if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()) || !e.getClientRects().length) continue;
  const a = luminance(rgb(getComputedStyle(e).color)), b = luminance(behind(e));
  result.push([(Math.max(a, b) + .05) / (Math.min(a, b) + .05), e.tagName + "." + e.className + ": " + e.textContent.slice(0, 40)]);
}
return result;
"""


class Tags(html.parser.HTMLParser):
    """What an HTML parser finds; raises for nothing, so the lists are what is asserted."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.scripts, self.styles, self.inside = set(), [], [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.attributes += [(tag, name, value) for name, value in attributes]
        self.inside = (tag, dict(attributes).get("type")) if tag in ("script", "style") else None

    def handle_data(self, data):
        if self.inside:
            (self.styles if self.inside[0] == "style" else self.scripts).append((self.inside[1], data))

    def handle_endtag(self, _):
        self.inside = None


class Page(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="page-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.path = self.folder / "page.html"

    def demo(self, name):
        result = driver.run("inspect", "--demo", name, "--html", str(self.path))
        self.assertEqual(result.stderr, "")
        return self.path.read_text(encoding="utf-8")

    def merged(self):
        reports = merge_reports.cluster(driver.program)
        for gpu, evil in zip(reports[0]["gpus"], EVIL):
            gpu["name"] = gpu["processes"][0]["user"] = evil
        for report, evil in zip(reports, EVIL):
            report["gpus"][1]["processes"][0]["command"] = report["gpus"][1]["processes"][0]["job"] = evil
            report["findings"][0]["because"] = report["warnings"] = report["limits"] = [evil]
            report["cpu"]["model"] = evil
        reports[3]["node"] = EVIL[0]
        (self.folder / "all.json").write_text("\n".join(map(json.dumps, reports)) + "\nno report\n")
        result = driver.run("inspect", "merge", str(self.folder / "all.json"), "--html", str(self.path))
        self.assertEqual((result.stderr, result.returncode), ("", 3))
        return self.path.read_text(encoding="utf-8")

    def evil_machine(self):
        """This machine, with a process on a false GPU whose command line is hostile."""
        process = subprocess.Popen(["/bin/sh", "-c", "read line", *EVIL], stdin=subprocess.PIPE)
        self.addCleanup(lambda: (process.stdin.close(), process.wait()))
        (self.folder / "situation").write_text(f"gpu 0 name=\"<b>GPU</b>\" power=100\non 0 {process.pid} vram=3 sm=50\n")
        environment = {**os.environ, "LD_LIBRARY_PATH": fake_folder, "DROVER_FAKE_NVML": str(self.folder / "situation")}
        result = driver.run("inspect", "--html", str(self.path), env=environment)
        self.assertIn(result.returncode, (0, 1, 3))
        self.assertIn("onerror", self.path.read_text(encoding="utf-8"))

    def check(self, browser, name):
        """Nothing is wrong with the page that is open."""
        self.assertEqual(browser.log("browser"), [])
        self.assertEqual([u for u in browser.requests() if not u.startswith("file://")], [])
        self.assertEqual(browser.script("return performance.getEntriesByType('resource').length"), 0)
        self.assertIsNone(browser.script("return window.owned ?? null"))
        self.assertEqual(browser.script("return document.querySelectorAll('img, iframe, link, object').length"), 0)
        width, inner = browser.script("return [document.documentElement.scrollWidth, innerWidth]")
        self.assertLessEqual(width, inner, name)
        low = [entry for entry in browser.script(CONTRAST) if entry[0] < 4.5]
        self.assertEqual(low, [], name)
        self.assertGreater(browser.script("return document.querySelector('main').innerText.length"), 100)
        if "PAGES" in os.environ:
            browser.screenshot(pathlib.Path(os.environ["PAGES"]) / f"{name}.png")

    def test_pages_in_all_windows(self):
        if not html_browser.DRIVER:
            self.skipTest("no chromedriver")
        pages = {"one": lambda: self.demo("spinning-odd-rank-out"), "lost": lambda: self.demo("gpu-lost"),
                 "no-gpu": lambda: self.demo("no-gpu"), "many": self.merged, "evil": self.evil_machine}
        for width, height in SIZES:
            for dark in (False, True):
                with html_browser.Browser(width, height, dark) as browser:
                    for name, make in pages.items():
                        if (width < 1000) == dark and name != "one":
                            continue  # each page in one window of each kind: it is a matter of a minute
                        with self.subTest(page=name, width=width, dark=dark):
                            make()
                            browser.open(self.path)
                            self.assertEqual(browser.script("return matchMedia('(prefers-color-scheme: dark)').matches"), dark)
                            self.check(browser, f"{name}-{width}{'-dark' if dark else ''}")
                            browser.script("for (const d of document.querySelectorAll('details')) d.open = true")
                            self.check(browser, f"{name}-{width}{'-dark' if dark else ''}-open")

    def test_by_keyboard(self):
        if not html_browser.DRIVER:
            self.skipTest("no chromedriver")
        tab, enter = "\ue004", "\ue007"
        focus = "return document.activeElement.closest(arguments[0]) !== null"
        self.demo("spinning-odd-rank-out")
        with html_browser.Browser(1280, 800) as browser:
            browser.open(self.path)
            for _ in range(60):
                browser.keys(tab)
                if browser.script("const d = document.activeElement.closest('details.finding'); return d !== null && !d.open"):
                    break
            else:
                self.fail("no closed finding is reached by Tab")
            browser.keys(enter)
            self.assertTrue(browser.script("return document.activeElement.closest('details.finding').open"))
            for _ in range(100):
                browser.keys(tab)
                if browser.script(focus, "#processes th:nth-child(2) button"):
                    break
            else:
                self.fail("no button that sorts is reached by Tab")
            pids = "return [...document.querySelectorAll('#processes tbody tr')].map(r => Number(r.cells[1].innerText))"
            order = "return document.activeElement.closest('th').ariaSort"
            self.assertEqual(browser.script(order), "none")
            browser.keys(enter)
            self.assertEqual((browser.script(order), browser.script(pids)), ("descending", [4003, 4002, 4001, 4000]))
            browser.keys(enter)
            self.assertEqual((browser.script(order), browser.script(pids)), ("ascending", [4000, 4001, 4002, 4003]))

    def test_without_a_script(self):
        if not html_browser.DRIVER:
            self.skipTest("no chromedriver")
        self.demo("spinning-odd-rank-out")
        with html_browser.Browser(1280, 800, script=False) as browser:
            browser.open(self.path)
            self.assertEqual(browser.script("return document.querySelectorAll('th button').length"), 0)
            text = browser.script("return document.body.innerText")
            for part in ("SPINNING, NO PROGRESS", "because", "4003", "user1000", "Example CPU", "100 %"):
                self.assertIn(part, text)

    def test_the_policy_and_what_is_in_the_page(self):
        for make in (lambda: self.demo("spinning-odd-rank-out"), self.merged):
            text = make()
            page = Tags(text)
            policy = next(value for tag, name, value in page.attributes if tag == "meta" and name == "content" and "default-src" in value)
            self.assertIn("default-src 'none'", policy)
            self.assertNotIn("unsafe", policy)
            self.assertNotIn("*", policy)
            script = [data for kind, data in page.scripts if kind is None]
            self.assertEqual((len(script), len(page.styles)), (1, 1))
            for kind, content in (("script", script[0]), ("style", page.styles[0][1])):
                digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
                self.assertIn(f"{kind}-src 'sha256-{digest}'", policy, f"the hash of the {kind} in report_html_assets.cc")
            self.assertFalse(page.tags & {"img", "iframe", "link", "object", "b" if "<b>GPU" in text else "embed"})
            self.assertEqual([a for a in page.attributes if a[1].startswith("on") or a[1] in ("src", "style")], [])
            self.assertNotRegex(text, r"https?://")
            self.assertNotRegex(text.replace("\n", ""), "[\x00-\x1f\x7f\u2028\u202e]")

    def test_the_data_are_the_json_of_the_report(self):
        page = Tags(self.demo("spinning-odd-rank-out"))
        data = json.loads(next(data for kind, data in page.scripts if kind == "application/json"))
        self.assertEqual(data, json.loads(driver.run("inspect", "--demo", "spinning-odd-rank-out", "--json").stdout))
        data = json.loads(next(data for kind, data in Tags(self.merged()).scripts if kind == "application/json"))
        self.assertEqual(data["schema"], "drover.inspect.merged")

    def test_every_demo_has_a_page(self):
        for line in driver.run("inspect", "--demo", "list").stdout.splitlines():
            if line.startswith(" "):
                continue
            page = Tags(self.demo(line.split()[0]))
            self.assertIn("h1", page.tags)

    def test_lines_from_the_history(self):
        (self.folder / "situation").write_text("gpu 0 power=100 util=30\non 0 1 vram=3\n")
        environment = {**os.environ, "LD_LIBRARY_PATH": fake_folder, "DROVER_FAKE_NVML": str(self.folder / "situation")}
        for _ in range(3):
            driver.run("inspect", "--window", "1.2s", "--interval", "0.6s", "--history", str(self.folder / "h"),
                       "--html", str(self.path), env=environment)
        self.assertGreaterEqual((self.folder / "h").read_text().count("\npoint "), 3)
        text = self.path.read_text(encoding="utf-8")
        self.assertEqual(text.count("<polyline"), 3)
        self.assertTrue(re.search(r"<title>busy over [0-9.]+ s: from \d+ % to \d+ %, last \d+ %</title>", text))

    def test_the_file_is_private_and_replaced_in_one_step(self):
        self.demo("idle-job")
        self.assertEqual(self.path.stat().st_mode & 0o777, 0o600)
        self.assertEqual(os.listdir(self.folder), ["page.html"])
        before = self.path.read_text(encoding="utf-8")
        for point in range(100):
            result = driver.run("inspect", "--demo", "gpu-lost", "--html", str(self.path), env={**os.environ, "DROVER_FAULT": f"parent:{point}"})
            self.assertTrue(self.path.read_text(encoding="utf-8") == before or result.returncode >= 0 or
                            self.path.read_text(encoding="utf-8").endswith("</html>\n"))
            if result.returncode >= 0:
                break
        self.assertNotEqual(self.path.read_text(encoding="utf-8"), before)

    def test_what_cannot_be_written(self):
        (self.folder / "pipe").mkdir()
        for path, text in (("/nonexistent/page.html", "No such file"), (str(self.folder / "pipe"), "no regular file"), ("/dev/null", "no regular file")):
            result = driver.run("inspect", "--demo", "idle-job", "--html", path)
            early = text != "No such file"  # what cannot be replaced is refused before the look; else the report comes first
            self.assertEqual(result.returncode, 2 if early else 3)
            self.assertEqual("IDLE" in result.stdout, not early)
            self.assertIn(text, result.stderr)

    def test_printed_instead(self):
        result = driver.run("inspect", "--demo", "idle-job", "--html", "-")
        self.assertEqual(result.returncode, 1)
        self.assertTrue(result.stdout.startswith("<!DOCTYPE html>") and result.stdout.endswith("</html>\n"))


if __name__ == "__main__":
    driver.main()
