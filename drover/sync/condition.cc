// SPDX-License-Identifier: Apache-2.0
#include "drover/sync/condition.h"

namespace drover::inline v1 {
namespace {

/// Sleeps until somebody notifies after `seen`. Others may have been notified instead of us, and died: who has slept
/// through a slice goes by the sequence.
sync::Waited sleep_until_stirred(const sync::WaitQueue::Sleeper& sleeper, std::uint32_t seen,
                                 const os::Deadline& deadline) noexcept {
  sync::Slices slices(deadline);
  while (!sleeper.stirred(seen)) {
    if (slices.is_over()) return sync::Waited::kTimedOut;
    if (os::pending_interrupt() != 0) return sync::Waited::kInterrupted;
    if (sleeper.sleep(seen, slices.next()) == os::FutexWait::kTimedOut) slices.lengthen();
  }
  return sync::Waited::kDone;
}

}  // namespace

bool Condition::wait_until(std::unique_lock<Mutex>& lock, const os::Deadline& deadline) {
  const sync::WaitQueue::Sleeper sleeper(state().waiters);
  const std::uint32_t seen = sleeper.look();  // before the unlock: what comes after it is not missed
  lock.unlock();
  const sync::Waited waited = sleep_until_stirred(sleeper, seen, deadline);
  if (waited == sync::Waited::kInterrupted) sync::throw_interrupted();
  lock.lock();
  return waited == sync::Waited::kDone;
}

}  // namespace drover::inline v1
