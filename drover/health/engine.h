// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

#include "drover/health/health.h"
#include "drover/health/rules/tracker.h"
#include "drover/health/scenario/scenario.h"
#include "drover/health/source.h"
#include "drover/health/thresholds.h"

namespace drover::inline v1::health {

/// What a look at a machine has open at once, with room: the driver's helper, folders of processes, a file. With fewer,
/// what cannot be opened would look as if it were not there.
inline constexpr std::size_t kDescriptors = 32;

struct EngineOptions {
  double window_s = 0, interval_s = 0;  ///< as in InspectOptions, in seconds
  std::string history = {};
};

/// Looks through `source` for the window, judges, and reports. Throws what the history throws. One thread at a time.
Report run_inspection(Source& source, const Thresholds& limits, const EngineOptions& options);

/// What a report is made of, beside what the tracker remembers.
struct Looks {
  const Sample& first;  ///< CPU use is what happened between this and `last`
  Sample& last;         ///< the tracker has it already
  int count = 0;
  double window_s = 0;                              ///< from the first look of all
  bool once = true;                                 ///< a single look
  std::size_t most_busy = 5;                        ///< processes that are listed for their CPU use alone
  std::function<HolderScan(Sample&)> holders = {};  ///< asked when somebody holds memory that nobody accounts for
};
/// Judges, and reports.
Report conclude(Source& source, const Thresholds& limits, Tracker& tracker, const Looks& looks);

/// Throws InvalidArgument for times that cannot mean anything, and for a threshold that has an option of its own.
void check(const InspectOptions& options);
/// The same for what is no live view: also times that do not go together.
void check_inspection(const InspectOptions& options);
/// The limits of an inspection of a machine: the defaults, `set`, and the deadline. Throws InvalidArgument.
Thresholds limits_of(const InspectOptions& options);
/// Says in a report that the history could not be written.
void add_unsaved(Report& report, const std::string& why);
/// A shipped situation by name; throws InvalidArgument when there is none.
Scenario demo_scenario(const std::string& name);
/// The limits of a situation: the defaults, what its text sets, and `set` over it.
Thresholds limits_of(const Scenario& scenario, const std::vector<std::string>& set);

/// Plays a situation over its own window.
Report play(const Scenario& scenario, const std::vector<std::string>& set = {});

/// Fills in the GPUs and processes of a report from the last look and what is remembered. `first` gives CPU use.
void describe_gpus(Report& report, const Sample& last, const Tracker& tracker, Source& source);
void describe_processes(Report& report, const Sample& first, Sample& last, Source& source, std::size_t most_busy);

/// Which node this is, and which rank of which job the inspection itself is, by its own environment (NAME=value). Pure.
void describe_own_place(Report& report, const std::vector<std::string>& environment);

}  // namespace drover::inline v1::health
