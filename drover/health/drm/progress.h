// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>

namespace drover::inline v1::health::drm {

/// What a look is just reading, for those who wait for it. Any thread may read it.
class Progress {
 public:
  static constexpr std::size_t kNone = ~std::size_t{0};

  /// `what`: a constant, which the text "does not answer (in ...)" ends with.
  void at(std::size_t device, const char* what) noexcept {
    what_.store(what, std::memory_order_relaxed);
    device_.store(device, std::memory_order_release);
  }
  std::size_t device() const noexcept { return device_.load(std::memory_order_acquire); }
  const char* what() const noexcept { return what_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::size_t> device_{kNone};
  std::atomic<const char*> what_{"nothing"};
};

}  // namespace drover::inline v1::health::drm
