// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>

#include "drover/os/fault_point.h"
#include "drover/os/futex.h"
#include "drover/os/thread_id.h"

namespace drover::inline v1::sync {

/// From which PID namespaces processes take part. Threads of our own namespace can be judged; who is in another one
/// counts as alive, but only if processes of another one ever joined: else the id is garbage, and nobody.
/// In shared memory; zero-filled is its first state. Thread-safe. Any process that maps it.
class Realm {
 public:
  /// Once in each process that maps it, before it takes anything.
  void join() noexcept;
  /// Whether a holder will never let go by itself: dead, or no thread at all. Reads /proc, some microseconds.
  bool is_gone(os::ThreadId holder) const noexcept { return is_gone(holder, os::liveness(holder)); }
  /// The same of a process, by os::current_process_id().
  bool is_process_gone(os::ThreadId holder) const noexcept { return is_gone(holder, os::process_liveness(holder)); }
  /// As is_gone, but an answer "no" about one holder is kept for a millisecond in each thread, so that it may stand in
  /// loops.
  bool seems_gone(os::ThreadId holder) const noexcept;

 private:
  bool is_gone(os::ThreadId holder, os::Liveness liveness) const noexcept;

  std::atomic<std::uint32_t> home_;
};

enum class Lock : std::uint8_t {
  kLocked,
  kOwnerDied,    ///< locked, but the one before died while it held the lock: what it guards may be half-written
  kTimedOut,     ///< not locked: somebody held it until the deadline
  kRelocked,     ///< not locked: the caller holds it already, and would wait for itself
  kInterrupted,  ///< not locked: SIGINT or SIGTERM came (only when asked for)
};

constexpr bool is_locked(Lock lock) noexcept { return lock == Lock::kLocked || lock == Lock::kOwnerDied; }

/// A lock between processes: one word that says who holds it, so that a holder that died is found by who waits, at once
/// when it begins to wait, and within a fifth of a second later on. In shared memory, zero-filled is its first
/// state (free). Whatever another process writes over it: no call crashes, and deadlines are kept. A holder that calls
/// exec() counts as alive.
///
///     bits 0-21, 32-63: os::ThreadId of the holder, 0: free.   22: somebody may sleep.   23: kPasses.
///
/// Thread-safe. Any process that maps it and called join(). Nothing throws.
class LockWord {
 public:
  enum class Manner : std::uint8_t {
    kGuards,  ///< death of the holder gives kOwnerDied
    kPasses,  ///< it does not: the holder changes nothing that could be left half-done
  };
  struct Options {
    os::Deadline deadline = {};
    Manner manner = Manner::kGuards;
    bool interruptible = false;
    os::ThreadId* dead = nullptr;  ///< for kOwnerDied: who it was
  };

  LockWord() noexcept : word_(0) {}

  void join() noexcept { realm_.join(); }
  const Realm& realm() const noexcept { return realm_; }

  /// Without a deadline it waits as long as a living thread holds the lock.
  Lock lock() noexcept { return take(os::current_thread_id()) ? Lock::kLocked : lock_slowly({}); }
  Lock lock(const Options& options) noexcept {
    const os::ThreadId me = os::current_thread_id() | flags(options.manner);
    return take(me) ? Lock::kLocked : lock_slowly(options);
  }

  /// The fast path of lock(): false when it is not free, for whatever reason.
  bool take_free() noexcept { return take(os::current_thread_id()); }

  /// Does not wait: kLocked, kOwnerDied, or kTimedOut when a living thread (maybe the caller) has it.
  Lock try_lock(Manner manner = Manner::kGuards, os::ThreadId* dead = nullptr) noexcept {
    const os::ThreadId me = os::current_thread_id() | flags(manner);
    return take(me) ? Lock::kLocked : try_slowly(me, dead);
  }

  /// False when the caller does not hold it; nothing happens then.
  [[nodiscard]] bool unlock() noexcept {
    os::ThreadId before = os::current_thread_id();
    if (word_.compare_exchange_strong(before, 0, std::memory_order_release, std::memory_order_relaxed)) {
      os::fault_point();
      return true;
    }
    if (!is_mine()) return false;
    before = word_.exchange(0, std::memory_order_release);
    os::fault_point();
    if ((before & kSleepers) != 0) os::futex_wake(low_half_);
    return true;
  }

  /// The holder goes over from kPasses to kGuards.
  void guard() noexcept {
    word_.fetch_and(~kPassesFlag, std::memory_order_relaxed);
    os::fault_point();
  }

  bool is_mine() const noexcept {
    return (word_.load(std::memory_order_relaxed) & os::kThreadIdMask) == os::current_thread_id();
  }
  /// Whether nobody has it, at this moment.
  bool is_free() const noexcept { return (word_.load(std::memory_order_seq_cst) & os::kThreadNumberMask) == 0; }

 private:
  static constexpr os::ThreadId kSleepers = 1U << 22U;
  static constexpr os::ThreadId kPassesFlag = 1U << 23U;

  static constexpr os::ThreadId flags(Manner manner) noexcept { return manner == Manner::kPasses ? kPassesFlag : 0; }

  bool take(os::ThreadId me) noexcept {
    os::ThreadId expected = 0;
    if (!word_.compare_exchange_strong(expected, me, std::memory_order_acquire, std::memory_order_relaxed)) {
      return false;
    }
    os::fault_point();
    return true;
  }
  Lock lock_slowly(const Options& options) noexcept;
  Lock try_slowly(os::ThreadId me, os::ThreadId* dead) noexcept;
  bool spin(os::ThreadId me) noexcept;
  bool take_over(os::ThreadId seen, os::ThreadId me, os::ThreadId* dead, Lock& result) noexcept;
  os::FutexWait sleep(os::ThreadId seen, const os::Deadline& until) noexcept;

  static_assert(std::endian::native == std::endian::little);
  union {
    std::atomic<os::ThreadId> word_;
    os::FutexWord
        low_half_;  ///< what the kernel compares: the number of the holder, and the flags; never accessed here
  };
  Realm realm_;
  [[maybe_unused]] std::uint32_t reserved_ = 0;
};

static_assert(sizeof(LockWord) == 16 && std::atomic<os::ThreadId>::is_always_lock_free);

/// How long sleepers sleep before they look whether those they wait for are alive: 20 ms at first, doubling to 200 ms.
/// It also bounds what a wake-up costs that a dead process owed. One thread.
class Slices {
 public:
  explicit Slices(const os::Deadline& deadline) noexcept : deadline_(deadline) {}

  /// The end of the next sleep.
  std::chrono::steady_clock::time_point next() const noexcept;
  /// The last sleep lasted to its end.
  void lengthen() noexcept { length_ = length_ < kLongest / 2 ? 2 * length_ : kLongest; }
  bool is_over() const noexcept { return deadline_ && std::chrono::steady_clock::now() >= *deadline_; }

 private:
  static constexpr std::chrono::milliseconds kLongest{200};
  const os::Deadline deadline_;
  std::chrono::milliseconds length_{20};
};

}  // namespace drover::inline v1::sync
