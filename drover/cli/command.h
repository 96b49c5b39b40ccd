// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <stdexcept>

namespace CLI {
class App;
}

namespace drover::inline v1::cli {

/// What the command line asked for; returns the exit code.
using Action = std::function<int()>;

/// Thrown by an action: the command line itself is wrong. The program ends with kUsage.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Each adds one command with its options to `app`. When the command line chooses it, parsing stores in `action` what is
// to be run. `action` must outlive `app`.
void add_demo(CLI::App& app, Action& action);
void add_demo_montecarlo(CLI::App& demo, Action& action);
void add_demo_matrix(CLI::App& demo, Action& action);
void add_bench(CLI::App& app, Action& action);
void add_inspect(CLI::App& app, Action& action);
void add_status(CLI::App& app, Action& action);

/// Exit codes of every command, beside those that a signal gives.
inline constexpr int kOk = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;

}  // namespace drover::inline v1::cli
