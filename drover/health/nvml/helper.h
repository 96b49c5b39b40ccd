// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

/// The process that calls the driver. A driver that is ill keeps its caller in uninterruptible sleep, where not even
/// SIGKILL ends it: whoever called it could then not exit, and its shell would wait for ever. So nobody does it but
/// this process, which has no other descriptor than its two pipe ends and which nobody waits for.
namespace drover::inline v1::health::nvml {

/// The environment variable that makes this program's image act as the helper before its main(): its stdin are requests
/// (a byte each: the time in which to answer, in tenths of a second), its stdout are messages. It ends when stdin does.
inline constexpr const char* kHelperVariable = "DROVER_NVML_HELPER";
/// What the helper calls itself, so that one which is stuck is found by later runs.
inline constexpr const char* kHelperName = "drover-nvml";

/// This process's environment with the variable set.
std::vector<std::string> helper_environment();

}  // namespace drover::inline v1::health::nvml
