// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <utility>
#include <vector>

namespace drover::inline v1::wire {

/// What is to be done for the handles in a message once it is known what has become of the message. One thread at a
/// time.
class Steps {
 public:
  /// A step must not throw. Throws std::bad_alloc; then it is not added.
  void add(std::function<void()> step) { steps_.push_back(std::move(step)); }
  /// Each once, in their order.
  void run() noexcept {
    for (const auto& step : steps_) step();
    clear();
  }
  void clear() noexcept { steps_.clear(); }

 private:
  std::vector<std::function<void()>> steps_;
};

}  // namespace drover::inline v1::wire
