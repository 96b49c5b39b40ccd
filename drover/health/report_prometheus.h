// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "drover/health/merge.h"
#include "drover/health/report.h"

namespace drover::inline v1::health {

/// The report in Prometheus' text format (0.0.4), for the textfile collector. Gauges of the machine and of each GPU are
/// always there, as far as they are known; pids are labels of findings only, so that the number of series stays small.
/// Sizes are bytes, shares from 0 to 1. Pure.
std::string to_prometheus(const Report& report);
/// The same of many nodes: each series has a label `node`, and drover_node_up tells the nodes without a report.
std::string to_prometheus(const MergedReport& merged);

}  // namespace drover::inline v1::health
