// SPDX-License-Identifier: Apache-2.0
#include "drover/sync/barrier.h"

#include <algorithm>
#include <string>

#include "drover/os/fault_point.h"
#include "drover/sync/in_process.h"

namespace drover::inline v1 {
namespace sync {

namespace {

constexpr std::uint64_t kArrived = BarrierState::kMostParties;
constexpr std::uint32_t kResets = 0x7F;

std::uint32_t generation(std::uint64_t word) noexcept { return static_cast<std::uint32_t>(word >> 32U); }
std::uint32_t resets(std::uint64_t word) noexcept { return static_cast<std::uint32_t>(word >> 25U) & kResets; }

/// Nobody has arrived in it, and nothing is broken.
std::uint64_t next_generation(std::uint64_t word, bool by_reset) noexcept {
  const std::uint32_t began = (resets(word) << 1U | (by_reset ? 1U : 0U)) & kResets;
  return std::uint64_t{generation(word) + 1} << 32U | std::uint64_t{began} << 25U;
}

}  // namespace

bool BarrierState::change(std::uint64_t& seen, std::uint64_t to) noexcept {
  if (!word.compare_exchange_weak(seen, to, std::memory_order_acq_rel, std::memory_order_acquire)) return false;
  os::fault_point();
  return true;
}

/// What is told of a barrier at which one waited in the generation `arrived_in`.
BarrierState::Arrival BarrierState::outcome(std::uint64_t now, std::uint32_t arrived_in) noexcept {
  const std::uint32_t later = generation(now) - arrived_in;
  if (later == 0) return Arrival::kBroken;
  return (std::uint64_t{resets(now)} >> (later - 1) % 64 & 1U) != 0 && later <= 7 ? Arrival::kReset : Arrival::kPassed;
}

/// Not all came in time: as if the caller had not come.
BarrierState::Arrival BarrierState::withdraw(std::uint32_t arrived_in, Arrival reason) noexcept {
  std::uint64_t seen = word.load(std::memory_order_acquire);
  do {
    if (generation(seen) != arrived_in || (seen & kBroken) != 0) return outcome(seen, arrived_in);
    if ((seen & kArrived) == 0) return reason;  // written over by somebody
  } while (!change(seen, seen - 1));
  return reason;
}

/// Counts the caller in, unless it is broken. True: it was the last one, and has opened the barrier. `seen` is what it
/// found.
bool BarrierState::enter(std::uint64_t& seen) noexcept {
  seen = word.load(std::memory_order_acquire);
  for (;;) {
    if ((seen & kBroken) != 0) return false;
    const std::uint64_t now = (seen & kArrived) + 1;
    const bool last = now >= std::min(parties.load(std::memory_order_relaxed), kMostParties);
    std::uint64_t expected = seen;
    if (change(expected, last ? next_generation(seen, false) : seen + 1)) return last;
    seen = expected;
  }
}

BarrierState::Arrival BarrierState::arrive(const os::Deadline& deadline) noexcept {
  std::uint64_t seen = 0;
  const bool last = enter(seen);
  if ((seen & kBroken) != 0) return Arrival::kBroken;
  if (last) {
    waiters.wake_all();
    return Arrival::kPassed;
  }
  const std::uint32_t arrived_in = generation(seen);
  std::uint64_t now = 0;
  const auto over = [&] {
    now = word.load(std::memory_order_acquire);
    return generation(now) != arrived_in || (now & kBroken) != 0;
  };
  const Waited waited = waiters.wait(deadline, true, over, [this] { look_for_dead_members(); });
  if (waited == Waited::kDone) return outcome(now, arrived_in);
  return withdraw(arrived_in, waited == Waited::kTimedOut ? Arrival::kTimedOut : Arrival::kInterrupted);
}

/// The dead are forgotten before the new generation begins: who looks for them in it must not find them, and who found
/// them in the old one cannot break the new one.
void BarrierState::reset() noexcept {
  for (std::atomic<os::ThreadId>& member : members) {
    os::ThreadId process = member.load(std::memory_order_relaxed);
    if (process == 0 || !realm.is_process_gone(process)) continue;
    member.compare_exchange_strong(process, 0, std::memory_order_acq_rel);
    os::fault_point();
  }
  if (!is_broken()) dead.store(0, std::memory_order_relaxed);
  std::uint64_t seen = word.load(std::memory_order_acquire);
  while (!change(seen, next_generation(seen, true))) {
  }
  waiters.wake_all();
}

void BarrierState::break_by(os::ThreadId process, std::uint64_t seen) noexcept {
  dead.store(process, std::memory_order_relaxed);
  os::fault_point();
  const std::uint32_t in = generation(seen);
  while (generation(seen) == in && (seen & kBroken) == 0 && !change(seen, seen | kBroken)) {
  }
  waiters.wake_all();
}

void BarrierState::look_for_dead_members() noexcept {
  const std::uint64_t seen = word.load(std::memory_order_acquire);
  if ((seen & kBroken) != 0) return;
  for (std::atomic<os::ThreadId>& member : members) {
    const os::ThreadId process = member.load(std::memory_order_acquire);
    if (process == 0 || process == os::current_process_id() || !realm.is_process_gone(process)) continue;
    if (member.load(std::memory_order_acquire) == process) return break_by(process, seen);  // reset() forgets it
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

std::shared_ptr<const Membership> Membership::of_this_process(const std::shared_ptr<shm::Block>& block) {
  static auto& all = *new InProcess<const shm::Block*, const Membership>;  // handles may outlive statics
  return all.get(block.get(), [&] { return std::make_shared<const Membership>(block); });
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

std::shared_ptr<shm::Block> make(const sync::Naming& name, Count parties) {
  const std::size_t number = parties;
  if (number == 0 || number > sync::BarrierState::kMostParties) {
    throw InvalidArgument("a barrier needs between 1 and " + std::to_string(sync::BarrierState::kMostParties) +
                          " parties, got " + std::to_string(number));
  }
  return sync::make_state<sync::BarrierState>(name, [number](sync::BarrierState& state) {
    state.parties.store(static_cast<std::uint32_t>(number), std::memory_order_relaxed);
  });
}

}  // namespace

Barrier::Barrier(std::shared_ptr<shm::Block> block, Adopted)
    : Handle(std::move(block)), membership_(sync::Membership::of_this_process(Handle::block())) {}

Barrier::Barrier(Count parties) : Barrier(make(std::nullopt, parties), Adopted{}) {}

Barrier Barrier::create(std::string_view name, Count parties) { return adopt(make(name, parties)); }

Barrier Barrier::open(std::string_view name) {
  return adopt(sync::open_block(name, sync::kind_of<sync::BarrierState>()));
}

Barrier Barrier::open_or_create(std::string_view name, Count parties) {
  return adopt(make({name, sync::Naming::kOrOpen}, parties));
}

bool Barrier::arrive(const os::Deadline& deadline) {
  using Arrival = sync::BarrierState::Arrival;
  const Arrival arrival = state().arrive(deadline);
  const os::ThreadId dead = state().dead.load(std::memory_order_relaxed);
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
