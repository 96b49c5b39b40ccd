// SPDX-License-Identifier: Apache-2.0
#include "drover/shm/recent_blocks.h"

#include <algorithm>
#include <utility>

#include "drover/shm/block.h"

namespace drover::inline v1::shm {

RecentBlocks& RecentBlocks::of_this_process() {
  static RecentBlocks& instance = *new RecentBlocks;  // blocks may be opened by what runs after the end of main
  return instance;
}

void RecentBlocks::start() noexcept {
  const std::scoped_lock lock(mutex_);
  started_ = true;
}

void RecentBlocks::add(const std::shared_ptr<Block>& block, bool opened_now) noexcept {
  std::array<Entry, kMost> dropped;  // unmapped without the mutex
  const std::scoped_lock lock(mutex_);
  if (!started_) return;
  auto place = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.block == block; });
  if (place == entries_.end()) {
    if (!opened_now) return;
    dropped[0] = std::exchange(entries_.back(), {block, {}});
    place = entries_.end() - 1;
  }
  place->used = std::chrono::steady_clock::now();
  std::rotate(entries_.begin(), place, place + 1);
  any_ = true;
  std::uint64_t bytes = 0;
  for (std::size_t i = 1; i < kMost && entries_[i].block != nullptr; ++i) {
    bytes += entries_[i].block->size();
    if (bytes > kMostBytes) dropped[i] = std::exchange(entries_[i], {});
  }
}

void RecentBlocks::forget_older(std::chrono::duration<double> age) noexcept {
  std::array<Entry, kMost> dropped;
  const std::scoped_lock lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < kMost; ++i) {
    if (entries_[i].block != nullptr && now - entries_[i].used >= age) dropped[i] = std::exchange(entries_[i], {});
  }
  any_ = entries_.front().block != nullptr;  // the latest is the first
}

}  // namespace drover::inline v1::shm
