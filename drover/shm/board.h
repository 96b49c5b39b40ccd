// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "drover/os/fault_point.h"
#include "drover/os/futex.h"

namespace drover::inline v1::shm {

/// The word at the start of each board entry: who has the task, and how far it is. See docs/design/001.
///
///     owner (24 bits) | flags | phase (3 bits)
namespace state {

enum Phase : std::uint32_t {
  kFree = 0,       ///< nothing; only the parent may write the entry
  kArmed = 1,      ///< a task that nobody has claimed
  kClaimed = 2,    ///< a worker has it
  kDone = 3,       ///< finished, the result is in the entry
  kLost = 4,       ///< its worker died
  kCancelled = 5,  ///< taken back before anybody claimed it
};
inline constexpr std::uint32_t kPhaseMask = 7;
inline constexpr std::uint32_t kWaited = 8;     ///< a thread of the parent sleeps on the word
inline constexpr std::uint32_t kPoked = 16;     ///< something concerns all sleepers: look around
inline constexpr std::uint32_t kDetached = 32;  ///< nobody will ask for the result
inline constexpr std::uint32_t kFlags = kWaited | kPoked | kDetached;

constexpr Phase phase(std::uint32_t word) noexcept { return static_cast<Phase>(word & kPhaseMask); }
constexpr std::uint32_t owner(std::uint32_t word) noexcept { return word >> 8; }
constexpr std::uint32_t claimed_by(std::uint32_t incarnation) noexcept { return incarnation << 8 | kClaimed; }

}  // namespace state

/// A ring of entries in shared memory, each with a state word first. What follows the word is the job's.
/// Any process that maps it; the parent arms, workers claim.
class Board {
 public:
  Board() noexcept = default;
  /// `capacity` is a power of two. The memory must outlive the board.
  Board(std::byte* entries, std::size_t stride, std::size_t capacity, std::atomic<std::uint64_t>* tail) noexcept
      : entries_(entries), stride_(stride), mask_(capacity - 1), tail_(tail) {}

  std::size_t capacity() const noexcept { return mask_ + 1; }
  std::byte* entry(std::uint64_t position) const noexcept { return entries_ + (position & mask_) * stride_; }
  std::atomic<std::uint32_t>& word(std::uint64_t position) const noexcept {
    return *reinterpret_cast<std::atomic<std::uint32_t>*>(entry(position));
  }
  std::uint64_t tail() const noexcept { return tail_->load(std::memory_order_acquire); }

  /// Parent: offers the entry at `position`, which it has filled. Positions up to `position` are passed for good.
  void arm(std::uint64_t position) const noexcept {
    os::fault_point();
    word(position).store(state::kArmed, std::memory_order_release);
  }
  void set_tail(std::uint64_t tail) const noexcept {
    os::fault_point();
    tail_->store(tail, std::memory_order_release);
  }

 private:
  std::byte* entries_ = nullptr;
  std::size_t stride_ = 0;
  std::uint64_t mask_ = 0;
  std::atomic<std::uint64_t>* tail_ = nullptr;
};

/// A worker's way through a board. One thread at a time.
class BoardCursor {
 public:
  /// Claims the next armed entry for `me`; false when there is none up to the tail.
  bool claim(const Board& board, std::uint32_t me, std::uint64_t& position) noexcept {
    while (next_ != tail_ || refresh(board)) {
      const std::uint64_t candidate = next_++;
      if (!try_claim(board, me, candidate)) continue;
      position = candidate & (board.capacity() - 1);
      return true;
    }
    return false;
  }

  /// Claims the entry at the cursor, if it is armed, without having seen the tail pass it: a line less to wait for. An
  /// older entry that was armed again in its place may be taken for the next one: whoever arms it also has all cursors
  /// rewound.
  bool claim_here(const Board& board, std::uint32_t me, std::uint64_t& position) noexcept {
    if (!try_claim(board, me, next_)) return false;
    position = next_ & (board.capacity() - 1);
    if (++next_ > tail_) tail_ = next_;
    return true;
  }
  bool armed_here(const Board& board) const noexcept {
    return state::phase(board.word(next_).load(std::memory_order_relaxed)) == state::kArmed;
  }

  bool at_end(const Board& board) const noexcept { return next_ >= board.tail(); }
  /// Looks at every entry once more: something that was passed was armed again.
  void rewind() noexcept { next_ = tail_ = 0; }

 private:
  static bool try_claim(const Board& board, std::uint32_t me, std::uint64_t candidate) noexcept {
    std::atomic<std::uint32_t>& word = board.word(candidate);
    std::uint32_t seen = word.load(std::memory_order_relaxed);
    while (state::phase(seen) == state::kArmed) {
      const std::uint32_t mine = state::claimed_by(me) | (seen & state::kFlags);
      os::prefetch_for_write(reinterpret_cast<const std::byte*>(&word) + 128);  // of the entries to come
      if (!word.compare_exchange_weak(seen, mine, std::memory_order_acquire, std::memory_order_relaxed)) continue;
      os::fault_point();
      return true;
    }
    return false;
  }

  bool refresh(const Board& board) noexcept {
    const std::uint64_t tail = board.tail();
    tail_ = tail > next_ ? tail : next_;
    if (tail_ - next_ > board.capacity()) next_ = tail_ - board.capacity();
    return next_ != tail_;
  }

  std::uint64_t next_ = 0;
  std::uint64_t tail_ = 0;  ///< as last seen
};

}  // namespace drover::inline v1::shm
