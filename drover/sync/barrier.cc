// SPDX-License-Identifier: Apache-2.0
#include "drover/sync/barrier.h"

#include <limits>
#include <string>

#include "drover/os/fault_point.h"

namespace drover::inline v1 {
namespace sync {

/// Whoever died with the lock was a party.
void BarrierState::lock_state() noexcept {
  os::ThreadId dead = 0;
  if (lock.lock({.dead = &dead}) == Lock::kOwnerDied) break_by(dead);
}

void BarrierState::break_by(os::ThreadId dead) noexcept {
  last_dead.store(dead, std::memory_order_relaxed);
  os::ThreadId works = 0;
  broken.compare_exchange_strong(works, dead, std::memory_order_acq_rel);
  os::fault_point();
  waiters.wake_all();
}

/// Under the lock. A death between any two of these steps breaks the barrier, and reset() begins anew.
void BarrierState::begin_generation(bool by_reset) noexcept {
  const std::uint64_t next = generation.load(std::memory_order_relaxed) + 1;
  const std::uint64_t bit = std::uint64_t{1} << next % 64;
  arrived.store(0, std::memory_order_relaxed);
  os::fault_point();
  if (by_reset) {
    resets.fetch_or(bit, std::memory_order_relaxed);
  } else {
    resets.fetch_and(~bit, std::memory_order_relaxed);
  }
  os::fault_point();
  generation.store(next, std::memory_order_release);
  os::fault_point();
}

BarrierState::Arrival BarrierState::outcome(std::uint64_t arrived_in) const noexcept {
  if (generation.load(std::memory_order_acquire) == arrived_in) return Arrival::kBroken;
  const bool by_reset = (resets.load(std::memory_order_relaxed) >> (arrived_in + 1) % 64 & 1U) != 0;
  return by_reset ? Arrival::kReset : Arrival::kPassed;
}

/// Not all came in time: as if the caller had not come.
BarrierState::Arrival BarrierState::withdraw(std::uint64_t arrived_in, Arrival reason) noexcept {
  lock_state();
  Arrival result = reason;
  if (generation.load(std::memory_order_relaxed) != arrived_in) {
    result = outcome(arrived_in);
  } else if (broken.load(std::memory_order_relaxed) != 0) {
    result = Arrival::kBroken;
  } else if (const std::uint32_t others = arrived.load(std::memory_order_relaxed); others != 0) {
    arrived.store(others - 1, std::memory_order_relaxed);
  }
  unlock_state();
  return result;
}

BarrierState::Arrival BarrierState::arrive(const os::Deadline& deadline) noexcept {
  lock_state();
  const std::uint64_t arrived_in = generation.load(std::memory_order_relaxed);
  const bool is_broken = broken.load(std::memory_order_acquire) != 0;
  const std::uint32_t now = arrived.load(std::memory_order_relaxed) + 1;
  const bool last = !is_broken && now >= parties.load(std::memory_order_relaxed);
  if (last) {
    begin_generation(false);
  } else if (!is_broken) {
    arrived.store(now, std::memory_order_relaxed);
  }
  os::fault_point();
  unlock_state();
  if (is_broken) return Arrival::kBroken;
  if (last) {
    waiters.wake_all();
    return Arrival::kPassed;
  }
  const auto over = [&] {
    return generation.load(std::memory_order_acquire) != arrived_in || broken.load(std::memory_order_acquire) != 0;
  };
  const Waited waited = waiters.wait(deadline, true, over, [this] { look_for_dead_members(); });
  if (waited == Waited::kDone) return outcome(arrived_in);
  return withdraw(arrived_in, waited == Waited::kTimedOut ? Arrival::kTimedOut : Arrival::kInterrupted);
}

void BarrierState::reset() noexcept {
  lock_state();
  for (std::atomic<os::ThreadId>& member : members) {
    const os::ThreadId process = member.load(std::memory_order_relaxed);
    if (process != 0 && lock.realm().is_process_gone(process)) member.store(0, std::memory_order_release);
  }
  broken.store(0, std::memory_order_release);
  begin_generation(true);
  unlock_state();
  waiters.wake_all();
}

void BarrierState::look_for_dead_members() noexcept {
  for (std::atomic<os::ThreadId>& member : members) {
    const os::ThreadId process = member.load(std::memory_order_acquire);
    if (process == 0 || process == os::current_process_id() || !lock.realm().is_process_gone(process)) continue;
    lock_state();                                                              // not in the middle of a reset
    if (member.load(std::memory_order_relaxed) == process) break_by(process);  // it stays: reset() forgets it
    unlock_state();
  }
}

std::size_t BarrierState::enlist() noexcept {
  for (std::size_t place = 0; place < kMembers; ++place) {
    os::ThreadId nobody = 0;
    if (members[place].compare_exchange_strong(nobody, os::current_process_id(), std::memory_order_acq_rel)) {
      os::fault_point();
      return place;
    }
  }
  return kMembers;
}

void BarrierState::leave(std::size_t place) noexcept {
  os::ThreadId me = os::current_process_id();  // in a fork of the member it is another: nothing happens
  members[place].compare_exchange_strong(me, 0, std::memory_order_acq_rel);
  os::fault_point();
}

Membership::Membership(std::shared_ptr<shm::Block> block) : block_(std::move(block)), place_(state().enlist()) {
  if (place_ == BarrierState::kMembers) {
    throw Error(describe("barrier", *block_) + " is in the hands of " + std::to_string(BarrierState::kMembers) +
                " processes, and can watch no more");
  }
}

Membership::~Membership() { state().leave(place_); }

BarrierState& Membership::state() const noexcept {
  return *reinterpret_cast<BarrierState*>(block_->data() + sizeof(SharedHeader));
}

}  // namespace sync

namespace {

std::shared_ptr<shm::Block> make(std::optional<std::string_view> name, Count parties) {
  const std::size_t number = parties;
  if (number == 0 || number > std::numeric_limits<std::uint32_t>::max()) {
    throw InvalidArgument("a barrier needs between 1 and 4294967295 parties, got " + std::to_string(number));
  }
  return sync::make_state<sync::BarrierState>(name, [number](sync::BarrierState& state) {
    state.parties.store(static_cast<std::uint32_t>(number), std::memory_order_relaxed);
  });
}

}  // namespace

Barrier::Barrier(std::shared_ptr<shm::Block> block, Adopted)
    : Handle(block), membership_(std::make_shared<sync::Membership>(std::move(block))) {}

Barrier::Barrier(Count parties) : Barrier(make(std::nullopt, parties), Adopted{}) {}

Barrier Barrier::create(std::string_view name, Count parties) { return adopt(make(name, parties)); }

Barrier Barrier::open(std::string_view name) {
  return adopt(sync::open_block(name, sync::kind_of<sync::BarrierState>()));
}

Barrier Barrier::open_or_create(std::string_view name, Count parties) {
  return sync::open_or_create_block([&] { return create(name, parties); }, [&] { return open(name); });
}

bool Barrier::arrive(const os::Deadline& deadline) {
  using Arrival = sync::BarrierState::Arrival;
  const Arrival arrival = state().arrive(deadline);
  const os::ThreadId dead = state().last_dead.load(std::memory_order_relaxed);
  switch (arrival) {
    case Arrival::kPassed:
      return true;
    case Arrival::kTimedOut:
      return false;
    case Arrival::kInterrupted:
      sync::throw_interrupted();
    case Arrival::kReset:
      if (dead == 0) throw Cancelled(sync::describe("barrier", *block()) + " was reset while this thread waited at it");
      break;
    case Arrival::kBroken:
      break;
  }
  throw OwnerDied("process " + std::to_string(os::thread_number(dead)) + ", a party of " +
                  sync::describe("barrier", *block()) + ", died: call reset() when another has taken its place");
}

}  // namespace drover::inline v1
