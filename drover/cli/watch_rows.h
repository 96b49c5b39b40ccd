// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "drover/cli/watch_line.h"
#include "drover/cli/watch_view.h"
#include "drover/health/report.h"

/// The rows of the live view's lists, and those above them. All pure. Lines may be wider than `columns`: what is too
/// much is not drawn.
namespace drover::inline v1::cli {

struct PanelText {
  Line heading;
  std::vector<Line> rows;  ///< all of them, in the order of keys_of(); "nothing found" when there are none
};
PanelText panel_text(const health::Report& report, const WatchView& view, Panel panel, std::size_t columns);

Line cpu_line(const health::CpuReport& cpu, std::size_t columns);
/// The load of each core by a character: `.` none, `1` to `9` tenths, `#` all. Empty when nothing is known.
Line core_line(const health::CpuReport& cpu, std::size_t columns);
Line memory_line(const health::MemoryReport& memory, std::size_t columns);
/// What the driver, or a source, has to say.
Line note_line(const health::Report& report, std::size_t columns);

}  // namespace drover::inline v1::cli
