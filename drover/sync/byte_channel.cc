// SPDX-License-Identifier: Apache-2.0
#include "drover/sync/byte_channel.h"

#include <algorithm>
#include <chrono>

namespace drover::inline v1::sync {

void Bell::ring_slowly(int count) noexcept {
  std::uint32_t seen = word_.load(std::memory_order_relaxed);
  while ((seen & 1U) != 0) {
    // The word changes, so that who is about to sleep on it does not.
    if (!word_.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel)) continue;
    os::futex_wake(word_, count);
    return;
  }
}

std::size_t ByteChannel::size() const noexcept {
  const Cursor tail = this->tail();  // first: so that head is not behind it
  return std::min(head().items - tail.items, max_items_);
}

void ByteChannel::wake_all() noexcept {
  header_->filled.ring_for_all();
  header_->freed.ring_for_all();
}

void ByteChannel::close() noexcept {
  std::uint32_t open = ChannelHeader::kOpen;
  header_->state.compare_exchange_strong(open, ChannelHeader::kClosing, std::memory_order_acq_rel);
  os::fault_point();
  header_->freed.ring_for_all();  // a producer that streams holds the lock while it sleeps
  constexpr std::chrono::seconds kPatience(1);
  if (!finish_closing(std::chrono::steady_clock::now() + kPatience)) {
    // Who holds the lock was stopped in the middle of copying; nobody shall wait for that.
    header_->state.store(ChannelHeader::kClosed, std::memory_order_release);
  }
  wake_all();
}

/// Also for a consumer that finds the channel half closed, because the closer was killed.
bool ByteChannel::finish_closing(const os::Deadline& deadline) noexcept {
  const Lock lock = header_->producers.lock({.deadline = deadline});
  if (!is_locked(lock) && lock != Lock::kRelocked) return false;
  header_->state.store(ChannelHeader::kClosed, std::memory_order_release);
  os::fault_point();
  if (lock != Lock::kRelocked) static_cast<void>(header_->producers.unlock());
  return true;
}

}  // namespace drover::inline v1::sync
