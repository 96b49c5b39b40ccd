// SPDX-License-Identifier: Apache-2.0
#include "drover/sync/semaphore.h"

#include <algorithm>
#include <limits>

#include "drover/os/fault_point.h"

namespace drover::inline v1 {
namespace sync {
namespace {

constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();

std::uint64_t add(std::uint64_t a, std::uint64_t b) noexcept { return a > kMost - b ? kMost : a + b; }
std::uint64_t subtract(std::uint64_t a, std::uint64_t b) noexcept { return a > b ? a - b : 0; }

}  // namespace

std::size_t SemaphoreState::used_records() const noexcept {
  return std::min<std::size_t>(used.load(std::memory_order_acquire), kRecords);
}

std::uint64_t SemaphoreState::available() const noexcept {
  const std::uint64_t all = total.load(std::memory_order_acquire);
  if (records_off.load(std::memory_order_relaxed) != 0) return all;
  std::uint64_t taken = unrecorded.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < used_records(); ++i) {
    taken = add(taken, records[i].held.load(std::memory_order_relaxed));
  }
  return subtract(all, taken);
}

SemaphoreState::Record* SemaphoreState::own_record() noexcept {
  const os::ThreadId me = os::current_process_id();
  for (std::size_t i = 0; i < used_records(); ++i) {
    if (records[i].process.load(std::memory_order_relaxed) == me) return &records[i];
  }
  return nullptr;
}

/// A record that nobody has, or whose process holds nothing: that one will find another.
SemaphoreState::Record* SemaphoreState::new_record() noexcept {
  const std::size_t known = used_records();
  Record* found = nullptr;
  for (std::size_t i = 0; i < known && found == nullptr; ++i) {
    if (records[i].process.load(std::memory_order_relaxed) == 0) found = &records[i];
  }
  if (found == nullptr && known < kRecords) {
    found = &records[known];
    used.store(static_cast<std::uint32_t>(known + 1), std::memory_order_release);
    os::fault_point();
  }
  for (std::size_t i = 0; i < known && found == nullptr; ++i) {
    if (records[i].held.load(std::memory_order_relaxed) == 0) found = &records[i];
  }
  if (found != nullptr) found->process.store(os::current_process_id(), std::memory_order_release);
  os::fault_point();
  return found;
}

/// Under the lock.
bool SemaphoreState::take_recorded() noexcept {
  if (available() == 0) return false;
  Record* record = own_record();
  if (record == nullptr) record = new_record();
  std::atomic<std::uint64_t>& taken = record != nullptr ? record->held : unrecorded;
  taken.store(add(taken.load(std::memory_order_relaxed), 1), std::memory_order_release);
  os::fault_point();
  return true;
}

bool SemaphoreState::take_unrecorded() noexcept {
  std::uint64_t left = total.load(std::memory_order_relaxed);
  while (left != 0) {
    if (total.compare_exchange_weak(left, left - 1, std::memory_order_acquire)) {
      os::fault_point();
      return true;
    }
  }
  return false;
}

/// Not for as long as somebody who holds it is stopped, by SIGSTOP or a debugger: who has a deadline shall keep it.
bool SemaphoreState::lock_state_soon(const os::Deadline& deadline) noexcept {
  constexpr std::chrono::milliseconds kSoon(100);
  if (is_locked(lock.try_lock(LockWord::Manner::kPasses))) return true;
  const auto soon = std::chrono::steady_clock::now() + kSoon;
  const os::Deadline until = deadline ? std::min(*deadline, soon) : soon;
  return is_locked(lock.lock({.deadline = until, .manner = LockWord::Manner::kPasses}));
}

bool SemaphoreState::take(const os::Deadline& deadline) noexcept {
  if (records_off.load(std::memory_order_relaxed) != 0) return take_unrecorded();
  if (!lock_state_soon(deadline)) return false;
  const bool taken = take_recorded();
  unlock_state();
  return taken;
}

/// Gives back what this process holds; returns how many permits are left over. Under the lock.
std::uint64_t SemaphoreState::release_recorded(std::uint64_t permits) noexcept {
  Record* const record = own_record();
  for (std::atomic<std::uint64_t>* const taken : {record != nullptr ? &record->held : nullptr, &unrecorded}) {
    if (taken == nullptr) continue;
    const std::uint64_t held = taken->load(std::memory_order_relaxed);
    const std::uint64_t returned = std::min(held, permits);
    taken->store(held - returned, std::memory_order_release);
    os::fault_point();
    permits -= returned;
  }
  return permits;
}

void SemaphoreState::release(std::uint64_t permits) noexcept {
  const int wake = static_cast<int>(std::min<std::uint64_t>(permits, INT_MAX));
  if (records_off.load(std::memory_order_relaxed) != 0) {
    total.fetch_add(permits, std::memory_order_release);
  } else {
    lock_state();
    const std::uint64_t made = release_recorded(permits);
    if (made != 0) total.store(add(total.load(std::memory_order_relaxed), made), std::memory_order_release);
    unlock_state();
  }
  os::fault_point();
  waiters.wake(wake);
}

void SemaphoreState::return_permits_of_the_dead() noexcept {
  if (records_off.load(std::memory_order_relaxed) != 0) return;
  for (std::size_t i = 0; i < used_records(); ++i) {
    Record& record = records[i];
    const os::ThreadId process = record.process.load(std::memory_order_acquire);
    if (process == 0 || process == os::current_process_id() || !lock.realm().is_process_gone(process)) continue;
    if (!lock_state_soon({})) return;
    if (record.process.load(std::memory_order_relaxed) == process) {
      record.held.store(0, std::memory_order_release);
      os::fault_point();
      record.process.store(0, std::memory_order_release);
    }
    unlock_state();
    waiters.wake_all();
  }
}

}  // namespace sync

namespace {

std::shared_ptr<shm::Block> make(const sync::Naming& name, Count initial, SemaphoreOptions options) {
  return sync::make_state<sync::SemaphoreState>(name, [&](sync::SemaphoreState& state) {
    state.total.store(initial, std::memory_order_relaxed);
    state.records_off.store(options.return_permits ? 0 : 1, std::memory_order_relaxed);
  });
}

}  // namespace

Semaphore::Semaphore(Count initial, SemaphoreOptions options)
    : Semaphore(make(std::nullopt, initial, options), Adopted{}) {}

Semaphore Semaphore::create(std::string_view name, Count initial, SemaphoreOptions options) {
  return adopt(make(name, initial, options));
}

Semaphore Semaphore::open(std::string_view name) {
  return adopt(sync::open_block(name, sync::kind_of<sync::SemaphoreState>()));
}

Semaphore Semaphore::open_or_create(std::string_view name, Count initial, SemaphoreOptions options) {
  return adopt(make({name, sync::Naming::kOrOpen}, initial, options));
}

bool Semaphore::try_acquire() noexcept {
  if (state().take({})) return true;
  state().return_permits_of_the_dead();
  return state().take({});
}

bool Semaphore::acquire_until(const os::Deadline& deadline) {
  sync::SemaphoreState& semaphore = state();
  const sync::Waited waited = semaphore.waiters.wait(
      deadline, true, [&] { return semaphore.take(deadline); }, [&] { semaphore.return_permits_of_the_dead(); });
  if (waited == sync::Waited::kInterrupted) sync::throw_interrupted();
  return waited == sync::Waited::kDone;
}

}  // namespace drover::inline v1
