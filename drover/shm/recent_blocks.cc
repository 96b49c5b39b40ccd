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

void RecentBlocks::add(const std::shared_ptr<Block>& block) noexcept {
  std::shared_ptr<Block> dropped;  // unmapped without the mutex
  const std::scoped_lock lock(mutex_);
  if (!started_) return;
  last_ = std::chrono::steady_clock::now();
  any_ = true;
  auto place = std::find(blocks_.begin(), blocks_.end(), block);
  if (place == blocks_.end()) {
    dropped = std::exchange(blocks_.back(), block);
    place = blocks_.end() - 1;
  }
  std::rotate(blocks_.begin(), place, place + 1);
}

void RecentBlocks::forget_older(std::chrono::duration<double> age) noexcept {
  {
    const std::scoped_lock lock(mutex_);
    if (std::chrono::steady_clock::now() - last_ < age) return;
  }
  forget();
}

void RecentBlocks::forget() noexcept {
  std::array<std::shared_ptr<Block>, kMost> dropped;
  const std::scoped_lock lock(mutex_);
  dropped.swap(blocks_);
  any_ = false;
}

}  // namespace drover::inline v1::shm
