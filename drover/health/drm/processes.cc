// SPDX-License-Identifier: Apache-2.0
#include "drover/health/drm/processes.h"

#include <algorithm>
#include <cmath>

namespace drover::inline v1::health::drm {
namespace {

/// Below this the GPU's own figure is noise (a display that is refreshed).
constexpr std::uint64_t kNoise = 5;

/// What one process did, in percent, or why that is not known.
struct Verdict {
  int code = Reading::kOk;
  std::uint64_t value = 0;
};

/// Percent of what the GPU's own figure counts.
double told_of(const ProcessUse& use) {
  return use.share.ok() ? use.told.value_or(static_cast<double>(use.share.value)) : 0;
}

double sum_of(const std::vector<ProcessUse>& uses) {
  double sum = 0;
  for (const ProcessUse& use : uses) sum += told_of(use);
  return sum;
}

/// Queues of KFD: what the GPU did and no engine counted is theirs. Of several it is not known whose, but for those
/// that are seen at it. None is called idle unless the GPU rests or engines account for all that it did: its figure is
/// a whole number.
Verdict of_queues(const ProcessUse& use, const Reading& busy, double told, std::size_t computing) {
  const std::uint64_t own = use.share.ok() ? use.share.value : 0;
  const std::uint64_t seen = std::max({own, use.occupancy.ok() ? use.occupancy.value : 0, std::uint64_t{use.copied}});
  if (!busy.ok()) return {seen > 0 ? Reading::kOk : Reading::kUntold, seen};
  const double rest = static_cast<double>(busy.value) - told;
  const bool explained = rest < 1;
  if (computing == 1 && !explained) {
    return {Reading::kOk, std::max(seen, static_cast<std::uint64_t>(std::ceil(told_of(use) + rest - 1e-9)))};
  }
  if (seen > 0 || explained || busy.value < kNoise) return {Reading::kOk, seen};
  return {Reading::kUntold, 0};
}

Verdict of_engines(const ProcessUse& use, const Reading& busy, double told, std::size_t computing) {
  if (!use.share.ok()) return {use.share.code, 0};
  const bool untold = busy.ok() && busy.value >= kNoise && 2 * told < static_cast<double>(busy.value);
  if (use.share.value == 0 && untold && computing == 0) return {Reading::kUntold, 0};
  return {Reading::kOk, use.share.value};
}

}  // namespace

void fill_processes(GpuSample& gpu, std::vector<ProcessUse> uses, bool first) {
  std::sort(uses.begin(), uses.end(), [](const ProcessUse& a, const ProcessUse& b) { return a.pid < b.pid; });
  const Reading busy = gpu[Metric::kUtilCores], total = gpu[Metric::kMemoryTotal];
  const double told = sum_of(uses);
  const auto computing = static_cast<std::size_t>(
      std::count_if(uses.begin(), uses.end(), [](const ProcessUse& use) { return use.computes; }));
  gpu.processes = gpu.activity = {Reading::kOk, 0};
  int unknown = Reading::kOk;
  std::size_t known = 0;
  for (const ProcessUse& use : uses) {
    GpuProcessRow row{use.pid, use.uses, use.memory};
    if (total.ok() && row.memory.ok() && row.memory.value > total.value) row.memory = {Reading::kNoValue, 0};
    const Verdict verdict = first          ? Verdict{Reading::kOneLook, 0}
                            : use.computes ? of_queues(use, busy, told, computing)
                                           : of_engines(use, busy, told, computing);
    row.use_code = verdict.code;
    if (verdict.code == Reading::kOk) {
      ++known;
      const auto percent = static_cast<std::uint32_t>(std::min<std::uint64_t>(verdict.value, 100));
      if (percent > 0) gpu.active.push_back({use.pid, percent, 0});
    } else {
      unknown = verdict.code;
    }
    gpu.rows.push_back(row);
  }
  if (known == 0 && unknown != Reading::kOk) gpu.activity.code = unknown;
  if (gpu.activity.ok() && gpu.active.empty()) gpu.activity.code = Reading::kNotFound;
}

}  // namespace drover::inline v1::health::drm
