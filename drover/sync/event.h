// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "drover/base/duration.h"
#include "drover/sync/shared.h"
#include "drover/sync/wait_queue.h"

namespace drover::inline v1 {

namespace sync {

struct EventState {
  static constexpr std::string_view kind_name() { return "Event"; }
  static constexpr std::uint32_t kVersion = 1;
  void join() noexcept {}

  std::atomic<std::uint32_t> word;  ///< bit 0: set; above: how often it was set, so that a set is seen that was cleared
  WaitQueue waiters;
};

}  // namespace sync

/// A flag that processes wait for. Nobody holds it, so nobody's death leaves it wrong.
///
/// Thread-safe. Any process that has a handle. Copies refer to the same event.
class Event : public sync::Plain<Event, sync::EventState> {
 public:
  Event() : Event(sync::make_state<sync::EventState>(std::nullopt)) {}

  /// All who wait go on, even if the event is cleared before they look.
  void set() noexcept;
  void clear() noexcept { state().word.fetch_and(~1U, std::memory_order_acq_rel); }
  bool is_set() const noexcept { return (state().word.load(std::memory_order_acquire) & 1U) != 0; }
  /// Until it is set. Throws Interrupted when SIGINT or SIGTERM comes.
  void wait() { static_cast<void>(wait_until({})); }
  /// False when it was not set in time. Throws Interrupted.
  [[nodiscard]] bool wait_for(Duration duration) { return wait_until(os::deadline_after(duration)); }

 private:
  friend Plain;
  using Plain::Plain;
  bool wait_until(const os::Deadline& deadline);
};

}  // namespace drover::inline v1
