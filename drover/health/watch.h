// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "drover/health/engine.h"
#include "drover/health/history.h"
#include "drover/health/rules/tracker.h"
#include "drover/health/source.h"
#include "drover/health/thresholds.h"

namespace drover::inline v1::health {

struct WatchOptions {
  double interval_s = 1;
  std::string history = {};
  double played_s = 0;  ///< of a situation: what is played before the first report
};

/// Looks that go on: what is remembered adds up from report to report, so that the rules which need time come to judge
/// while one watches. CPU use and GPU use are those since the look before, not means over all. One thread at a time.
class Watch {
 public:
  /// This machine, or a situation: its window is played at once, and from there on each look is an interval later. The
  /// window of `options` must be 0, an interval of 0 means 1 s. Throws InvalidArgument, and what the history throws.
  explicit Watch(const InspectOptions& options);
  Watch(std::unique_ptr<Source> source, const Thresholds& limits, const WatchOptions& options);

  /// The next report. Blocks until `interval` has passed since the look before (the first time: 0.2 s, for two looks),
  /// and at most the driver's deadline longer. The history is written at the first look and then twice a minute; when
  /// that fails, it is a finding of this report and of those that follow, until it works.
  Report look();

  /// Writes the history, if there is one and something was seen. Throws std::system_error.
  void save();

  double interval() const noexcept { return options_.interval_s; }

 private:
  void begin();
  void add(const Sample& sample);
  bool looks_at_threads();
  HolderScan holders(Sample& sample);
  void try_to_save();
  void forget_the_ended(const Sample& last);

  const std::unique_ptr<Source> source_;
  const Thresholds limits_;
  const WatchOptions options_;
  const bool container_;
  Tracker tracker_;
  GpuSeries series_;
  std::optional<History> history_;
  std::optional<Sample> before_;
  double begun_at_ = 0, due_ = 0, saved_at_ = 0;
  int count_ = 0;
  std::string unsaved_;  ///< why the history could not be written the last time
  HolderScan holders_;   ///< of holders_at_; dear, so not made anew at each look
  double holders_at_ = 0;
  std::map<int, std::uint64_t> holder_starts_;  ///< by pid, start ticks: a number may be used again meanwhile
};

}  // namespace drover::inline v1::health
