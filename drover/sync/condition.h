// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <string_view>

#include "drover/base/duration.h"
#include "drover/sync/mutex.h"
#include "drover/sync/shared.h"
#include "drover/sync/wait_queue.h"

namespace drover::inline v1 {

namespace sync {

struct ConditionState {
  static constexpr std::string_view kind_name() { return "Condition"; }
  static constexpr std::uint32_t kVersion = 1;
  void join() noexcept {}

  WaitQueue waiters;
};

}  // namespace sync

/// What std::condition_variable is, between processes, with a drover::Mutex. No notification is lost that comes after
/// the waiter unlocked the mutex. A waiter that is killed takes no notification from others; only one that it was just
/// given dies with it, and then the others wake without being notified, within a fifth of a second.
///
/// Waits throw Interrupted when SIGINT or SIGTERM comes, and what Mutex::lock throws: the lock is not held then, as
/// owns_lock() says.
///
/// Thread-safe. Any process that has a handle. Copies refer to the same condition.
class Condition : public sync::Plain<Condition, sync::ConditionState> {
 public:
  Condition() : Condition(sync::make_state<sync::ConditionState>(std::nullopt)) {}

  void notify_one() noexcept { state().waiters.wake(1); }
  void notify_all() noexcept { state().waiters.wake_all(); }

  /// May return without a notification.
  void wait(std::unique_lock<Mutex>& lock) { static_cast<void>(wait_until(lock, {})); }
  template <class Predicate>
  void wait(std::unique_lock<Mutex>& lock, Predicate predicate) {
    while (!predicate()) wait(lock);
  }
  /// False when the time was over. May return true without a notification.
  [[nodiscard]] bool wait_for(std::unique_lock<Mutex>& lock, Duration duration) {
    return wait_until(lock, os::deadline_after(duration));
  }
  /// What the predicate said last.
  template <class Predicate>
  [[nodiscard]] bool wait_for(std::unique_lock<Mutex>& lock, Duration duration, Predicate predicate) {
    const os::Deadline deadline = os::deadline_after(duration);
    while (!predicate()) {
      if (!wait_until(lock, deadline)) return predicate();
    }
    return true;
  }

 private:
  friend Plain;
  using Plain::Plain;
  bool wait_until(std::unique_lock<Mutex>& lock, const os::Deadline& deadline);
};

}  // namespace drover::inline v1
