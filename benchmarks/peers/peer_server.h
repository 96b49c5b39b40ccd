// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

/// The other side of harness/peer_process.h: what a floor or peer program does.
namespace bench {

/// Runs one workload with its arguments and returns its numbers. Warms up before it measures, verifies what it
/// computed; throws std::exception with the reason when it cannot.
using Workload = std::function<std::vector<double>(const std::vector<std::string>& arguments)>;

/// Answers requests from stdin until it ends: "NAME ARGUMENT..." with "ok NUMBER..." or "error REASON". Returns the
/// exit status.
int serve(const std::map<std::string, Workload>& workloads);

/// The first argument, as a number of tasks.
std::size_t task_count(const std::vector<std::string>& arguments);

/// Throws unless slots[i] == i for all i < count: every task ran, once.
void verify_in_place(const double* slots, std::size_t count);

}  // namespace bench
