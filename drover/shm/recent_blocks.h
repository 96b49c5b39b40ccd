// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

namespace drover::inline v1::shm {

class Block;

/// The blocks that were last opened from messages. A worker that gets piece after piece of an array maps it once, with
/// the pages that it has touched, instead of once for each piece. Thread-safe; each process has its own.
class RecentBlocks {
 public:
  static constexpr std::size_t kMost = 8;
  static constexpr std::uint64_t kMostBytes = 256 << 20;  ///< beside the latest

  static RecentBlocks& of_this_process();

  /// From now on blocks are kept. Whoever says so calls forget_older from time to time.
  void start() noexcept;
  /// `opened_now`: else it is only noted as used, if it is kept: what this process holds for other reasons is not.
  void add(const std::shared_ptr<Block>& block, bool opened_now) noexcept;
  bool empty() const noexcept { return !any_.load(std::memory_order_relaxed); }
  /// Lets go of those that were not used for so long.
  void forget_older(std::chrono::duration<double> age) noexcept;

 private:
  struct Entry {
    std::shared_ptr<Block> block;
    std::chrono::steady_clock::time_point used;
  };

  mutable std::mutex mutex_;
  bool started_ = false;
  std::atomic<bool> any_{false};
  std::array<Entry, kMost> entries_;  ///< the latest first, then those without a block
};

}  // namespace drover::inline v1::shm
