// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "drover/health/rules/tracker.h"

namespace drover::inline v1::health {
namespace {

using enum Limit;

constexpr std::uint64_t kSlowedByHardware = kHeatSlowdown | kPowerBrake;
constexpr std::uint64_t kSlowedByFault = kSlowedByHardware | 0x8 | 0x20;  // hardware in general, heat by software

const GpuActivityRow* find_activity(const GpuSample& gpu, int pid) {
  const auto at =
      std::find_if(gpu.active.begin(), gpu.active.end(), [&](const GpuActivityRow& row) { return row.pid == pid; });
  return at == gpu.active.end() ? nullptr : &*at;
}

bool listed(const GpuSample& gpu, int pid) {
  return std::any_of(gpu.rows.begin(), gpu.rows.end(), [&](const GpuProcessRow& row) { return row.pid == pid; });
}

/// MPS works for its clients: who of them had work done is not told then, and only their server is seen at work.
bool served_by_mps(const GpuSample& gpu, const HostSample& host) {
  return std::any_of(gpu.active.begin(), gpu.active.end(), [&](const GpuActivityRow& row) {
    const ProcessBrief* const process = find_process(host, row.pid);
    return process != nullptr && process->name.starts_with("nvidia-cuda-mps") && row.cores + row.memory > 0;
  });
}

bool mig_on(const GpuSample& gpu) { return gpu[Metric::kMig].ok() && gpu[Metric::kMig].value == 1; }

/// One that rests, or has little to do, may be held down for other reasons, and hurts nobody: it says nothing. Heat
/// lets go of one that works as soon as it is a little cooler, and takes it again: moments without it only count
/// against it.
void add_slowed(GpuTrack& track, const GpuSample& gpu, double at, double gap, int clear) {
  static constexpr std::uint64_t kAtWork = 50;  // percent
  const Reading reasons = gpu[Metric::kClockReasons], cores = gpu[Metric::kUtilCores];
  const std::uint64_t by = reasons.ok() ? reasons.value & kSlowedByHardware : 0;
  Streak& slowed = track.slowed;
  Holds answer = Holds::kUnknown;
  if (reasons.ok() && cores.ok() && cores.value >= kAtWork) answer = by != 0 ? Holds::kYes : Holds::kNo;
  if (answer == Holds::kYes) track.slowed_by = by;
  if (answer == Holds::kNo && slowed.holds() && at - slowed.last < Streak::kMoment) {
    slowed.since += 2 * (at - std::max(track.seen, slowed.last));  // once for itself, and once against what was
    if (slowed.since < slowed.last) answer = Holds::kUnknown;
  }
  slowed.add(at, at, answer, gap, clear);
}

}  // namespace

std::string cannot_judge(const GpuSample& gpu, const HostSample& host, bool container) {
  if (!gpu.stuck_in.empty()) return "the GPU does not answer";
  if (!gpu.not_asked.empty()) return "the GPU was not asked";
  if (mig_on(gpu) && !gpu.activity.ok() && gpu.activity.code != Reading::kNotFound) {
    return "MIG is on: the driver tells no utilisation of processes";
  }
  if (!gpu.processes.ok()) return "the list of processes is not available: " + gpu.processes.why();
  if (!gpu.activity.ok() && gpu.activity.code != Reading::kNotFound) {
    return "utilisation of processes is not available: " + gpu.activity.why();
  }
  for (const GpuProcessRow& row : gpu.rows) {
    if (container && find_process(host, row.pid) == nullptr) {
      return "the driver lists pids of the machine, and this is another pid namespace: pid " + std::to_string(row.pid) +
             " is foreign here";
    }
  }
  for (const GpuActivityRow& row : gpu.active) {
    if (row.cores > 0 && !listed(gpu, row.pid) && find_process(host, row.pid) == nullptr) {
      return "the driver's two lists do not agree: pid " + std::to_string(row.pid) +
             " is active but not listed (driver 560 does that in containers)";
    }
  }
  return {};
}

double unattributed_bytes(const GpuSample& gpu) {
  const Reading used = gpu[Metric::kMemoryUsed];
  if (!used.ok() || !gpu.processes.ok() || gpu.unseen > 0) return -1;
  double sum = 0;
  for (const GpuProcessRow& row : gpu.rows) {
    if (!row.memory.ok()) return -1;
    sum += static_cast<double>(row.memory.value);
  }
  return std::max(0.0, static_cast<double>(used.value) - sum);
}

void Tracker::add_gpu(const Sample& sample, const GpuSample& gpu, bool container,
                      const std::function<bool(int)>& exists) {
  GpuTrack& track = gpus_[gpu.uuid];
  const double seconds = track.seen >= 0 ? sample.at - track.seen : 0;
  track.cannot_judge = cannot_judge(gpu, sample.host, container);
  if (!gpu.xids.empty()) track.xid_at = sample.at;
  if (sample.at - track.xid_at > limits_[kR1Recent]) track.xids.clear();
  track.xids.insert(gpu.xids.begin(), gpu.xids.end());
  if (!gpu.logged.empty()) track.logged = gpu.logged;
  if (gpu[Metric::kUtilCores].ok()) track.cores.add(static_cast<double>(gpu[Metric::kUtilCores].value));
  if (gpu[Metric::kUtilMemory].ok()) track.memory.add(static_cast<double>(gpu[Metric::kUtilMemory].value));

  // Energy gives the exact mean power of the interval; the power reading is an average of a second, or of an instant.
  const auto energy = gpu[Metric::kEnergyMillijoules].number(1e-3);
  track.power_w = gpu[Metric::kPowerMilliwatts].number(1e-3).value_or(-1);
  if (energy && track.energy_j >= 0 && *energy > track.energy_j && seconds > 0.1) {
    track.power_w = (*energy - track.energy_j) / seconds;
  }
  track.energy_j = energy.value_or(-1);
  const auto sent = gpu[Metric::kNvlinkSendKib].number(1024), received = gpu[Metric::kNvlinkReceiveKib].number(1024);
  const double bytes = sent && received ? *sent + *received : -1;
  track.nvlink_rate = bytes >= track.nvlink_bytes && track.nvlink_bytes >= 0 && seconds > 0
                          ? (bytes - track.nvlink_bytes) / seconds
                          : -1;
  track.nvlink_bytes = bytes;
  const bool quiet = gpu[Metric::kUtilCores].ok() && gpu[Metric::kUtilCores].value == 0;
  if (quiet && track.power_w > 0) {
    track.idle_power_w = track.idle_power_w < 0 ? track.power_w : std::min(track.idle_power_w, track.power_w);
  }

  const double rest = unattributed_bytes(gpu);
  const auto total = gpu[Metric::kMemoryTotal].number();
  Holds missing = Holds::kUnknown;
  if (rest >= 0 && total && !mig_on(gpu)) {
    missing = rest > std::max(limits_[kR9Vram], limits_[kR9VramShare] * *total) ? Holds::kYes : Holds::kNo;
  }
  track.unattributed.add(sample.at, sample.at, missing, limits_[kGap], static_cast<int>(limits_[kClear]));
  add_slowed(track, gpu, sample.at, limits_[kGap], static_cast<int>(limits_[kClear]));
  track.outlived = find_outlived(sample, gpu, track.seen);
  for (const GpuProcessRow& row : gpu.rows) add_hold(sample, gpu, track, row, container, exists);
  track.seen = sample.at;
}

/// Rows that were another process's at the look before, and have stood since. When the driver sees the process at work
/// that has the number now, the row is its own.
std::map<int, ProcessKey> Tracker::find_outlived(const Sample& sample, const GpuSample& gpu, double before) const {
  std::map<int, ProcessKey> found;
  if (before < 0 || sample.at - before > limits_[kGap]) return found;
  for (const GpuProcessRow& row : gpu.rows) {
    const ProcessBrief* const process = find_process(sample.host, row.pid);
    if (process == nullptr || find_activity(gpu, row.pid) != nullptr) continue;
    for (auto at = holds_.lower_bound({gpu.uuid, {row.pid, 0}}); at != holds_.end(); ++at) {
      const auto& [uuid, key] = at->first;
      if (uuid != gpu.uuid || key.first != row.pid) break;
      // One that was not in the table counts only when it did not exist: it may have begun while that was read.
      const bool other = key.second != process->start_ticks && (key.second != 0 || at->second.gone.holds());
      if (at->second.seen == before && other) found[row.pid] = key;
    }
  }
  return found;
}

void Tracker::add_hold(const Sample& sample, const GpuSample& gpu, const GpuTrack& track, const GpuProcessRow& row,
                       bool container, const std::function<bool(int)>& exists) {
  const ProcessKey key = owner(sample.host, gpu.uuid, row.pid);
  const bool outlived = track.outlived.count(row.pid) > 0;
  HoldTrack& hold = holds_[{gpu.uuid, key}];
  const double from = hold.seen >= 0 ? hold.seen : sample.at;
  const auto add = [&](Streak& streak, Holds answer, double begin) {
    streak.add(begin, sample.at, answer, limits_[kGap], static_cast<int>(limits_[kClear]));
  };
  const bool gone = !container && (outlived || (key.second == 0 && !exists(row.pid)));
  add(hold.gone, gone ? Holds::kYes : Holds::kNo, sample.at);

  const GpuActivityRow* const activity = find_activity(gpu, row.pid);
  const bool served = activity == nullptr && served_by_mps(gpu, sample.host);
  const bool trusted = track.cannot_judge.empty() && row.use_code == Reading::kOk && !served;
  const double cores = activity != nullptr ? activity->cores : 0;
  const bool busy = activity != nullptr && (activity->cores > 0 || activity->memory > 0);
  if (trusted) {
    hold.cores.add(cores);
    hold.memory.add(activity != nullptr ? activity->memory : 0);
  }
  // What the server did may have been for it: whether it was is not known, but nobody can say that it rests.
  add(hold.idle, busy || served ? Holds::kNo : trusted ? Holds::kYes : Holds::kUnknown, from);

  const Holds spins = sample.at > from ? spinning(gpu, track, process(key), trusted ? cores : -1) : Holds::kUnknown;
  add(hold.spinning, spins, from);
  if (!hold.spinning.holds()) hold.power = Spread();
  if (spins == Holds::kYes) hold.power.add(track.power_w);
  hold.was_busy = hold.was_busy || (busy && spins == Holds::kNo);
  hold.seen = sample.at;
}

/// R6: looks fully busy, but moves nothing. Anything that is clearly moving says no; what is not known says nothing.
Holds Tracker::spinning(const GpuSample& gpu, const GpuTrack& track, const ProcessTrack* process, double cores) const {
  if (cores < 0 && gpu.rows.size() == 1 && gpu[Metric::kUtilCores].ok() && !mig_on(gpu)) {
    cores = static_cast<double>(gpu[Metric::kUtilCores].value);  // of the GPU: nobody else is on it
  }
  if (cores >= 0 && cores < 100 * limits_[kR6Cores]) return Holds::kNo;
  const auto memory = gpu[Metric::kUtilMemory].number(0.01);
  const auto sent = gpu[Metric::kPcieSendKilobytes].number(1e3),
             received = gpu[Metric::kPcieReceiveKilobytes].number(1e3);
  const auto limit = gpu[Metric::kPowerLimitMilliwatts].number(1e-3);
  const double few_watts = std::max(limit.value_or(0) * limits_[kR6PowerOfLimit],
                                    std::max(0.0, track.idle_power_w) * limits_[kR6PowerOfIdle]);
  const auto traffic = gpu[Metric::kMemoryTraffic].number(0.01), tensor = gpu[Metric::kTensor].number(0.01);
  if (memory && *memory > limits_[kR6Memory]) return Holds::kNo;
  if (traffic.value_or(0) > limits_[kR6Memory] || tensor.value_or(0) > limits_[kR6Memory]) return Holds::kNo;
  if (sent && received && *sent + *received > limits_[kR6Pcie]) return Holds::kNo;
  if (track.nvlink_rate > limits_[kR6Nvlink]) return Holds::kNo;
  if (process != nullptr && process->io_rate > limits_[kR6Io]) return Holds::kNo;
  if (track.power_w >= 0 && few_watts > 0 && track.power_w >= few_watts) return Holds::kNo;
  if (gpu[Metric::kClockReasons].ok() && (gpu[Metric::kClockReasons].value & kSlowedByFault) != 0) return Holds::kNo;
  const bool known = cores >= 0 && memory && sent && received && track.power_w >= 0 && few_watts > 0;
  return known ? Holds::kYes : Holds::kUnknown;
}

}  // namespace drover::inline v1::health
