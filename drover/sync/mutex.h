// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string_view>

#include "drover/base/duration.h"
#include "drover/sync/lock_word.h"
#include "drover/sync/shared.h"

namespace drover::inline v1 {

namespace sync {

struct MutexState {
  static constexpr std::string_view kind_name() { return "Mutex"; }
  static constexpr std::uint32_t kVersion = 1;
  void join() noexcept { lock.join(); }

  LockWord lock;
};

}  // namespace sync

/// A lock between processes. It works with std::scoped_lock, std::unique_lock and std::lock. When its holder dies, the
/// next one to lock it gets OwnerDied, once, and the mutex stays usable. Who waits finds a holder dead that died
/// before, at once; one that dies meanwhile, within a fifth of a second.
///
/// Thread-safe. Any process that has a handle. Copies refer to the same mutex.
class Mutex : public sync::Plain<Mutex, sync::MutexState> {
 public:
  Mutex() : Mutex(sync::make_state<sync::MutexState>(std::nullopt)) {}

  /// Throws OwnerDied when the last holder died while it held the mutex: not locked then, and the next call finds it as
  /// if it had been unlocked. Throws std::system_error (resource_deadlock_would_occur) when the calling thread holds
  /// it, Interrupted when SIGINT or SIGTERM comes while it waits.
  void lock() {
    if (!state().lock.take_free()) lock_slowly();
  }
  /// As lock(), but takes the mutex over from a dead holder: true when it did, and what it guards may be half-written.
  /// If the caller dies as well before it unlocks, the next one is told.
  [[nodiscard]] bool lock_or_recover();
  /// False when a living thread has it, be it the caller. Throws OwnerDied.
  [[nodiscard]] bool try_lock();
  /// Throws as lock().
  [[nodiscard]] bool try_lock_for(Duration duration) { return try_lock_until_deadline(os::deadline_after(duration)); }
  template <class Clock, class Length>
  [[nodiscard]] bool try_lock_until(std::chrono::time_point<Clock, Length> end) {
    return try_lock_for(time_until(end));
  }
  /// Throws std::system_error (operation_not_permitted) when the calling thread does not hold it.
  void unlock() {
    if (!state().lock.unlock()) refuse_unlock();
  }

 private:
  friend Plain;
  using Plain::Plain;
  void lock_slowly();
  bool try_lock_until_deadline(const os::Deadline& deadline);
  bool check(sync::Lock result, os::ThreadId dead);
  [[noreturn]] void refuse_unlock() const;
};

}  // namespace drover::inline v1
