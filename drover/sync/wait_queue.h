// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <climits>
#include <cstdint>

#include "drover/os/fault_point.h"
#include "drover/os/futex.h"
#include "drover/os/signals.h"
#include "drover/sync/lock_word.h"

namespace drover::inline v1::sync {

enum class Waited : std::uint8_t { kDone, kTimedOut, kInterrupted };

/// Those who wait until something else in the same shared memory changes. In shared memory; zero-filled is its first
/// state. Who is killed while it waits takes nothing from the others, but the wake-up that it was just given: for that,
/// and whatever is written over this, everybody looks again after a slice of waiting. The number of sleepers is never
/// too low for other reasons, and too high by those that were killed, which costs a system call for each wake-up.
///
/// Thread-safe. Any process that maps it. Nothing throws.
class WaitQueue {
 public:
  /// After what is waited for was changed: wakes up to `count` who wait.
  void wake(int count) noexcept {
    std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with look
    if (sleepers_.load(std::memory_order_relaxed) == 0) return;
    sequence_.fetch_add(1, std::memory_order_release);
    os::futex_wake(sequence_, count);
  }
  void wake_all() noexcept { wake(INT_MAX); }

  /// One who waits, for as long as it lives.
  class Sleeper {
   public:
    explicit Sleeper(WaitQueue& queue) noexcept : queue_(queue) {
      queue_.sleepers_.fetch_add(1, std::memory_order_seq_cst);
    }
    ~Sleeper() { queue_.sleepers_.fetch_sub(1, std::memory_order_relaxed); }
    Sleeper(const Sleeper&) = delete;
    Sleeper& operator=(const Sleeper&) = delete;

    /// Before looking at what is waited for.
    std::uint32_t look() const noexcept {
      const std::uint32_t seen = queue_.sequence_.load(std::memory_order_acquire);
      std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with wake
      os::fault_point();
      return seen;
    }
    os::FutexWait sleep(std::uint32_t seen, const os::Deadline& until) const noexcept {
      return os::futex_wait(queue_.sequence_, seen, until);
    }
    /// Whether somebody was woken since `seen`.
    bool stirred(std::uint32_t seen) const noexcept { return queue_.sequence_.load(std::memory_order_acquire) != seen; }

   private:
    WaitQueue& queue_;
  };

  /// Waits until `done()` is true. `judge()` is called before the first sleep and after each slice of waiting: it looks
  /// after the dead. Returns kInterrupted when SIGINT or SIGTERM came, unless not `interruptible`.
  template <class Done, class Judge>
  Waited wait(const os::Deadline& deadline, bool interruptible, const Done& done, const Judge& judge) noexcept {
    if (done()) return Waited::kDone;
    Slices slices(deadline);
    const Sleeper sleeper(*this);
    for (bool slice_is_over = true;;) {
      if (slice_is_over) judge();
      const std::uint32_t seen = sleeper.look();
      if (done()) return Waited::kDone;
      if (slices.is_over()) return Waited::kTimedOut;
      if (interruptible && os::pending_interrupt() != 0) return Waited::kInterrupted;
      slice_is_over = sleeper.sleep(seen, slices.next()) == os::FutexWait::kTimedOut;
      if (slice_is_over) slices.lengthen();
    }
  }

 private:
  os::FutexWord sequence_;
  std::atomic<std::uint32_t> sleepers_;
};

}  // namespace drover::inline v1::sync
