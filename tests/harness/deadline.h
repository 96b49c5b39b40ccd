// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <concepts>
#include <thread>

namespace drover_test {

/// True as soon as `predicate()` is true; false when it is still not true after `limit`. For what another process does,
/// where no event can be waited for. Looks every 2 ms, and once more when the time is over.
template <std::predicate Predicate>
[[nodiscard]] bool eventually(std::chrono::duration<double> limit, Predicate predicate) {
  const auto end = std::chrono::steady_clock::now() + limit;
  for (;;) {
    if (predicate()) return true;
    if (std::chrono::steady_clock::now() >= end) return predicate();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace drover_test
