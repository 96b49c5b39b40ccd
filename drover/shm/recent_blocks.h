// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>

namespace drover::inline v1::shm {

class Block;

/// The blocks that were last opened from messages. A worker that gets piece after piece of an array maps it once, with
/// the pages that it has touched, instead of once for each piece. Thread-safe; each process has its own.
class RecentBlocks {
 public:
  static constexpr std::size_t kMost = 8;

  static RecentBlocks& of_this_process();

  /// From now on blocks are kept. Whoever says so calls forget_older or forget from time to time.
  void start() noexcept;
  void add(const std::shared_ptr<Block>& block) noexcept;
  bool empty() const noexcept { return !any_.load(std::memory_order_relaxed); }
  /// Lets go of all when none was added for so long.
  void forget_older(std::chrono::duration<double> age) noexcept;
  void forget() noexcept;

 private:
  mutable std::mutex mutex_;
  bool started_ = false;
  std::atomic<bool> any_{false};
  std::chrono::steady_clock::time_point last_;
  std::array<std::shared_ptr<Block>, kMost> blocks_;  ///< the latest first
};

}  // namespace drover::inline v1::shm
