// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <string_view>

#include "drover/base/duration.h"
#include "drover/sync/lock_word.h"
#include "drover/sync/shared.h"
#include "drover/sync/wait_queue.h"

namespace drover::inline v1 {

namespace sync {

/// A writer holds `gate` and waits until no reader is left. A reader writes its name in a free place of `readers`, then
/// looks whether the gate is open; if not it takes its name away and stands in line at the gate, as writers do. So
/// nobody gets past a writer that waits.
///
/// A writer looks at the places one by one. So a reader never takes another place while a writer stands at the gate, or
/// it could leave the one that is looked at last, and be seen in none: a lock inside a lock is counted then in the
/// place that it has, and who steps back from the gate gives up the place that it has just taken, and no other
/// (tests/models/shared_mutex.pml).
///
///     a place: os::ThreadId of the reader, 0: free; bits 22-31: locks of it beyond the first
struct SharedMutexState {
  static constexpr std::size_t kReaders = 64;
  static constexpr std::string_view kind_name() { return "SharedMutex"; }
  static constexpr std::uint32_t kVersion = 2;
  void join() noexcept { gate.join(); }

  Lock lock(const LockWord::Options& options, bool recover) noexcept;
  Lock try_lock(os::ThreadId* dead) noexcept;
  bool unlock() noexcept { return gate.unlock(); }
  Lock lock_shared(const LockWord::Options& options) noexcept;
  Lock try_lock_shared(os::ThreadId* dead) noexcept;
  bool unlock_shared() noexcept;

  LockWord gate;
  WaitQueue departures;  ///< those who wait until a reader leaves: a writer, or a reader for whom there is no place
  alignas(64) std::array<std::atomic<os::ThreadId>, kReaders> readers;

 private:
  static constexpr os::ThreadId kOneMore = 1U << 22U;
  static constexpr os::ThreadId kMore = ~os::kThreadIdMask;

  bool enter() noexcept;
  std::size_t take_place() noexcept;  ///< which one; kReaders when there is none
  void clear(std::size_t place) noexcept;
  bool leave_place() noexcept;
  Lock lock_inside() noexcept;
  bool reads(os::ThreadId thread) const noexcept;
  bool is_empty() const noexcept;
  void forget_the_dead() noexcept;
};

}  // namespace sync

/// A lock between processes that many may share for reading, or one hold for writing; it works with std::shared_lock
/// and std::unique_lock. Writers do not starve: who comes after a waiting writer waits behind it. At most 64 readers at
/// a time, more wait. A reader that dies is forgotten; when a writer dies, the next one to lock, for reading or
/// writing, gets OwnerDied, once.
///
/// Thread-safe. Any process that has a handle. Copies refer to the same mutex. Errors as those of Mutex.
class SharedMutex : public sync::Plain<SharedMutex, sync::SharedMutexState> {
 public:
  SharedMutex() : SharedMutex(sync::make_state<sync::SharedMutexState>(std::nullopt)) {}

  void lock() { static_cast<void>(lock_until({})); }
  /// Takes it over from a dead writer: true when it did, and what it guards may be half-written.
  [[nodiscard]] bool lock_or_recover();
  [[nodiscard]] bool try_lock();
  [[nodiscard]] bool try_lock_for(Duration duration) { return lock_until(os::deadline_after(duration)); }
  template <class Clock, class Length>
  [[nodiscard]] bool try_lock_until(std::chrono::time_point<Clock, Length> end) {
    return try_lock_for(time_until(end));
  }
  void unlock();

  /// A thread may lock it several times (up to 64 at least), and unlocks it as often.
  void lock_shared() { static_cast<void>(lock_shared_until({})); }
  [[nodiscard]] bool try_lock_shared();
  [[nodiscard]] bool try_lock_shared_for(Duration duration) { return lock_shared_until(os::deadline_after(duration)); }
  template <class Clock, class Length>
  [[nodiscard]] bool try_lock_shared_until(std::chrono::time_point<Clock, Length> end) {
    return try_lock_shared_for(time_until(end));
  }
  void unlock_shared();

 private:
  friend Plain;
  using Plain::Plain;
  bool lock_until(const os::Deadline& deadline);
  bool lock_shared_until(const os::Deadline& deadline);
  bool check(sync::Lock result, os::ThreadId dead) const;
};

}  // namespace drover::inline v1
