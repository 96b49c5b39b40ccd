// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "drover/cli/watch_line.h"
#include "drover/cli/watch_view.h"
#include "drover/health/report.h"

namespace drover::inline v1::cli {

struct ScreenSize {
  std::size_t columns = 80, rows = 24;
};

/// How the rows of a screen are shared out.
struct Layout {
  std::size_t head = 0;                     ///< rows of head line, verdict, CPU and memory
  bool cores = false;                       ///< among them one for each core's load
  bool note = false;                        ///< a row for what the driver has to say
  std::array<std::size_t, kPanels> rows{};  ///< of each list, without its heading; 0: it is not shown at all
  bool keys = false;                        ///< the last row names the keys
};
Layout layout_of(const health::Report& report, const WatchView& view, ScreenSize size);

/// Exactly `size.rows` lines, each at most `size.columns` wide. `report`: nullptr before the first one. `late_s`: for
/// how long the look in progress has lasted, when that is worth a word; else 0. The view must have been settled on this
/// report and size (settle_view). Pure.
std::vector<Line> draw_screen(const health::Report* report, const WatchView& view, ScreenSize size, double late_s);

/// Settles the view, as draw_screen wants it.
void settle_view(WatchView& view, const health::Report* report, ScreenSize size);

/// The open page, all of its lines. Pure.
std::vector<Line> page_lines(const health::Report& report, const WatchView& view, std::size_t columns);
/// What the keys do. Pure.
std::vector<Line> help_lines(std::size_t columns);

/// What has to be sent so that a terminal that shows `shown` shows `lines`; `shown` is then that. Rows that are as they
/// were are not sent. An empty `shown` stands for a screen of which nothing is known.
std::string screen_update(std::vector<std::string>& shown, const std::vector<Line>& lines, std::size_t columns,
                          bool colour);

}  // namespace drover::inline v1::cli
