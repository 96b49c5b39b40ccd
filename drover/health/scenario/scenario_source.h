// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "drover/health/scenario/scenario.h"
#include "drover/health/source.h"

namespace drover::inline v1::health {

/// Plays a situation: time passes at once, and samples are made from the text, not read from files.
std::unique_ptr<Source> scenario_source(Scenario scenario);

/// The parts from which files and drivers are faked too. Pure.
ProcessBrief brief_of(const Thing& process);
ProcessDetail detail_of(const Thing& process);
std::vector<int> minors_of(const Thing& process);
/// Threads: "tid:state:wchan" in `tasks`, else the process itself.
std::vector<ThreadSample> threads_of(const Thing& process);

}  // namespace drover::inline v1::health
