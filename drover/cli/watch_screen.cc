// SPDX-License-Identifier: Apache-2.0
#include "drover/cli/watch_screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "drover/cli/inspect_text.h"
#include "drover/cli/watch_rows.h"
#include "drover/health/thresholds.h"

namespace drover::inline v1::cli {
namespace {

using health::Report;
using health::Severity;

constexpr std::size_t kRowsForCores = 30;  // of the screen, from which on each core is worth a row in all

Line bottom_line(const WatchView& view, std::size_t columns) {
  static constexpr const char* kLists[] = {
      "q quit  Enter evidence  Tab next list  sort: u GPU m memory c CPU a age p pid  h help",
      "q quit  Enter evidence  Tab list  sort u GPU m mem c CPU a age p pid  h help",
      "q quit  Enter evidence  sort u m c a p  h help", "q quit  h help", "q"};
  static constexpr const char* kPages[] = {"q quit  Enter, Esc back  arrows, PageUp, PageDown move", "q quit  Esc back",
                                           "q"};
  const auto fitting = [&](const auto& texts) {
    for (const char* const text : texts) {
      if (std::string_view(text).size() + 1 <= columns) return Line(std::string(" ") + text, Ink::kFaint);
    }
    return Line("q", Ink::kFaint);
  };
  return view.page() == Page::kLists ? fitting(kLists) : fitting(kPages);
}

Line head_line(const Report* report, ScreenSize size, double late_s) {
  std::string left = " drover inspect";
  std::string right;
  if (report != nullptr) {
    left += "  " + ascii(report->host.empty() ? "this machine" : report->host);
    if (!report->demo.empty()) left += "  DEMO " + ascii(report->demo);
    if (report->container) left += "  (in a container)";
    right = fmt::format("watched {}, {} looks ", health::duration_text(report->window_s), report->samples);
  }
  if (late_s > 0) right = fmt::format("this look has taken {} so far ", short_time(late_s));
  if (left.size() + 1 + right.size() > size.columns) left = shortened(left, size.columns);
  Line line(left);
  if (left.size() + 1 + right.size() <= size.columns) line.to(size.columns - right.size()).add(right);
  return line.reversed();
}

Line verdict_line(const Report& report, std::size_t columns) {
  const Severity severity = severity_of_code(report.exit_code());
  const Ink ink = severity == Severity::kInfo ? Ink::kGood : ink_of(severity);
  return Line(" " + shortened(ascii(report.verdict()), columns > 2 ? columns - 2 : columns), ink);
}

Line page_title(const Report* report, const WatchView& view, std::size_t columns) {
  const std::string& key = view.key();
  const std::string what = view.page() == Page::kHelp   ? "keys"
                           : key.starts_with("gpu")     ? "a GPU"
                           : key.starts_with("finding") ? "evidence"
                                                        : "a process";
  const std::string host = report == nullptr ? "" : ascii(report->host) + ": ";
  return Line(shortened(" drover inspect  " + host + what, columns)).reversed();
}

std::vector<Line> draw_page(const Report* report, const WatchView& view, ScreenSize size) {
  std::vector<Line> lines = {page_title(report, view, size.columns)};
  std::vector<Line> page;
  if (view.page() == Page::kHelp) page = help_lines(size.columns);
  if (view.page() == Page::kDetail && report != nullptr) page = page_lines(*report, view, size.columns);
  const std::size_t room = size.rows > 2 ? size.rows - 2 : 0;
  for (std::size_t i = view.page_first(); i < page.size() && lines.size() <= room; ++i) lines.push_back(page[i]);
  lines.resize(std::max<std::size_t>(size.rows, 1) - (size.rows > 1 ? 1 : 0));
  if (size.rows > 1) {
    Line bottom = bottom_line(view, size.columns);
    const std::size_t last = std::min(view.page_first() + room, page.size());
    const std::string place = fmt::format("{}-{} of {} ", std::min(view.page_first() + 1, last), last, page.size());
    if (page.size() > room && bottom.width() + place.size() + 1 < size.columns)
      bottom.to(size.columns - place.size()).add(place, Ink::kFaint);
    lines.push_back(std::move(bottom));
  }
  return lines;
}

std::vector<Line> waiting_screen(const WatchView& view, ScreenSize size, double late_s) {
  std::vector<Line> lines = {head_line(nullptr, size, late_s)};
  lines.emplace_back();
  lines.emplace_back(" Looking at this machine ...");
  if (late_s > 0) lines.emplace_back(" The GPU driver, or a process, takes long to answer; the CPU part follows.");
  lines.resize(size.rows);
  if (size.rows > 4) lines.back() = bottom_line(view, size.columns);
  return lines;
}

void add_panel(std::vector<Line>& lines, const Report& report, const WatchView& view, const Layout& layout, Panel panel,
               std::size_t columns) {
  const std::size_t rows = layout.rows[static_cast<std::size_t>(panel)];
  if (rows == 0) return;
  const PanelText text = panel_text(report, view, panel, columns);
  Line heading = text.heading;
  const std::size_t first = view.first(panel), last = std::min(first + rows, text.rows.size());
  if (last - std::min(first, last) < text.rows.size()) {
    const std::string place = fmt::format(" {}-{} of {} ", first + 1, last, text.rows.size());
    if (heading.width() + place.size() <= columns) heading.to(columns - place.size()).add(place);
  }
  lines.push_back(heading.reversed());
  for (std::size_t i = 0; i < rows; ++i) {
    Line row = first + i < text.rows.size() ? text.rows[first + i] : Line();
    if (view.selected(panel) == first + i && first + i < text.rows.size()) row.marked();
    lines.push_back(std::move(row));
  }
}

/// A row each in turn, so that no list takes it all; `left` counts down.
void share_out(std::array<std::size_t, kPanels>& rows, const std::array<std::size_t, kPanels>& wanted,
               std::size_t& left) {
  for (bool given = true; given && left > 0;) {
    given = false;
    for (std::size_t i = 0; i < kPanels && left > 0; ++i) {
      if (rows[i] == 0 || rows[i] >= wanted[i]) continue;
      ++rows[i];
      --left;
      given = true;
    }
  }
}

}  // namespace

Layout layout_of(const Report& report, const WatchView& view, ScreenSize size) {
  Layout layout;
  layout.keys = size.rows >= 8;
  layout.head = std::min<std::size_t>(size.rows, size.rows >= 12 ? 4 : size.rows >= 6 ? 2 : 1);
  layout.cores = size.rows >= kRowsForCores && core_line(report.cpu, size.columns).width() > 0;
  layout.head += layout.cores ? 1 : 0;
  layout.note = size.rows >= 14 && !report.warnings.empty();
  const std::size_t used = layout.head + (layout.keys ? 1 : 0) + (layout.note ? 1 : 0);
  std::size_t left = size.rows > used ? size.rows - used : 0;
  const std::array<std::size_t, kPanels> wanted = {
      report.gpus.size(), std::max<std::size_t>(report.findings.size(), 1),
      std::max<std::size_t>(process_rows(report, Sort::kPid, false).size(), 1)};
  // A heading and a row of each, first of the list with the selection, then of what says most.
  for (const Panel panel : {view.panel(), Panel::kFindings, Panel::kGpus, Panel::kProcesses}) {
    const auto i = static_cast<std::size_t>(panel);
    if (layout.rows[i] > 0 || wanted[i] == 0 || left < 2) continue;
    layout.rows[i] = 1;
    left -= 2;
  }
  share_out(layout.rows, wanted, left);
  return layout;
}

void settle_view(WatchView& view, const Report* report, ScreenSize size) {
  if (report != nullptr) {
    const Panel panel = view.panel();
    view.settle(*report, layout_of(*report, view, size).rows);
    if (view.panel() != panel) view.settle(*report, layout_of(*report, view, size).rows);  // which may depend on it
  }
  const std::size_t room = size.rows > 2 ? size.rows - 2 : 0;
  if (view.page() == Page::kHelp) view.settle_page(help_lines(size.columns).size(), room);
  if (view.page() == Page::kDetail && report != nullptr)
    view.settle_page(page_lines(*report, view, size.columns).size(), room);
}

std::vector<Line> draw_screen(const Report* report, const WatchView& view, ScreenSize size, double late_s) {
  if (view.page() != Page::kLists) return draw_page(report, view, size);
  if (report == nullptr) return waiting_screen(view, size, late_s);
  const Layout layout = layout_of(*report, view, size);
  std::vector<Line> lines = {head_line(report, size, late_s)};
  if (layout.head >= 2) lines.push_back(verdict_line(*report, size.columns));
  if (layout.head >= 4) {
    lines.push_back(cpu_line(report->cpu, size.columns));
    if (layout.cores) lines.push_back(core_line(report->cpu, size.columns));
    lines.push_back(memory_line(report->memory, size.columns));
  }
  if (layout.note) lines.push_back(note_line(*report, size.columns));
  add_panel(lines, *report, view, layout, Panel::kGpus, size.columns);
  add_panel(lines, *report, view, layout, Panel::kFindings, size.columns);
  add_panel(lines, *report, view, layout, Panel::kProcesses, size.columns);
  lines.resize(size.rows);
  if (layout.keys) lines.back() = bottom_line(view, size.columns);
  return lines;
}

std::string screen_update(std::vector<std::string>& shown, const std::vector<Line>& lines, std::size_t columns,
                          bool colour) {
  std::string bytes;
  const bool all = shown.size() != lines.size();
  shown.resize(lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::string row = lines[i].drawn(columns, colour);
    if (!all && row == shown[i]) continue;
    bytes += fmt::format("\x1b[{};1H", i + 1) + row;
    shown[i] = std::move(row);
  }
  return bytes;
}

}  // namespace drover::inline v1::cli
