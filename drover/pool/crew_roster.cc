// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "drover/pool/crew.h"

namespace drover::inline v1::detail {

bool Roster::is_alive(std::uint32_t incarnation) const noexcept {
  return std::find(alive.begin(), alive.end(), incarnation) != alive.end();
}

Roster Crew::roster() const {
  const std::scoped_lock lock(mutex_);
  Roster result{.alive = {}, .newest = newest_};
  for (const Member& member : members_) {
    if (member.incarnation != 0) result.alive.push_back(member.incarnation);
  }
  return result;
}

Claimant Crew::claimant(std::uint32_t incarnation) const noexcept {
  const std::scoped_lock lock(mutex_);
  if (incarnation == 0 || incarnation > newest_) return Claimant::kNobody;
  const auto has_it = [&](const Member& member) { return member.incarnation == incarnation; };
  return std::any_of(members_.begin(), members_.end(), has_it) ? Claimant::kAlive : Claimant::kDead;
}

std::optional<WorkerDeath> Crew::death_of(std::uint32_t incarnation) const {
  const std::scoped_lock lock(mutex_);
  for (const WorkerDeath& death : deaths_) {
    if (death.incarnation == incarnation) return death;
  }
  return std::nullopt;
}

}  // namespace drover::inline v1::detail
