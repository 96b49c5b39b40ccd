// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "drover/health/engine.h"
#include "drover/health/rules/identity.h"
#include "drover/os/host_files.h"

namespace drover::inline v1::health {
namespace {

constexpr double kBusyShare = 0.05;  // of one core, below which nobody is worth a line

Maybe<double> scaled(const GpuSample& gpu, Metric metric, double factor) {
  return {gpu[metric].number(factor), gpu[metric].why()};
}
Maybe<std::uint64_t> whole(const Reading& reading) {
  return {reading.ok() ? std::optional(reading.value) : std::nullopt, reading.why()};
}
Maybe<double> mean_of(const Spread& spread, const std::string& reason) {
  return {spread.count > 0 ? std::optional(0.01 * spread.mean) : std::nullopt, spread.count > 0 ? "" : reason};
}

ProcessReport describe_process(const Sample& last, int pid, const ProcessTrack* track, Source& source) {
  ProcessReport report;
  report.pid = pid;
  const ProcessBrief* const brief = find_process(last.host, pid);
  const ProcessDetail* const detail = find_detail(last.host, pid);
  report.state = brief != nullptr ? brief->state : '-';
  if (brief != nullptr) {
    report.parent = brief->parent;
    report.name = brief->name;
    report.start_ticks = brief->start_ticks;
    report.age_s = age_of(*brief, last.at);
  }
  if (detail != nullptr) {
    report.command = detail->command;
    if (detail->uid) report.user = source.user(*detail->uid);
    if (detail->inner_pid != 0) report.inner_pid = detail->inner_pid;
    const Job job = brief != nullptr ? job_of(last.host, *brief, *detail) : job_of(*detail);
    report.job = job.label;
    report.rank = job.rank;
    report.world_size = job.world_size;
    report.job_group = job.wide_group;
    report.environment_unread = !detail->environment_known && report.state != 'Z';
    if (job.scheduler == "docker" || job.scheduler == "podman" || job.scheduler == "kubernetes")
      report.container = job.id;
  }
  if (track != nullptr && track->seen == last.at && track->measured) report.cpu_share = track->cpu_share;
  return report;
}

std::string uses_text(std::uint32_t uses) {
  std::string text;
  if ((uses & kUsesCompute) != 0) text += 'C';
  if ((uses & kUsesGraphics) != 0) text += 'G';
  if ((uses & kUsesMps) != 0) text += 'M';
  return text;
}

std::vector<std::string> slow_reasons(const Reading& reasons) {
  struct Bit {
    std::uint64_t bit;
    const char* text;
  };
  static constexpr Bit kBits[] = {{0x4, "power cap"},
                                  {0x8, "hardware slowdown"},
                                  {0x20, "heat (software)"},
                                  {0x40, "heat (hardware)"},
                                  {0x80, "power brake"}};
  std::vector<std::string> texts;
  for (const Bit& one : kBits) {
    if (reasons.ok() && (reasons.value & one.bit) != 0) texts.emplace_back(one.text);
  }
  return texts;
}

std::string problem_of(const GpuSample& gpu) {
  if (!gpu.stuck_in.empty()) return "does not answer (in " + gpu.stuck_in + ")";
  if (!gpu.not_asked.empty()) return "was not asked: " + gpu.not_asked;
  const Reading& total = gpu[Metric::kMemoryTotal];
  if (total.code == Reading::kGpuLost || total.code == Reading::kResetRequired || total.code == Reading::kAsleep)
    return total.why();
  return {};
}

void add_logged_xids(GpuReport& report, const Sample& last, const GpuTrack& track) {
  for (auto xid = track.logged.rbegin(); xid != track.logged.rend() && report.logged_xids.size() < kLoggedXids; ++xid) {
    LoggedXidReport logged{xid->xid, std::max(0.0, last.at - xid->at), std::nullopt, xid->name};
    if (xid->pid > 0) logged.pid = xid->pid;
    report.logged_xids.push_back(std::move(logged));
  }
}

void add_instances(GpuReport& report, const GpuSample& gpu) {
  for (const GpuInstance& instance : gpu.instances) {
    GpuInstanceReport part;
    part.gpu_instance = instance.gpu_instance;
    part.compute_instance = instance.compute_instance;
    part.name = instance.name;
    part.uuid = instance.uuid;
    part.memory_total = whole(instance.memory_total);
    part.memory_used = whole(instance.memory_used);
    part.cores = {instance.cores.number(0.01), instance.cores.why()};
    report.instances.push_back(std::move(part));
  }
}

/// The processes on it, those with most memory first.
void add_processes(GpuReport& report, const Sample& last, const GpuSample& gpu, const GpuTrack& track,
                   const Tracker& tracker, Source& source) {
  for (const GpuProcessRow& row : gpu.rows) {
    const ProcessKey key = tracker.owner(last.host, gpu.uuid, row.pid);
    const HoldTrack* const hold = tracker.hold(gpu.uuid, key);
    GpuProcessReport process;
    if (key == key_of(last.host, row.pid)) {
      process.process = describe_process(last, row.pid, tracker.process(key), source);
    } else {  // it ended, and its number is another one's
      process.process.pid = row.pid;
      process.process.state = '-';
    }
    process.uses = uses_text(row.uses);
    if (row.gpu_instance != GpuProcessRow::kNoInstance) {
      process.gpu_instance = row.gpu_instance;
      process.compute_instance = row.compute_instance;
    }
    process.memory_bytes = whole(row.memory);
    const bool told = row.use_code == Reading::kOk;
    const std::string why = !track.cannot_judge.empty() ? track.cannot_judge
                            : told                      ? "not asked"
                                                        : Reading{row.use_code, 0}.why();
    process.cores = mean_of(hold != nullptr ? hold->cores : Spread(), why);
    process.memory = mean_of(hold != nullptr ? hold->memory : Spread(), why);
    report.processes.push_back(std::move(process));
  }
  std::stable_sort(report.processes.begin(), report.processes.end(),
                   [](const GpuProcessReport& a, const GpuProcessReport& b) {
                     return a.memory_bytes.value.value_or(0) > b.memory_bytes.value.value_or(0);
                   });
}

GpuReport describe_gpu(const Sample& last, const GpuSample& gpu, const GpuTrack& track, const Tracker& tracker,
                       Source& source) {
  GpuReport report;
  report.index = gpu.index;
  report.vendor = gpu.vendor;
  report.name = gpu.name;
  report.uuid = gpu.uuid;
  report.bus = gpu.bus;
  report.problem = problem_of(gpu);
  report.memory_total = whole(gpu[Metric::kMemoryTotal]);
  report.memory_used = whole(gpu[Metric::kMemoryUsed]);
  report.memory_reserved = whole(gpu[Metric::kMemoryReserved]);
  report.cores = mean_of(track.cores, gpu[Metric::kUtilCores].why());
  report.memory = mean_of(track.memory, gpu[Metric::kUtilMemory].why());
  report.power_w = scaled(gpu, Metric::kPowerMilliwatts, 1e-3);
  report.power_limit_w = scaled(gpu, Metric::kPowerLimitMilliwatts, 1e-3);
  report.temperature_c = scaled(gpu, Metric::kTemperature, 1);
  report.clock_mhz = scaled(gpu, Metric::kClockCoresMhz, 1);
  report.clock_memory_mhz = scaled(gpu, Metric::kClockMemoryMhz, 1);
  report.ecc_uncorrected = whole(gpu[Metric::kEccUncorrected]);
  report.remap_pending = whole(gpu[Metric::kRemapPending]);
  report.remap_failed = whole(gpu[Metric::kRemapFailed]);
  report.slowed_by = slow_reasons(gpu[Metric::kClockReasons]);
  report.xids.assign(track.xids.begin(), track.xids.end());
  add_logged_xids(report, last, track);
  if (gpu[Metric::kMig].ok()) report.mig = gpu[Metric::kMig].value == 1;
  add_instances(report, gpu);
  report.occupancy = scaled(gpu, Metric::kOccupancy, 0.01);
  report.tensor = scaled(gpu, Metric::kTensor, 0.01);
  report.memory_traffic = scaled(gpu, Metric::kMemoryTraffic, 0.01);
  add_processes(report, last, gpu, track, tracker, source);
  return report;
}

}  // namespace

void describe_gpus(Report& report, const Sample& last, const Tracker& tracker, Source& source) {
  int unseen = 0;
  for (const GpuSample& gpu : last.driver.gpus) unseen = std::max(unseen, gpu.unseen);
  if (unseen > 0) {
    report.warnings.push_back(
        std::to_string(unseen) +
        " processes may not be looked at, and may be on AMD's and Intel's GPUs too; root sees them");
  }
  for (const GpuSample& gpu : last.driver.gpus) {
    if (gpu.junk_rows > 0) {
      report.warnings.push_back("GPU " + std::to_string(gpu.index) + ": " + std::to_string(gpu.junk_rows) +
                                " rows of the driver made no sense and were left out");
    }
    const GpuTrack* const track = tracker.gpu(gpu.uuid);
    if (track != nullptr) report.gpus.push_back(describe_gpu(last, gpu, *track, tracker, source));
  }
}

void describe_own_place(Report& report, const std::vector<std::string>& environment) {
  ProcessDetail own;
  report.node = report.host;
  for (const std::string& variable : environment) {
    const std::size_t equals = variable.find('=');
    if (equals == variable.npos) continue;
    const std::string name = variable.substr(0, equals), value = variable.substr(equals + 1);
    if (name == "SLURMD_NODENAME" && !value.empty()) report.node = value;
    const std::vector<std::string>& known = job_variables();
    if (std::find(known.begin(), known.end(), name) != known.end()) own.environment[name] = value;
  }
  const Job job = job_of(own);
  report.rank = job.rank;
  report.world_size = job.world_size;
  report.job = job.label;
}

void describe_processes(Report& report, const Sample& first, Sample& last, Source& source, std::size_t most_busy) {
  report.processes = last.host.processes.size();
  struct Busy {
    int pid;
    double share;
  };
  std::vector<Busy> busy;
  const double seconds = last.at - first.at;
  for (const ProcessBrief& process : last.host.processes) {
    ++report.states[process.state];
    const ProcessBrief* const old = find_process(first.host, process.pid);
    const bool same = old != nullptr && old->start_ticks == process.start_ticks;
    const std::uint64_t base = same ? old->cpu_ticks : 0;
    if (!same && age_of(process, last.at) > seconds + 1) continue;
    if (process.cpu_ticks <= base || seconds <= 0) continue;
    const double share = static_cast<double>(process.cpu_ticks - base) / os::clock_ticks() / seconds;
    if (share >= kBusyShare) busy.push_back({process.pid, share});
  }
  std::stable_sort(busy.begin(), busy.end(), [](const Busy& a, const Busy& b) { return a.share > b.share; });
  if (busy.size() > most_busy) busy.resize(most_busy);
  std::set<int> pids;
  constexpr int kMostAncestors = 8;
  for (const Busy& one : busy) {  // who is above it tells whether its unit is another's
    const ProcessBrief* const process = find_process(last.host, one.pid);
    if (process == nullptr) continue;
    for (const ProcessBrief& at : Ancestors::and_itself(last.host, *process, kMostAncestors)) pids.insert(at.pid);
  }
  source.describe_processes(last, pids);
  for (const Busy& one : busy) {
    ProcessReport process = describe_process(last, one.pid, nullptr, source);
    process.cpu_share = one.share;
    report.busiest.push_back(std::move(process));
  }
}

}  // namespace drover::inline v1::health
