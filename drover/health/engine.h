// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "drover/health/health.h"
#include "drover/health/rules/tracker.h"
#include "drover/health/scenario/scenario.h"
#include "drover/health/source.h"
#include "drover/health/thresholds.h"

namespace drover::inline v1::health {

struct EngineOptions {
  double window_s = 0, interval_s = 0;  ///< as in InspectOptions, in seconds
  std::string history = {};
};

/// Looks through `source` for the window, judges, and reports. Throws what the history throws. One thread at a time.
Report run_inspection(Source& source, const Thresholds& limits, const EngineOptions& options);

/// The limits of a situation: the defaults, what its text sets, and `set` over it.
Thresholds limits_of(const Scenario& scenario, const std::vector<std::string>& set);

/// Plays a situation over its own window.
Report play(const Scenario& scenario, const std::vector<std::string>& set = {});

/// Fills in the GPUs and processes of a report from the last look and what is remembered. `first` gives CPU use.
void describe_gpus(Report& report, const Sample& last, const Tracker& tracker, Source& source);
void describe_processes(Report& report, const Sample& first, Sample& last, Source& source);

}  // namespace drover::inline v1::health
