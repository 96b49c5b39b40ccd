// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "drover/os/signals.h"
#include "drover/sync/byte_channel_io.h"

namespace drover::inline v1::sync {
namespace {

constexpr std::chrono::milliseconds kTryLimit(100);  // of a call that does not wait, for who is just reading
constexpr std::uint32_t kFlow = 4;                   // records between two waits
constexpr int kGatherPauses = 20;                    // about a microsecond

}  // namespace

void ChannelRead::release() noexcept {
  if (locked_) {
    locked_ = false;
    static_cast<void>(header_.consumers.unlock());
    publish_fence();
    if (ring_ && channel_.worth_a_ring(head_, tail_)) header_.freed.ring();
    ring_ = false;
  }
  if (slept_) header_.filled.pass_on([this] { return channel_.size() != 0; });
  slept_ = false;
}

/// Reads the head of the next record, which may hold anything, and passes over the rest of the ring where it says so.
ChannelRead::Look ChannelRead::parse() noexcept {
  std::uint32_t skipped = 0;
  for (;;) {
    const std::uint32_t unit = tail_.units + skipped;
    const std::uint32_t left = std::min(head_.units - unit, channel_.to_end(unit));
    if (left == 0) return Look::kDamaged;
    RecordHead head;
    place_ = channel_.at(unit);
    std::memcpy(&head, place_, sizeof head);
    if (head.kind == RecordHead::kPad && skipped == 0 && left == channel_.to_end(unit)) {
      skipped = left;
      continue;
    }
    const std::uint32_t units = RecordHead::units(head.size);
    if (head.kind < RecordHead::kWhole || head.kind > RecordHead::kLast || units > left) return Look::kDamaged;
    size_ = head.size;
    kind_ = head.kind;
    units_ = skipped + units;
    return Look::kRecord;
  }
}

void ChannelRead::consume() noexcept {
  const bool counts = kind_ == RecordHead::kWhole || kind_ == RecordHead::kFirst;
  tail_ = {.units = tail_.units + units_, .items = tail_.items + (counts ? 1 : 0)};
  os::fault_point();
  header_.tail.store(tail_.word(), std::memory_order_release);
  os::fault_point();
  channel_.note_read();
  ring_ = true;
}

void ChannelRead::throw_all_away() noexcept {
  tail_ = head_ = channel_.head();
  header_.head_seen.store(head_.word(), std::memory_order_relaxed);
  header_.tail.store(tail_.word(), std::memory_order_release);
  ring_ = true;
}

ChannelResult ChannelRead::lock() noexcept {
  if (!locked_ && slept_) {
    // The ring that woke this thread may have been meant for the holder of the lock, who sleeps in the middle of a
    // record: this thread cannot use it now.
    locked_ = is_locked(header_.consumers.try_lock());
    if (!locked_) header_.filled.pass_on([] { return true; });
    slept_ = locked_;
  }
  if (locked_) return ChannelResult::kDone;
  const os::Deadline deadline =
      patience_.sleeps ? patience_.deadline : os::Deadline(std::chrono::steady_clock::now() + kTryLimit);
  switch (header_.consumers.lock({.deadline = deadline, .interruptible = true})) {
    case Lock::kLocked:
    case Lock::kOwnerDied:  // nothing to repair: what it was reading is still there
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

ChannelResult ChannelRead::begin_slowly() noexcept {
  Slices slices(patience_.deadline);
  for (;;) {
    if (const ChannelResult locked = lock(); locked != ChannelResult::kDone) return locked;
    const std::uint32_t state = header_.state.load(std::memory_order_acquire);  // before head: kClosed means for ever
    const Look found = look();
    if (found == Look::kRecord && !is_stray()) return ChannelResult::kDone;
    if (found == Look::kDamaged) {
      throw_all_away();
      return ChannelResult::kDamaged;
    }
    if (found == Look::kRecord) {
      consume();
      if (slices.is_over()) return ChannelResult::kTimedOut;  // a broken producer may write such pieces for ever
      continue;
    }
    if (state != ChannelHeader::kOpen && state != ChannelHeader::kClosing) return ChannelResult::kClosed;
    release();
    if (state == ChannelHeader::kClosing) {
      if (!channel_.finish_closing(slices.next()) && slices.is_over()) return ChannelResult::kTimedOut;
      continue;
    }
    if (!patience_.sleeps) return ChannelResult::kTimedOut;
    if (const auto waited = wait_for_record(slices); waited != ChannelResult::kDone) return waited;
  }
}

/// Until it looks as if there was a record, or something else is to be seen.
ChannelResult ChannelRead::wait_for_record(Slices& slices) noexcept {
  const auto worth_a_look = [this] { return channel_.head().word() != channel_.tail().word() || !channel_.open(); };
  // In a flow a look takes the line of `head` away from the producer: let some records gather first.
  const bool flow = channel_.reads_since_wait() >= kFlow && patience_.spin.count() != 0;
  for (int i = 0; flow && i < kGatherPauses; ++i) os::pause();
  if (os::spin_until(patience_.spin, worth_a_look)) return ChannelResult::kDone;
  for (;;) {
    const std::uint32_t seen = header_.filled.announce();
    slept_ = true;
    if (worth_a_look()) return ChannelResult::kDone;
    const bool whole_slice = header_.filled.wait(seen, slices.next()) == os::FutexWait::kTimedOut;
    if (worth_a_look()) return ChannelResult::kDone;
    if (os::pending_interrupt() != 0) return ChannelResult::kInterrupted;
    if (slices.is_over()) return ChannelResult::kTimedOut;
    if (!whole_slice) continue;
    slices.lengthen();
    if (patience_.deserted != nullptr && patience_.deserted(patience_.context, patience_.began))
      return ChannelResult::kDeserted;
  }
}

bool ChannelRead::next() noexcept {
  if (kind_ != RecordHead::kFirst && kind_ != RecordHead::kMore) return false;
  consume();
  publish_freed();
  return await_piece() && is_stray();
}

/// The lock of the consumers is kept: nobody else could use the rest of the record.
bool ChannelRead::await_piece() noexcept {
  const auto there = [this] { return look() != Look::kEmpty; };
  Slices stalled(std::chrono::steady_clock::now() + kStall);
  if (os::spin_until(patience_.spin, there)) return look() == Look::kRecord;
  while (!there()) {
    const std::uint32_t seen = header_.filled.announce();
    slept_ = true;
    if (there() || (nobody_writes() && !there())) break;
    if (header_.filled.wait(seen, stalled.next()) == os::FutexWait::kTimedOut) stalled.lengthen();
    if (stalled.is_over()) break;
  }
  return look() == Look::kRecord;
}

/// Who streams holds the producers' lock from the first piece to the last.
bool ChannelRead::nobody_writes() noexcept {
  if (!is_locked(header_.producers.try_lock())) return false;
  static_cast<void>(header_.producers.unlock());
  return true;
}

/// Between two pieces no unlock is a fence.
void ChannelRead::publish_freed() noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (channel_.worth_a_ring(head_, tail_)) header_.freed.ring();
  ring_ = false;
}

}  // namespace drover::inline v1::sync
