// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/deadline.h"
#include "harness/read_all.h"

namespace drover_test {

/// A mark in the environment of a program, by which it and all that it starts can be found, whoever their parents are.
class Family {
 public:
  Family() : mark_(std::to_string(getpid()) + "-" + std::to_string(++last_)) {}

  /// For Command::environment.
  std::pair<const std::string, std::string> variable() const { return {"DROVER_TEST_FAMILY", mark_}; }

  /// Those that are not zombies.
  std::vector<pid_t> members() const {
    const std::string entry = "DROVER_TEST_FAMILY=" + mark_ + std::string(1, '\0');
    std::vector<pid_t> pids;
    std::error_code error;
    for (std::filesystem::directory_iterator it("/proc", error), end; !error && it != end; it.increment(error)) {
      const std::string name = it->path().filename().string();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      if (read_all(it->path() / "environ").find(entry) != std::string::npos) pids.push_back(std::stoi(name));
    }
    return pids;
  }

  /// Milliseconds until no member is left, counted from now; nothing when some are still there after `limit`.
  std::optional<double> gone_after(std::chrono::duration<double> limit) const {
    const auto begin = std::chrono::steady_clock::now();
    if (!eventually(limit, [this] { return members().empty(); })) return std::nullopt;
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  }

 private:
  inline static int last_ = 0;
  const std::string mark_;
};

}  // namespace drover_test
