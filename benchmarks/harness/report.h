// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "benchmarks/harness/figure.h"

namespace bench {

/// Where the figures were taken.
struct Machine {
  std::string cpu, kernel, compiler;
  std::size_t cores = 0;  ///< that this process may use
  double load = 0;        ///< average over the last minute, at the start
};
Machine this_machine();

/// The report that programs read: {"area", "machine", "figures": [...]}, one entry for each (name, peer). What was not
/// measured is null, with a "reason". "goal" is in the unit of what it bounds: the ratio, or the value.
std::string to_json(const std::string& area, const Machine& machine, const std::vector<Entry>& entries);

/// The same for people, in 80 columns.
std::string to_table(const std::string& area, const Machine& machine, const std::vector<Entry>& entries);

}  // namespace bench
