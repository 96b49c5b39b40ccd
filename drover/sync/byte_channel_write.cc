// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "drover/os/signals.h"
#include "drover/sync/byte_channel_io.h"

namespace drover::inline v1::sync {
namespace {

constexpr std::chrono::milliseconds kTryLimit(100);  // of a call that does not wait, for who is just copying

}  // namespace

void ChannelWrite::release() noexcept {
  if (locked_) {
    locked_ = streaming_ = false;
    static_cast<void>(header_.producers.unlock());
    publish_fence();
    if (ring_) header_.filled.ring();
    ring_ = false;
  }
  if (slept_) header_.freed.pass_on([this] { return channel_.worth_a_ring(channel_.head(), channel_.tail()); });
  slept_ = false;
}

void ChannelWrite::publish(RecordHead::Kind kind, std::uint32_t size, std::uint32_t items) noexcept {
  if (pad_ != 0) {
    const RecordHead pad{.size = (pad_ - 1) * ByteChannel::kUnit, .kind = RecordHead::kPad};
    std::memcpy(channel_.at(head_.units), &pad, sizeof pad);
  }
  const RecordHead record{.size = size, .kind = kind};
  std::memcpy(channel_.at(head_.units + pad_), &record, sizeof record);
  os::prefetch_for_write(channel_.at(head_.units + pad_ + RecordHead::units(size) + 128 / ByteChannel::kUnit));
  head_ = {.units = head_.units + pad_ + RecordHead::units(size), .items = head_.items + items};
  os::fault_point();
  header_.head.store(head_.word(), std::memory_order_release);
  os::fault_point();
  ring_ = true;
}

ChannelResult ChannelWrite::lock() noexcept {
  if (!locked_ && slept_) {
    // The ring that woke this thread may have been meant for the holder of the lock, who sleeps in the middle of a
    // record: this thread cannot use it now.
    locked_ = is_locked(header_.producers.try_lock());
    if (!locked_) header_.freed.pass_on([] { return true; });
    slept_ = locked_;
  }
  if (locked_) return ChannelResult::kDone;
  const os::Deadline deadline =
      patience_.sleeps ? patience_.deadline : os::Deadline(std::chrono::steady_clock::now() + kTryLimit);
  switch (header_.producers.lock({.deadline = deadline, .interruptible = true})) {
    case Lock::kLocked:
    case Lock::kOwnerDied:  // nothing to repair: what it had not published is not there
      locked_ = true;
      return ChannelResult::kDone;
    case Lock::kRelocked:
      return ChannelResult::kReentered;
    case Lock::kInterrupted:
      return ChannelResult::kInterrupted;
    case Lock::kTimedOut:
      break;
  }
  return ChannelResult::kTimedOut;
}

void ChannelWrite::refresh() noexcept {
  head_ = Cursor::from(header_.head.load(std::memory_order_relaxed));
  tail_ = channel_.tail();
  header_.tail_seen.store(tail_.word(), std::memory_order_relaxed);
}

ChannelResult ChannelWrite::begin_slowly(std::uint32_t units, std::uint32_t items) noexcept {
  Slices slices(patience_.deadline);
  for (;;) {
    if (const ChannelResult locked = lock(); locked != ChannelResult::kDone) return locked;
    if (!channel_.open()) return ChannelResult::kClosed;
    refresh();
    if (channel_.fits(head_, tail_, units, items)) return take_room(units);
    if (!channel_.plausible(head_, tail_)) return ChannelResult::kDamaged;
    if (!patience_.sleeps) return ChannelResult::kTimedOut;
    if (!streaming_) {  // who waits for room holds up no others, whose records may be smaller
      locked_ = false;
      static_cast<void>(header_.producers.unlock());
    }
    if (const auto waited = wait_for_room(units, items, slices); waited != ChannelResult::kDone) return waited;
  }
}

/// Until it looks as if there was room, or something else is to be seen.
ChannelResult ChannelWrite::wait_for_room(std::uint32_t units, std::uint32_t items, Slices& slices) noexcept {
  const auto worth_a_look = [this, units, items] {
    const Cursor head = channel_.head(), tail = channel_.tail();
    return !channel_.open() || channel_.fits(head, tail, units, items) || !channel_.plausible(head, tail);
  };
  if (os::spin_until(patience_.spin, worth_a_look)) return ChannelResult::kDone;
  for (;;) {
    const std::uint32_t seen = header_.freed.announce();
    slept_ = true;
    if (worth_a_look()) return ChannelResult::kDone;
    const bool whole_slice = header_.freed.wait(seen, slices.next()) == os::FutexWait::kTimedOut;
    if (worth_a_look()) return ChannelResult::kDone;
    if (os::pending_interrupt() != 0) return ChannelResult::kInterrupted;
    if (slices.is_over()) return ChannelResult::kTimedOut;
    if (!whole_slice) continue;
    slices.lengthen();
    if (patience_.deserted != nullptr && patience_.deserted(patience_.context, patience_.began))
      return ChannelResult::kDeserted;
  }
}

ChannelResult ChannelWrite::begin_with_what_is_there() noexcept {
  if (const ChannelResult locked = lock(); locked != ChannelResult::kDone) return locked;
  if (!channel_.open()) return ChannelResult::kClosed;
  refresh();
  room_ = {};
  if (!channel_.plausible(head_, tail_)) return ChannelResult::kDamaged;
  if (head_.items - tail_.items >= channel_.max_items_) return ChannelResult::kDone;
  const std::uint32_t free = channel_.units_ - (head_.units - tail_.units);
  const std::uint32_t to_end = channel_.to_end(head_.units);
  const std::uint32_t here = std::min(free, to_end), there = free - here;
  const std::uint32_t units = std::min(std::max(here, there), channel_.units_ / 2);
  return units < 2 ? ChannelResult::kDone : take_room(units);
}

ChannelResult ChannelWrite::stream(std::span<const std::byte> message) noexcept {
  const std::size_t piece_size = (channel_.units_ / 4 - 1) * std::size_t{ByteChannel::kUnit};
  auto kind = RecordHead::kFirst;
  for (std::size_t done = 0; done < message.size();) {
    const std::size_t size = std::min(piece_size, message.size() - done);
    if (const auto result = begin_slowly(RecordHead::units(size), kind == RecordHead::kFirst ? 1 : 0);
        result != ChannelResult::kDone) {
      release();
      header_.filled.ring_for_all();  // the consumer that is in the middle of it shall see that nobody writes any more
      return result;
    }
    streaming_ = true;
    std::memcpy(room_.data(), message.data() + done, size);
    done += size;
    if (kind != RecordHead::kFirst && done == message.size()) kind = RecordHead::kLast;
    publish(kind, static_cast<std::uint32_t>(size), kind == RecordHead::kFirst ? 1 : 0);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // here no unlock does it, see publish_fence
    header_.filled.ring();
    kind = RecordHead::kMore;
  }
  release();
  return ChannelResult::kDone;
}

}  // namespace drover::inline v1::sync
