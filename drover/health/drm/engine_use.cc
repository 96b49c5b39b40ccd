// SPDX-License-Identifier: Apache-2.0
#include "drover/health/drm/engine_use.h"

#include <algorithm>
#include <cmath>

namespace drover::inline v1::health::drm {
namespace {

constexpr double kShortest = 0.01;  // seconds between two looks that say something

/// amdgpu leaves out engines that a client never used; the others show all that there are.
bool leaves_out_unused(const Client& client) { return client.driver == "amdgpu"; }

/// gpu_busy_percent knows nothing of video and copies.
bool in_own_figure(const Client& client, const Engine& engine) {
  return client.driver != "amdgpu" || engine.name == "gfx" || engine.name == "compute";
}

bool counts(const Engine& engine) { return engine.ns || (engine.cycles && engine.total_cycles); }

Reading percent(double share) {
  if (!(share > 0)) return {Reading::kOk, 0};
  const double rounded = std::ceil(100 * std::min(share, 1.0) - 1e-9);  // sums of shares are not exact
  return {Reading::kOk, static_cast<std::uint64_t>(std::max(1.0, rounded))};
}

double most(const std::map<std::string, double>& shares) {
  double result = 0;
  for (const auto& [engine, share] : shares) result = std::max(result, share);
  return result;
}

}  // namespace

/// A counter may fall behind for a moment, the kernel's documentation says: then nothing was done.
double EngineUse::share_of(const OwnedClient& owned, const Engine& engine, double at, double before) {
  const std::uint64_t busy = engine.ns ? *engine.ns : *engine.cycles;
  Count& count = counters_[{owned.device, owned.client.id, engine.name}];
  const std::uint64_t more = busy > count.busy ? busy - count.busy : 0;
  count.busy = std::max(count.busy, busy);
  count.seen = at;
  double whole = 1e9 * (at - before);
  if (!engine.ns) {  // cycles of a clock that is the same for all clients
    const auto key = std::pair(owned.device, engine.name);
    const auto clock = clocks_.find(key);
    std::uint64_t& next = next_clocks_[key];
    next = std::max(next, *engine.total_cycles);
    const std::uint64_t from = clock != clocks_.end() ? clock->second : 0;
    whole = *engine.total_cycles > from ? static_cast<double>(*engine.total_cycles - from) : 0;
    if (!(whole > 0)) return more > 0 ? 1 : 0;
  }
  return static_cast<double>(more) / (whole * engine.capacity);
}

EngineUse::Shares EngineUse::add(std::size_t device, const std::vector<OwnedClient>& clients, double at,
                                 double before) {
  Shares result;
  std::map<int, std::map<std::string, double>> by_pid, told;
  std::map<std::string, double> all;
  const bool measured = before >= 0 && at - before >= kShortest;
  result.all = {measured ? Reading::kOk : Reading::kOneLook, 0};
  for (const OwnedClient& owned : clients) {
    if (owned.device != device) continue;
    Reading& reading = result.by_pid.emplace(owned.pid, Reading{Reading::kOk, 0}).first->second;
    const auto& engines = owned.client.engines;
    if (!std::any_of(engines.begin(), engines.end(), counts) && !leaves_out_unused(owned.client))
      reading.code = result.all.code = Reading::kNotSupported;
    for (const Engine& engine : engines) {
      if (!counts(engine)) continue;
      const double share = share_of(owned, engine, at, before);
      by_pid[owned.pid][engine.name] += share;
      if (in_own_figure(owned.client, engine)) told[owned.pid][engine.name] += share;
      all[engine.name] += share;
    }
  }
  for (auto& [pid, reading] : result.by_pid) {
    if (!measured) reading.code = Reading::kOneLook;
    if (reading.ok()) reading = percent(most(by_pid[pid]));
    result.told[pid] = 100 * std::min(most(told[pid]), 1.0);
  }
  if (result.all.ok()) result.all = percent(most(all));
  std::erase_if(counters_, [&](const auto& entry) {
    return std::get<0>(entry.first) == device && entry.second.seen != at;  // the client is gone
  });
  for (const auto& [key, clock] : next_clocks_) clocks_[key] = clock;
  next_clocks_.clear();
  return result;
}

}  // namespace drover::inline v1::health::drm
