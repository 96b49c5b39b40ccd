// SPDX-License-Identifier: Apache-2.0
#include "drover/sync/shared_value.h"

#include "drover/os/fault_point.h"

namespace drover::inline v1::sync {

bool DoubleBuffer::try_load(std::span<std::uint64_t> image) const noexcept {
  constexpr int kTries = 16;
  for (int i = 0; i < kTries; ++i) {
    const std::uint64_t version = version_.load(std::memory_order_acquire);
    const auto from = place(version);
    for (std::size_t word = 0; word < from.size(); ++word) image[word] = from[word].load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);  // pairs with store: who saw a later word sees a later version
    if (version_.load(std::memory_order_relaxed) == version) return true;
  }
  return false;
}

void DoubleBuffer::load(std::span<std::uint64_t> image) const noexcept {
  const auto from = place(version_.load(std::memory_order_acquire));
  for (std::size_t word = 0; word < from.size(); ++word) image[word] = from[word].load(std::memory_order_relaxed);
}

void DoubleBuffer::store(std::span<const std::uint64_t> image) noexcept {
  const std::uint64_t next = version_.load(std::memory_order_relaxed) + 1;
  const auto to = place(next);
  std::atomic_thread_fence(std::memory_order_release);  // the version of before is visible before its place is reused
  for (std::size_t word = 0; word < to.size(); ++word) {
    to[word].store(image[word], std::memory_order_relaxed);
    os::fault_point();
  }
  version_.store(next, std::memory_order_release);
  os::fault_point();
}

}  // namespace drover::inline v1::sync
