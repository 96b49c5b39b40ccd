// SPDX-License-Identifier: Apache-2.0
#include "drover/sync/shared_mutex.h"

#include <algorithm>

#include "drover/os/fault_point.h"

namespace drover::inline v1 {
namespace sync {
namespace {

/// Threads that were started one after the other begin in different cache lines.
std::size_t first_place(os::ThreadId thread) noexcept {
  const auto number = static_cast<std::size_t>(os::thread_number(thread));
  return (8 * number + number / 8) % SharedMutexState::kReaders;
}

Lock result_of(Waited waited) noexcept {
  switch (waited) {
    case Waited::kDone:
      return Lock::kLocked;
    case Waited::kTimedOut:
      return Lock::kTimedOut;
    case Waited::kInterrupted:
      break;
  }
  return Lock::kInterrupted;
}

/// A writer, between taking the gate and looking at the places: a reader that it does not see in its place sees the
/// gate closed. Taking the gate is no fence on AArch64.
void fence_before_readers() noexcept { std::atomic_thread_fence(std::memory_order_seq_cst); }  // pairs with enter

}  // namespace

std::size_t SharedMutexState::take_place() noexcept {
  const os::ThreadId me = os::current_thread_id();
  const std::size_t first = first_place(me);
  for (std::size_t i = 0; i < kReaders; ++i) {
    const std::size_t place = (first + i) % kReaders;
    os::ThreadId nobody = 0;
    if (readers[place].load(std::memory_order_relaxed) != 0) continue;
    if (readers[place].compare_exchange_strong(nobody, me, std::memory_order_seq_cst)) {
      os::fault_point();
      return place;
    }
  }
  return kReaders;
}

void SharedMutexState::clear(std::size_t place) noexcept {
  readers[place].store(0, std::memory_order_seq_cst);
  os::fault_point();
  departures.wake_all();
}

bool SharedMutexState::leave_place() noexcept {
  const os::ThreadId me = os::current_thread_id();
  const std::size_t first = first_place(me);
  for (std::size_t i = 0; i < kReaders; ++i) {
    const std::size_t place = (first + i) % kReaders;
    const os::ThreadId seen = readers[place].load(std::memory_order_relaxed);
    if ((seen & os::kThreadIdMask) != me) continue;
    if ((seen & kMore) != 0) {
      readers[place].store(seen - kOneMore, std::memory_order_relaxed);
    } else {
      clear(place);
    }
    return true;
  }
  return false;
}

/// A reader locks once more while a writer stands at the gate, which waits for it: it must not stand in line.
/// kTimedOut: the caller is no reader.
Lock SharedMutexState::lock_inside() noexcept {
  const os::ThreadId me = os::current_thread_id();
  for (std::atomic<os::ThreadId>& place : readers) {
    const os::ThreadId seen = place.load(std::memory_order_relaxed);
    if ((seen & os::kThreadIdMask) != me) continue;
    if ((seen & kMore) == kMore) return Lock::kRelocked;
    place.store(seen + kOneMore, std::memory_order_relaxed);  // nobody else writes to it while this thread lives
    os::fault_point();
    return Lock::kLocked;
  }
  return Lock::kTimedOut;
}

/// The way past an open gate. A writer that came in between waits for us, so we step back: out of the place that was
/// taken just now, for the writer may have passed by it already. One that this thread reads in must stay.
bool SharedMutexState::enter() noexcept {
  if (!gate.is_free()) return false;
  const std::size_t place = take_place();
  if (place == kReaders) return false;
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with fence_before_readers
  if (gate.is_free()) return true;
  clear(place);
  return false;
}

bool SharedMutexState::reads(os::ThreadId thread) const noexcept {
  return std::any_of(readers.begin(), readers.end(),
                     [thread](const auto& place) { return (place & os::kThreadIdMask) == thread; });
}

bool SharedMutexState::is_empty() const noexcept {
  return std::all_of(readers.begin(), readers.end(), [](const auto& place) { return place == 0; });
}

void SharedMutexState::forget_the_dead() noexcept {
  for (std::atomic<os::ThreadId>& place : readers) {
    os::ThreadId reader = place.load(std::memory_order_relaxed);
    if (reader == 0 || !gate.realm().is_gone(reader)) continue;
    if (place.compare_exchange_strong(reader, 0, std::memory_order_acq_rel)) departures.wake_all();
  }
}

Lock SharedMutexState::lock(const LockWord::Options& options, bool recover) noexcept {
  LockWord::Options through = options;
  through.manner = LockWord::Manner::kPasses;  // who dies before it may write leaves nothing half-written
  const Lock passed = gate.lock(through);
  if (!is_locked(passed) || (passed == Lock::kOwnerDied && !recover)) return passed;
  fence_before_readers();
  if (reads(os::current_thread_id())) {
    static_cast<void>(gate.unlock());
    return Lock::kRelocked;
  }
  // Who has taken over from a dead writer must not give up: it alone knows.
  const bool may_give_up = passed == Lock::kLocked;
  const Lock drained = result_of(departures.wait(
      may_give_up ? options.deadline : os::Deadline{}, may_give_up && options.interruptible,
      [this] { return is_empty(); }, [this] { forget_the_dead(); }));
  if (drained != Lock::kLocked) {
    static_cast<void>(gate.unlock());
    return drained;
  }
  gate.guard();
  return passed;
}

Lock SharedMutexState::try_lock(os::ThreadId* dead) noexcept {
  const Lock passed = gate.try_lock(LockWord::Manner::kPasses, dead);
  if (passed != Lock::kLocked) return passed;
  fence_before_readers();
  if (!is_empty()) forget_the_dead();
  if (is_empty()) {
    gate.guard();
    return passed;
  }
  static_cast<void>(gate.unlock());
  return Lock::kTimedOut;
}

Lock SharedMutexState::lock_shared(const LockWord::Options& options) noexcept {
  if (enter()) return Lock::kLocked;
  if (const Lock inside = lock_inside(); inside != Lock::kTimedOut) return inside;
  LockWord::Options through = options;
  through.manner = LockWord::Manner::kPasses;
  const Lock passed = gate.lock(through);
  if (passed != Lock::kLocked) return passed;
  const Waited waited = departures.wait(
      options.deadline, options.interruptible, [this] { return take_place() != kReaders; },
      [this] { forget_the_dead(); });
  static_cast<void>(gate.unlock());
  return result_of(waited);
}

Lock SharedMutexState::try_lock_shared(os::ThreadId* dead) noexcept {
  if (enter()) return Lock::kLocked;
  if (const Lock inside = lock_inside(); inside != Lock::kTimedOut) return inside;
  const Lock passed = gate.try_lock(LockWord::Manner::kPasses, dead);
  if (passed != Lock::kLocked) return passed;
  bool taken = take_place() != kReaders;
  if (!taken) {
    forget_the_dead();
    taken = take_place() != kReaders;
  }
  static_cast<void>(gate.unlock());
  return taken ? Lock::kLocked : Lock::kTimedOut;
}

bool SharedMutexState::unlock_shared() noexcept { return leave_place(); }

}  // namespace sync

using sync::Lock;

bool SharedMutex::check(Lock result, os::ThreadId dead) const {
  const auto what = [this] { return sync::describe("shared mutex", *block()); };
  switch (result) {
    case Lock::kLocked:
      return true;
    case Lock::kTimedOut:
      return false;
    case Lock::kOwnerDied:
      static_cast<void>(state().unlock());
      sync::throw_owner_died(what(), dead);
    case Lock::kRelocked:
      sync::throw_relocked(what());
    case Lock::kInterrupted:
      break;
  }
  sync::throw_interrupted();
}

bool SharedMutex::lock_until(const os::Deadline& deadline) {
  os::ThreadId dead = 0;
  const Lock result = state().lock({.deadline = deadline, .interruptible = true, .dead = &dead}, false);
  return check(result, dead);
}

bool SharedMutex::lock_or_recover() {
  const Lock result = state().lock({.interruptible = true}, true);
  return result == Lock::kOwnerDied || !check(result, 0);
}

bool SharedMutex::try_lock() {
  os::ThreadId dead = 0;
  const Lock result = state().try_lock(&dead);
  return check(result, dead);
}

void SharedMutex::unlock() {
  if (!state().unlock()) sync::throw_not_held(sync::describe("shared mutex", *block()));
}

bool SharedMutex::lock_shared_until(const os::Deadline& deadline) {
  os::ThreadId dead = 0;
  const Lock result = state().lock_shared({.deadline = deadline, .interruptible = true, .dead = &dead});
  return check(result, dead);
}

bool SharedMutex::try_lock_shared() {
  os::ThreadId dead = 0;
  const Lock result = state().try_lock_shared(&dead);
  return check(result, dead);
}

void SharedMutex::unlock_shared() {
  if (!state().unlock_shared()) sync::throw_not_held(sync::describe("shared mutex", *block()));
}

}  // namespace drover::inline v1
