// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <atomic>
#include <string>

namespace drover::test {

/// A name for a block that no other test has, now or in another run.
inline std::string unique_name() {
  static std::atomic<int> number = 0;
  return "drover_test_" + std::to_string(getpid()) + "_" + std::to_string(number++);
}

}  // namespace drover::test
