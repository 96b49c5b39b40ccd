// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "drover/cli/watch_keys.h"
#include "drover/health/report.h"

namespace drover::inline v1::cli {

enum class Sort { kGpu, kMemory, kCpu, kAge, kPid };

/// A process with all that it does on GPUs. Refers to its report.
struct ProcessRow {
  const health::ProcessReport* process = nullptr;
  std::vector<const health::GpuReport*> gpus;
  std::optional<std::uint64_t> memory;  ///< on all GPUs
  std::optional<double> cores;          ///< 1: one whole GPU
};

/// Those on GPUs and the busiest, each once. What has no value comes last, whichever way it is sorted. Pure.
std::vector<ProcessRow> process_rows(const health::Report& report, Sort sort, bool reversed);

/// The worst finding about this GPU or one of its processes, or about this process; nullptr: there is none. Pure.
const health::Finding* worst_finding(const health::Report& report, const health::GpuReport& gpu);
const health::Finding* worst_finding(const health::Report& report, int pid);

enum class Panel { kGpus, kFindings, kProcesses };
inline constexpr std::size_t kPanels = 3;
enum class Page { kLists, kDetail, kHelp };

/// What the user has made of the screen: which thing is selected, which page is open, how the processes are sorted. The
/// selection stays on its thing when the next report puts that elsewhere. One thread at a time.
class WatchView {
 public:
  /// Whether the program is to end. `report` may be nullptr: there is none yet.
  bool press(const KeyPress& key, const health::Report* report);

  /// A report has come, or the window has changed: finds the selected thing again, and moves what is shown so that it
  /// is in sight. `rows`: how many of each list the screen has room for; `page_lines` and `page_rows`: lines of the
  /// open page, and how many of them there is room for.
  void settle(const health::Report& report, const std::array<std::size_t, kPanels>& rows);
  void settle_page(std::size_t page_lines, std::size_t page_rows);

  Page page() const noexcept { return page_; }
  Panel panel() const noexcept { return panel_; }
  Sort sort() const noexcept { return sort_; }
  bool reversed() const noexcept { return reversed_; }
  /// Of the list `panel`: the selected thing if it is in there, and the first one that is shown.
  std::optional<std::size_t> selected(Panel panel) const noexcept;
  std::size_t first(Panel panel) const noexcept { return first_[static_cast<std::size_t>(panel)]; }
  /// First line of the open page that is shown.
  std::size_t page_first() const noexcept { return page_first_; }
  /// The thing whose page is open, or would be; empty: there is nothing.
  const std::string& key() const noexcept { return key_; }

 private:
  bool press_on_page(const KeyPress& key);
  bool press_on_lists(const KeyPress& key, const health::Report* report);
  bool press_character(char character);
  void move(std::ptrdiff_t by, const health::Report& report);
  void change_panel(int by, const health::Report& report);
  void select(Panel panel, std::size_t index, const health::Report& report);
  void sort_by(Sort sort);

  Page page_ = Page::kLists;
  Panel panel_ = Panel::kFindings;
  std::string key_;
  bool chosen_ = false;  ///< by a key; until then the worst finding is selected
  std::size_t index_ = 0;
  std::array<std::size_t, kPanels> first_{}, rows_{};
  std::size_t page_first_ = 0, page_rows_ = 1;
  Sort sort_ = Sort::kGpu;
  bool reversed_ = false;
};

/// The keys of the things in a list, in the order in which they are shown. Pure.
std::vector<std::string> keys_of(const health::Report& report, Panel panel, Sort sort, bool reversed);
std::string key_of(const health::Finding& finding);
std::string key_of(const health::GpuReport& gpu);
std::string key_of(const health::ProcessReport& process);

}  // namespace drover::inline v1::cli
