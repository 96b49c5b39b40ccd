// SPDX-License-Identifier: Apache-2.0
#include "drover/sync/mutex.h"

namespace drover::inline v1 {

using sync::Lock;

/// True when it is locked, false when it is not for want of time.
bool Mutex::check(Lock result, os::ThreadId dead) {
  switch (result) {
    case Lock::kLocked:
      return true;
    case Lock::kTimedOut:
      return false;
    case Lock::kOwnerDied:
      static_cast<void>(state().lock.unlock());
      sync::throw_owner_died(sync::describe("mutex", *block()), dead);
    case Lock::kRelocked:
      sync::throw_relocked(sync::describe("mutex", *block()));
    case Lock::kInterrupted:
      break;
  }
  sync::throw_interrupted();
}

void Mutex::lock_slowly() { static_cast<void>(try_lock_until_deadline({})); }

bool Mutex::try_lock_until_deadline(const os::Deadline& deadline) {
  os::ThreadId dead = 0;
  const Lock result = state().lock.lock({.deadline = deadline, .interruptible = true, .dead = &dead});
  return check(result, dead);
}

bool Mutex::lock_or_recover() {
  const Lock result = state().lock.lock({.interruptible = true});
  return result == Lock::kOwnerDied || !check(result, 0);
}

bool Mutex::try_lock() {
  os::ThreadId dead = 0;
  const Lock result = state().lock.try_lock(sync::LockWord::Manner::kGuards, &dead);
  return check(result, dead);
}

void Mutex::refuse_unlock() const { sync::throw_not_held(sync::describe("mutex", *block())); }

}  // namespace drover::inline v1
