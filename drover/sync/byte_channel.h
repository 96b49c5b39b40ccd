// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "drover/os/fault_point.h"
#include "drover/os/futex.h"
#include "drover/sync/lock_word.h"

namespace drover::inline v1::sync {

/// What the sleepers of one side sleep on. Odd: somebody sleeps, or is about to. In shared memory, zero-filled is its
/// first state. Thread-safe. Any process that maps it.
///
/// One ring wakes one sleeper and takes the sign away for all of them; so whoever has slept puts it back, and passes
/// the ring on when there is more to do, or when it cannot do it itself (pass_on). A sleeper that is killed in between
/// costs the others a slice of waiting.
class Bell {
 public:
  /// Sleeper: look at what is waited for after this, and sleep while the word is what it was.
  std::uint32_t announce() noexcept {
    const std::uint32_t seen = word_.fetch_or(1, std::memory_order_seq_cst) | 1U;
    std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with publish_fence
    os::fault_point();
    return seen;
  }
  os::FutexWait wait(std::uint32_t seen, const os::Deadline& until) const noexcept {
    return os::futex_wait(word_, seen, until);
  }
  /// After publishing and publish_fence: wakes one, if there is one.
  void ring() noexcept {
    if ((word_.load(std::memory_order_relaxed) & 1U) != 0) ring_slowly(1);
  }
  void ring_for_all() noexcept {
    static_cast<void>(announce());
    ring_slowly(kAll);
  }
  /// Whoever has slept, when it leaves; `more()`: there is something to do for another sleeper. Asked when the sign is
  /// back: what is published after that rings by itself.
  template <class More>
  void pass_on(const More& more) noexcept {
    static_cast<void>(announce());
    if (more()) ring();
  }

 private:
  static constexpr int kAll = 1 << 30;
  void ring_slowly(int count) noexcept;

  os::FutexWord word_;
};

/// Between publishing something and looking whether somebody sleeps. What is published is followed by the locked step
/// in LockWord::unlock, and on x86 that is a full fence.
inline void publish_fence() noexcept {
#if defined(__x86_64__)
  std::atomic_signal_fence(std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

/// How far one side has come: counts modulo 2^32 that are published together, in one word.
struct Cursor {
  std::uint32_t units = 0;  ///< of kUnit bytes
  std::uint32_t items = 0;

  static Cursor from(std::uint64_t word) noexcept { return std::bit_cast<Cursor>(word); }
  std::uint64_t word() const noexcept { return std::bit_cast<std::uint64_t>(*this); }
};
static_assert(sizeof(Cursor) == 8);

/// The shared part of a channel, zero-filled in its first state; the ring lies elsewhere in the same segment.
///   1. Units in [tail, head) are whole records, and are not written again before tail has passed them.
///   2. Only who holds `producers` stores head, after the bytes; only who holds `consumers` stores tail, when the
///      record has been read. So a holder that is killed has changed nothing, or all: its successor repairs nothing.
///   3. `state` leaves kOpen first of all; once it is kClosed, which is stored under `producers`, head never changes.
struct ChannelHeader {
  enum State : std::uint32_t { kOpen = 0, kClosing = 1, kClosed = 2 };

  alignas(64) LockWord producers;
  std::atomic<std::uint64_t> tail_seen;  ///< as a producer last saw it; protected by `producers`
  alignas(64) std::atomic<std::uint64_t> head;
  alignas(64) LockWord consumers;
  std::atomic<std::uint64_t> head_seen;  ///< protected by `consumers`
  alignas(64) std::atomic<std::uint64_t> tail;
  alignas(64) Bell filled;  ///< consumers sleep on it
  Bell freed;               ///< producers sleep on it
  std::atomic<std::uint32_t> state;
};
static_assert(sizeof(ChannelHeader) == 320);

enum class ChannelResult : std::uint8_t {
  kDone,
  kTimedOut,
  kClosed,       ///< producers: closed; consumers: closed, and nothing is left
  kDeserted,     ///< Patience::deserted said that waiting is in vain
  kInterrupted,  ///< SIGINT or SIGTERM came while it waited
  kTooLarge,     ///< it can only be streamed
  kDamaged,      ///< somebody wrote over the channel; consumers: what it held is thrown away
  kReentered,    ///< the calling thread is inside the same channel already
};

/// How a call waits.
struct Patience {
  bool sleeps = true;  ///< else it waits only for the lock
  os::Deadline deadline = {};
  /// Asked when a slice of waiting is over: whether nobody is left who could end the wait. Must not throw.
  bool (*deserted)(void* context, std::uint64_t began) = nullptr;
  void* context = nullptr;
  std::uint64_t began = 0;           ///< passed on to `deserted`
  std::chrono::nanoseconds spin{0};  ///< so long before it sleeps
};

/// A bounded queue of byte strings in shared memory: any number of producers and consumers in any processes, each of
/// which may be killed at any instruction. The records are in order, and each is delivered once; what happens to the
/// record of one who dies: see ChannelWrite and ChannelRead. Nothing throws, nothing allocates. Whatever another
/// process writes over it: no call crashes, and deadlines are kept, give or take the second that closing may take.
///
/// Thread-safe. Any process that maps it and called join(). Borrows header and ring.
class ByteChannel {
 public:
  static constexpr std::uint32_t kUnit = 8;
  static constexpr std::uint64_t kSmallestRing = 256;
  static constexpr std::uint64_t kLargestRing = std::uint64_t{1} << 32U;

  /// `ring_bytes`: a power of two between the two above; `ring` is aligned to kUnit. At most `max_items` (> 0) records.
  ByteChannel(ChannelHeader* header, std::byte* ring, std::uint64_t ring_bytes, std::uint32_t max_items) noexcept
      : header_(header), ring_(ring), units_(static_cast<std::uint32_t>(ring_bytes / kUnit)), max_items_(max_items) {}

  void join() noexcept {
    header_->producers.join();
    header_->consumers.join();
  }

  /// The ring for records that are given whole: half of it, or less.
  std::size_t largest_whole() const noexcept { return (units_ / 2 - 1) * std::size_t{kUnit}; }
  std::uint32_t max_items() const noexcept { return max_items_; }
  /// Records that this object's readers have taken since the last call. A hint: it may miss some.
  std::uint32_t reads_since_wait() noexcept { return std::atomic_ref(reads_).exchange(0, std::memory_order_relaxed); }
  void note_read() noexcept {
    const std::atomic_ref reads(reads_);
    reads.store(reads.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  /// Records at this moment, at most.
  std::size_t size() const noexcept;
  /// From the moment it returns, nothing is added. Idempotent. Waits for a producer that is just copying, for a second.
  void close() noexcept;
  bool closed() const noexcept { return header_->state.load(std::memory_order_acquire) != ChannelHeader::kOpen; }
  /// Makes all who sleep look again.
  void wake_all() noexcept;

 private:
  friend class ChannelWrite;
  friend class ChannelRead;

  bool finish_closing(const os::Deadline& deadline) noexcept;
  std::byte* at(std::uint32_t unit) const noexcept { return ring_ + std::size_t{kUnit} * (unit & (units_ - 1)); }
  std::uint32_t to_end(std::uint32_t unit) const noexcept { return units_ - (unit & (units_ - 1)); }
  /// Units that a record of `units` takes at `head`, with what is left empty before the end of the ring.
  std::uint32_t with_pad(Cursor head, std::uint32_t units) const noexcept {
    const std::uint32_t left = to_end(head.units);
    return units <= left ? units : left + units;
  }
  /// In the middle of a streamed record there may be units without items.
  bool plausible(Cursor head, Cursor tail) const noexcept {
    const std::uint32_t units = head.units - tail.units, items = head.items - tail.items;
    return units <= units_ && items <= max_items_ && (units != 0 || items == 0);
  }
  bool fits(Cursor head, Cursor tail, std::uint32_t units, std::uint32_t items) const noexcept {
    const std::uint32_t used = head.units - tail.units;
    return used <= units_ && with_pad(head, units) <= units_ - used && head.items - tail.items + items <= max_items_;
  }
  /// Whether so much is free that a producer should be woken: an eighth of all, so that not each item is a wake-up.
  bool worth_a_ring(Cursor head, Cursor tail) const noexcept {
    const std::uint32_t items = max_items_ - (head.items - tail.items), units = units_ - (head.units - tail.units);
    return items >= max_items_ / 8 && units >= units_ / 8;
  }
  Cursor head() const noexcept { return Cursor::from(header_->head.load(std::memory_order_acquire)); }
  Cursor tail() const noexcept { return Cursor::from(header_->tail.load(std::memory_order_acquire)); }
  bool open() const noexcept { return header_->state.load(std::memory_order_relaxed) == ChannelHeader::kOpen; }

  ChannelHeader* header_;
  std::byte* ring_;
  std::uint32_t units_;
  std::uint32_t max_items_;
  std::uint32_t reads_ = 0;  ///< of threads that share this object
};

}  // namespace drover::inline v1::sync
