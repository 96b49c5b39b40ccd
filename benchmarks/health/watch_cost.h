// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace bench {

/// What `drover inspect --watch` costs while it runs: the program and the process that asks the driver together.
struct WatchCost {
  double cpu_percent = 0;  ///< of one core
  double pss_mib = 0, rss_mib = 0;
  double bytes_a_second = 0;  ///< sent to the terminal
};

/// Runs it at one look a second on a pseudo-terminal of 100 by 40 over the machine below `root`, for `seconds`; the
/// driver is what the environment leads to. Throws Unavailable without the program, std::runtime_error when it shows
/// nothing.
WatchCost watch_cost(const std::string& root, double seconds);

}  // namespace bench
