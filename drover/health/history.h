// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "drover/health/report.h"
#include "drover/health/rules/tracker.h"

namespace drover::inline v1::health {

/// The past of each GPU, by UUID: points of ascending time since boot, at most kSeriesPoints of each.
using GpuSeries = std::map<std::string, std::vector<GpuPoint>>;
inline constexpr std::size_t kSeriesPoints = 120;

/// Adds a look. Points are at least `spacing` seconds apart, but for the last one, which is always the newest look: it
/// is replaced until it is far enough from the one before. The oldest go when there are too many. Pure.
void add_points(GpuSeries& series, const Sample& sample, double spacing);

/// Puts the points into the GPUs of a report; `now` (since boot) is the time of the report. Pure.
void describe_series(Report& report, const GpuSeries& series, double now);

/// A small file in which the looks of repeated runs (cron) add up: for how long each condition has held, and counters
/// to go on from, and a short past of each GPU. Lines of text, docs/inspector.md describes them; it is replaced in one
/// step, so a run that is killed leaves the old one. Of runs that save at the same moment one wins. A file of another
/// boot, or one that makes no sense, is left aside; that of another user is not believed, for it decides verdicts.
class History {
 public:
  /// Reads `path`, if it is there, into `tracker` and `series`. Throws std::system_error for an I/O error, and
  /// InvalidArgument when it is no regular file, or another user's.
  History(std::string path, std::string boot, Tracker& tracker, GpuSeries& series);

  /// Replaces the file. Throws std::system_error.
  void save(const Tracker& tracker, const GpuSeries& series, double now) const;

 private:
  std::string path_, boot_;
};

/// The two directions, for tests. `now` bounds the times: those of the future are nonsense.
std::string history_text(const Tracker& tracker, const std::string& boot, double now, const GpuSeries& series = {});
void read_history(std::string_view text, const std::string& boot, Tracker& tracker, GpuSeries* series = nullptr);

}  // namespace drover::inline v1::health
