// SPDX-License-Identifier: Apache-2.0
#include "drover/sync/queue_parties.h"

#include <algorithm>

#include "drover/os/fault_point.h"

namespace drover::inline v1::sync {
namespace {

constexpr os::ThreadId bit(Role role) noexcept { return static_cast<os::ThreadId>(role); }
constexpr os::ThreadId kRoles = bit(Role::kPushes) | bit(Role::kPops);

constexpr bool might(os::ThreadId party, Role role) noexcept {
  const os::ThreadId roles = party & kRoles;
  return roles == 0 || (roles & bit(role)) != 0;
}

}  // namespace

bool Parties::take_free(os::ThreadId me, std::size_t& place) noexcept {
  for (place = 0; place < kPlaces; ++place) {
    os::ThreadId nobody = 0;
    if (places_[place].compare_exchange_strong(nobody, me, std::memory_order_acq_rel)) return true;
  }
  return false;
}

bool Parties::take_of_dead(os::ThreadId me, std::size_t& place) noexcept {
  for (place = 0; place < kPlaces; ++place) {
    os::ThreadId seen = places_[place].load(std::memory_order_acquire);
    if (os::process_liveness(seen) != os::Liveness::kDead) continue;
    if (places_[place].compare_exchange_strong(seen, me, std::memory_order_acq_rel)) return true;
  }
  return false;
}

std::size_t Parties::join() noexcept {
  const os::ThreadId me = os::current_process_id();
  std::size_t place = 0;
  if (!take_free(me, place) && !take_of_dead(me, place)) {
    unlisted_.fetch_add(1, std::memory_order_acq_rel);
    os::fault_point();
    return kUnlisted;
  }
  os::fault_point();
  return place;
}

void Parties::leave(std::size_t place) noexcept {
  if (place >= kPlaces) {
    std::uint32_t count = unlisted_.load(std::memory_order_relaxed);
    while (count != 0 && !unlisted_.compare_exchange_weak(count, count - 1, std::memory_order_acq_rel)) {
    }
  } else {
    places_[place].store(0, std::memory_order_release);
    os::fault_point();
    count_active();
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with that of another who leaves at the same time
}

void Parties::mark(std::size_t place, Role role) noexcept {
  if (place >= kPlaces) return;
  places_[place].fetch_or(bit(role), std::memory_order_acq_rel);
  count_active();
}

void Parties::count_active() noexcept {
  std::uint32_t count = 0;
  for (const auto& place : places_) count += (place.load(std::memory_order_relaxed) & kRoles) != 0 ? 1 : 0;
  active_.store(count, std::memory_order_relaxed);
}

std::optional<os::ThreadId> Parties::deserted_by(Role role, std::span<const os::ThreadId> known) const noexcept {
  const os::ThreadId me = os::current_process_id() & os::kThreadIdMask;
  std::optional<os::ThreadId> dead;
  if (unlisted_.load(std::memory_order_acquire) != 0) return dead;
  for (const auto& place : places_) {
    const os::ThreadId party = place.load(std::memory_order_acquire);
    const os::ThreadId id = party & os::kThreadIdMask;
    if (party == 0 || id == me) continue;
    if (os::process_liveness(party) == os::Liveness::kDead) {
      if (std::find(known.begin(), known.end(), id) == known.end()) dead = id;
    } else if (might(party, role)) {
      return std::nullopt;
    }
  }
  return dead;
}

bool Parties::empty() const noexcept {
  for (const auto& place : places_) {
    if (place.load(std::memory_order_acquire) != 0) return false;
  }
  return unlisted_.load(std::memory_order_acquire) == 0;
}

}  // namespace drover::inline v1::sync
