// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "drover/base/duration.h"
#include "drover/health/report.h"

namespace drover::inline v1::health {

struct InspectOptions {
  Duration window{0};  ///< how long to watch; 0: a single look
  /// Between samples; 0: window / 60, from 1 s to 10 s. Not longer than the window. For a single look it is the length
  /// of that, up to 10 s (0: 0.2 s).
  Duration interval{0};
  std::vector<std::string> set = {};  ///< thresholds, as "r8.warn=30m"; r1.call is what `deadline` sets
  std::string history = {};           ///< a file in which looks add up; empty: none
  Duration deadline{5};               ///< for the GPU driver to answer, in each sample
  bool wake = false;                  ///< also wake GPUs that are powered down
  std::string demo = {};              ///< plays this situation instead of looking at the machine
  std::string root = {};              ///< goes before /proc, /sys and /etc, for tests
};

/// Looks at this machine and says who holds its CPUs and GPUs, what is stuck, and why. Reads only: no process is
/// signalled, nothing is changed but the history file. Blocks for the window, and at most `deadline` longer when the
/// GPU driver hangs: the driver is called in a process of its own, started from this program's image, which is left
/// behind if it never comes back. Thread-safe. Throws InvalidArgument for options that cannot mean anything,
/// and for a history that is there and is no regular file, and std::system_error when this process may not open the
/// descriptors that it needs (32 beside those that are open, RLIMIT_NOFILE). What the machine does not tell is not an
/// error but a reason in the report, and neither is a history that cannot be written.
Report inspect(const InspectOptions& options = {});

/// The situations that `demo` can play: name and one line of text each.
struct Demo {
  std::string name, title;
};
std::vector<Demo> demos();

}  // namespace drover::inline v1::health
