// SPDX-License-Identifier: Apache-2.0
#include "drover/cli/watch_view.h"

#include <algorithm>
#include <map>
#include <utility>

namespace drover::inline v1::cli {
namespace {

using health::Finding;
using health::GpuReport;
using health::ProcessReport;
using health::Report;

constexpr std::size_t kFar = 1U << 20U;  // a row or line that there is not: the last one is meant

/// What a row is sorted by, the largest first; nullopt comes last.
std::optional<double> weight(const ProcessRow& row, Sort sort) {
  switch (sort) {
    case Sort::kGpu:
      return row.cores;
    case Sort::kMemory:
      return row.memory ? std::optional(static_cast<double>(*row.memory)) : std::nullopt;
    case Sort::kCpu:
      return row.process->cpu_share;
    case Sort::kAge:
      return row.process->age_s;
    case Sort::kPid:
      break;
  }
  return -static_cast<double>(row.process->pid);
}

bool before(const ProcessRow& a, const ProcessRow& b, Sort sort, bool reversed) {
  const auto x = weight(a, sort), y = weight(b, sort);
  if (x.has_value() != y.has_value()) return x.has_value();
  if (x && *x != *y) return reversed ? *x < *y : *x > *y;
  if (a.gpus.empty() != b.gpus.empty()) return b.gpus.empty();
  if (a.memory != b.memory) return a.memory > b.memory;
  return a.process->pid < b.process->pid;
}

std::size_t count_of(const Report& report, Panel panel) {
  switch (panel) {
    case Panel::kGpus:
      return report.gpus.size();
    case Panel::kFindings:
      return report.findings.size();
    case Panel::kProcesses:
      break;
  }
  return process_rows(report, Sort::kPid, false).size();
}

std::size_t index_in(const std::vector<std::string>& keys, const std::string& key) {
  return static_cast<std::size_t>(std::find(keys.begin(), keys.end(), key) - keys.begin());
}

/// The first row to show, so that `at` is in sight and no room is wasted; as near to `first` as that allows.
std::size_t scrolled(std::size_t first, std::optional<std::size_t> at, std::size_t rows, std::size_t count) {
  if (at && *at < first) first = *at;
  if (at && rows > 0 && *at >= first + rows) first = *at + 1 - rows;
  return std::min(first, count > rows ? count - rows : 0);
}

}  // namespace

std::vector<ProcessRow> process_rows(const Report& report, Sort sort, bool reversed) {
  std::map<std::string, ProcessRow> found;
  for (const GpuReport& gpu : report.gpus) {
    for (const health::GpuProcessReport& on : gpu.processes) {
      ProcessRow& row = found[key_of(on.process)];
      row.process = &on.process;
      row.gpus.push_back(&gpu);
      if (on.memory_bytes) row.memory = row.memory.value_or(0) + *on.memory_bytes;
      if (on.cores) row.cores = row.cores.value_or(0) + *on.cores;
    }
  }
  for (const ProcessReport& process : report.busiest) {
    ProcessRow& row = found[key_of(process)];
    if (row.process == nullptr) row.process = &process;
  }
  std::vector<ProcessRow> rows;
  for (auto& [key, row] : found) rows.push_back(std::move(row));
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const ProcessRow& a, const ProcessRow& b) { return before(a, b, sort, reversed); });
  return rows;
}

const Finding* worst_finding(const Report& report, const GpuReport& gpu) {
  for (const Finding& finding : report.findings) {  // the worst come first
    if (finding.gpu == gpu.index) return &finding;
    const bool on_it = std::any_of(gpu.processes.begin(), gpu.processes.end(),
                                   [&](const auto& row) { return finding.pid == row.process.pid; });
    if (on_it && !finding.gpu) return &finding;
  }
  return nullptr;
}

const Finding* worst_finding(const Report& report, int pid) {
  for (const Finding& finding : report.findings) {
    if (finding.pid == pid) return &finding;
  }
  return nullptr;
}

std::string key_of(const Finding& finding) {
  return std::string("finding ") + health::to_text(finding.rule) + " " + std::to_string(finding.gpu.value_or(-1)) +
         " " + std::to_string(finding.pid.value_or(-1)) + " " + finding.verdict;
}

std::string key_of(const GpuReport& gpu) { return "gpu " + std::to_string(gpu.index); }

std::string key_of(const ProcessReport& process) {
  return "process " + std::to_string(process.pid) + " " + std::to_string(process.start_ticks.value_or(0));
}

std::vector<std::string> keys_of(const Report& report, Panel panel, Sort sort, bool reversed) {
  std::vector<std::string> keys;
  if (panel == Panel::kGpus) {
    for (const GpuReport& gpu : report.gpus) keys.push_back(key_of(gpu));
  } else if (panel == Panel::kFindings) {
    for (const Finding& finding : report.findings) keys.push_back(key_of(finding));
  } else {
    for (const ProcessRow& row : process_rows(report, sort, reversed)) keys.push_back(key_of(*row.process));
  }
  return keys;
}

std::optional<std::size_t> WatchView::selected(Panel panel) const noexcept {
  return panel == panel_ && !key_.empty() ? std::optional(index_) : std::nullopt;
}

void WatchView::settle(const Report& report, const std::array<std::size_t, kPanels>& rows) {
  rows_ = rows;
  if (!chosen_ && page_ == Page::kLists) {
    panel_ = !report.findings.empty() ? Panel::kFindings : Panel::kProcesses;
    index_ = 0;
    key_.clear();
  }
  const std::vector<std::string> keys = keys_of(report, panel_, sort_, reversed_);
  const std::size_t at = index_in(keys, key_);
  if (at < keys.size()) {
    index_ = at;
  } else if (page_ == Page::kLists) {  // an open page stays on what it was about
    index_ = std::min(index_, keys.empty() ? 0 : keys.size() - 1);
    key_ = keys.empty() ? std::string() : keys[index_];
  }
  for (std::size_t i = 0; i < kPanels; ++i) {
    const auto panel = static_cast<Panel>(i);
    first_[i] = scrolled(first_[i], selected(panel), rows[i], count_of(report, panel));
  }
}

void WatchView::settle_page(std::size_t page_lines, std::size_t page_rows) {
  page_rows_ = std::max<std::size_t>(page_rows, 1);
  page_first_ = scrolled(page_first_, std::nullopt, page_rows, page_lines);
}

bool WatchView::press(const KeyPress& key, const Report* report) {
  if (key.key == Key::kCharacter && key.character == 'q') return true;
  return page_ == Page::kLists ? press_on_lists(key, report) : press_on_page(key);
}

bool WatchView::press_on_page(const KeyPress& key) {
  const bool help = key.character == 'h' || key.character == '?';
  if (key.key == Key::kEnter || key.key == Key::kEscape || key.key == Key::kBackspace || help) {
    page_ = help && page_ == Page::kDetail ? Page::kHelp : Page::kLists;
    page_first_ = 0;
  } else if (key.key == Key::kDown || key.character == 'j') {
    ++page_first_;
  } else if (key.key == Key::kUp || key.character == 'k') {
    page_first_ -= std::min<std::size_t>(page_first_, 1);
  } else if (key.key == Key::kPageDown || key.character == ' ') {
    page_first_ += page_rows_;
  } else if (key.key == Key::kPageUp) {
    page_first_ -= std::min(page_first_, page_rows_);
  } else if (key.key == Key::kHome) {
    page_first_ = 0;
  } else if (key.key == Key::kEnd) {
    page_first_ = kFar;
  }
  return false;
}

bool WatchView::press_on_lists(const KeyPress& key, const Report* report) {
  if (key.key == Key::kCharacter && press_character(key.character)) return false;
  if (report == nullptr) return false;
  const std::size_t page = std::max<std::size_t>(rows_[static_cast<std::size_t>(panel_)], 1);
  const bool down = key.key == Key::kDown || key.character == 'j', up = key.key == Key::kUp || key.character == 'k';
  if (down || up) {
    move(down ? 1 : -1, *report);
  } else if (key.key == Key::kPageUp) {
    select(panel_, index_ - std::min(index_, page), *report);
  } else if (key.key == Key::kPageDown) {
    select(panel_, index_ + page, *report);
  } else if (key.key == Key::kHome) {
    select(panel_, 0, *report);
  } else if (key.key == Key::kEnd) {
    select(panel_, kFar, *report);
  } else if (key.key == Key::kTab || key.key == Key::kBackTab) {
    change_panel(key.key == Key::kTab ? 1 : -1, *report);
  } else if (key.key == Key::kEnter && !key_.empty()) {
    page_ = Page::kDetail;
    page_first_ = 0;
  }
  return false;
}

bool WatchView::press_character(char character) {
  static constexpr std::pair<char, Sort> kSorts[] = {
      {'u', Sort::kGpu}, {'m', Sort::kMemory}, {'c', Sort::kCpu}, {'a', Sort::kAge}, {'p', Sort::kPid}};
  for (const auto& [key, sort] : kSorts) {
    if (character != key) continue;
    sort_by(sort);
    return true;
  }
  if (character != 'h' && character != '?') return false;
  page_ = Page::kHelp;
  page_first_ = 0;
  return true;
}

void WatchView::sort_by(Sort sort) {
  reversed_ = sort == sort_ && !reversed_;
  sort_ = sort;
  first_[static_cast<std::size_t>(Panel::kProcesses)] = 0;
}

/// Over the edges of the lists: they are one column to the user.
void WatchView::move(std::ptrdiff_t by, const Report& report) {
  const std::size_t count = count_of(report, panel_);
  const bool over = by < 0 ? index_ == 0 : index_ + 1 >= count;
  if (!over) return select(panel_, index_ + static_cast<std::size_t>(by), report);
  for (auto next = static_cast<std::ptrdiff_t>(panel_) + by; next >= 0 && next < std::ptrdiff_t{kPanels}; next += by) {
    const std::size_t others = count_of(report, static_cast<Panel>(next));
    if (others > 0) return select(static_cast<Panel>(next), by < 0 ? others - 1 : 0, report);
  }
}

void WatchView::change_panel(int by, const Report& report) {
  constexpr int kCount = static_cast<int>(kPanels);
  for (int steps = 1; steps <= kCount; ++steps) {
    const auto panel = static_cast<Panel>((static_cast<int>(panel_) + by * steps + 2 * kCount) % kCount);
    if (count_of(report, panel) > 0) return select(panel, first(panel), report);
  }
}

void WatchView::select(Panel panel, std::size_t index, const Report& report) {
  const std::vector<std::string> keys = keys_of(report, panel, sort_, reversed_);
  if (keys.empty()) return;
  panel_ = panel;
  index_ = std::min(index, keys.size() - 1);
  key_ = keys[index_];
  chosen_ = true;
}

}  // namespace drover::inline v1::cli
