// SPDX-License-Identifier: Apache-2.0
#include "drover/health/scenario/scenario_gpu.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "drover/health/drm/processes.h"
#include "drover/health/nvml/instance_use.h"

namespace drover::inline v1::health {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;
constexpr int kForeign = 700'000;  // how far the pids of another namespace are off

double sum_of(const Thing& thing, const char* name) {
  const auto at = thing.sums.find(name);
  return at == thing.sums.end() ? 0 : at->second;
}

void set(GpuSample& sample, const Thing& gpu, Metric metric, double value, int otherwise = Reading::kOk) {
  const int code = code_of(gpu, metric, otherwise);
  sample[metric] = {code, code == Reading::kOk ? static_cast<std::uint64_t>(std::max(0.0, value)) : 0};
}

void set_memory(GpuSample& sample, const World& world, const Thing& gpu) {
  double used = gpu.number("extra") * kGiB;
  for (const Thing* const on : world.all("on")) {
    if (on->id == gpu.id && on->number("ended") == 0) used += on->number("vram") * kGiB;
  }
  set(sample, gpu, Metric::kMemoryTotal, gpu.number("total", 80) * kGiB);
  set(sample, gpu, Metric::kMemoryUsed, used);
  set(sample, gpu, Metric::kMemoryReserved, 0.5 * kGiB, gpu.number("v1") != 0 ? Reading::kNoFunction : Reading::kOk);
}

/// "48@300,31@20": Xids of the kernel's log, and how many seconds before time 0 they came.
void set_log(GpuSample& sample, const Thing& gpu) {
  std::string rest = gpu.text("log");
  while (!rest.empty()) {
    const std::string one = rest.substr(0, rest.find(','));
    rest.erase(0, one.size() + 1);
    const std::size_t at = std::min(one.find('@'), one.size() - 1);
    sample.logged.push_back({static_cast<std::uint64_t>(std::strtod(one.c_str(), nullptr)),
                             Scenario::kUptime - std::strtod(one.c_str() + at + 1, nullptr), sample.bus.substr(4, 10),
                             4000, "python"});
  }
}

/// "1:0:20,2:0:20": parts by GPU instance, compute instance and GiB. With gpm=1 their use is told.
void set_instances(GpuSample& sample, const World& world, const Thing& gpu) {
  std::string rest = gpu.text("instances");
  while (!rest.empty()) {
    const std::string one = rest.substr(0, rest.find(','));
    rest.erase(0, one.size() + 1);
    GpuInstance instance;
    char* end = nullptr;
    instance.gpu_instance = static_cast<std::uint32_t>(std::strtoul(one.c_str(), &end, 10));
    if (*end == ':') instance.compute_instance = static_cast<std::uint32_t>(std::strtoul(end + 1, &end, 10));
    const double total = *end == ':' ? std::strtod(end + 1, nullptr) : 0;
    double used = 0, busy = 0;
    for (const Thing* const on : world.all("on")) {
      if (on->id != gpu.id || on->number("gi", -1) != instance.gpu_instance || on->number("ended") != 0) continue;
      used += on->number("vram");
      busy += on->number("sm");
    }
    instance.name = sample.name + " MIG";
    instance.uuid = "MIG-" + std::to_string(gpu.id) + "-" + std::to_string(instance.gpu_instance);
    instance.memory_total = {Reading::kOk, static_cast<std::uint64_t>(total * kGiB)};
    instance.memory_used = {Reading::kOk, static_cast<std::uint64_t>(used * kGiB)};
    const int code = gpu.number("gpm") == 0 ? static_cast<int>(Reading::kMig)
                     : world.at <= 0        ? static_cast<int>(Reading::kOneLook)
                                            : Reading::kOk;
    instance.cores = {code, code == Reading::kOk ? static_cast<std::uint64_t>(std::min(busy, 100.0)) : 0};
    sample.instances.push_back(std::move(instance));
  }
}

void set_processes(GpuSample& sample, const World& world, const Thing& gpu) {
  sample.processes = {static_cast<int>(gpu.number("list", gpu.number("lost") != 0 ? Reading::kGpuLost : 0)), 0};
  bool active = false;
  for (const Thing* const on : world.all("on")) {
    if (on->id != gpu.id || on->number("ended") != 0) continue;
    std::uint32_t uses = 0;
    for (const char c : on->text("uses", "C")) uses |= c == 'G' ? kUsesGraphics : c == 'M' ? kUsesMps : kUsesCompute;
    const bool unknown = on->text("vram") == "na";
    const Reading memory{unknown ? Reading::kNoValue : Reading::kOk,
                         unknown ? 0 : static_cast<std::uint64_t>(on->number("vram") * kGiB)};
    if (sample.processes.ok()) {
      GpuProcessRow& row = sample.rows.emplace_back(GpuProcessRow{on->other, uses, memory});
      if (on->has("gi")) row.gpu_instance = static_cast<std::uint32_t>(on->number("gi"));
      if (on->has("gi")) row.compute_instance = static_cast<std::uint32_t>(on->number("ci"));
    }
    const auto cores = static_cast<std::uint32_t>(on->number("sm")),
               busy = static_cast<std::uint32_t>(on->number("mem"));
    if (cores == 0 && busy == 0) continue;
    active = true;
    sample.active.push_back({on->other + (gpu.number("foreign") != 0 ? kForeign : 0), cores, busy});
  }
  const int code = static_cast<int>(gpu.number("activity", sample.processes.ok() ? 0 : sample.processes.code));
  sample.activity = {code != 0 || active ? code : Reading::kNotFound, 0};
  if (code != 0) sample.active.clear();
  std::sort(sample.rows.begin(), sample.rows.end(),
            [](const GpuProcessRow& a, const GpuProcessRow& b) { return a.pid < b.pid; });
}

/// Of the whole GPU: what is set, else the sum of its processes.
double utilization(const World& world, const Thing& gpu, const char* key, const char* of_process) {
  if (gpu.has(key)) return gpu.number(key);
  double sum = 0;
  for (const Thing* const on : world.all("on")) {
    if (on->id == gpu.id && on->number("ended") == 0) sum += on->number(of_process);
  }
  return std::min(sum, 100.0);
}

}  // namespace

int code_of(const Thing& gpu, Metric metric, int otherwise) {
  const std::string key = std::string("code.") + metric_name(metric);
  if (gpu.has(key)) return static_cast<int>(gpu.number(key));
  if (gpu.number("lost") != 0) return Reading::kGpuLost;
  return otherwise;
}

bool is_nvidia(const Thing& gpu) { return gpu.text("vendor", "nvidia") == "nvidia"; }

std::string slot_of(const Thing& gpu) {
  return gpu.number("integrated") != 0 ? "0000:00:02.0" : "0000:0" + std::to_string(gpu.id + 1) + ":00.0";
}

namespace {

void set_kernel_numbers(GpuSample& sample, const World& world, const Thing& gpu) {
  const bool integrated = gpu.number("integrated") != 0, amd = sample.vendor == "amd";
  double used = gpu.number("extra") * kGiB;
  for (const Thing* const on : world.all("on")) {
    if (on->id == gpu.id && on->number("ended") == 0) used += on->number("vram") * kGiB;
  }
  const int own = integrated ? Reading::kMachineMemory : Reading::kOk,
            at_amd = amd ? Reading::kOk : Reading::kNotSupported;
  set(sample, gpu, Metric::kMemoryTotal, gpu.number("total", 64) * kGiB, own);
  set(sample, gpu, Metric::kMemoryUsed, used, amd ? own : integrated ? own : Reading::kNotSupported);
  set(sample, gpu, Metric::kUtilCores, utilization(world, gpu, "util", "sm"));
  set(sample, gpu, Metric::kUtilMemory, utilization(world, gpu, "memutil", "mem"), at_amd);
  set(sample, gpu, Metric::kPowerMilliwatts, 1e3 * gpu.number("power", 60));
  set(sample, gpu, Metric::kPowerLimitMilliwatts, 1e3 * gpu.number("limit", 300));
  set(sample, gpu, Metric::kTemperature, gpu.number("temp", 40));
  set(sample, gpu, Metric::kClockCoresMhz, gpu.number("clock", 1700));
  set(sample, gpu, Metric::kEccUncorrected, gpu.number("ecc"), at_amd);
  set(sample, gpu, Metric::kMinor, 128 + gpu.id);
}

/// AMD's and Intel's, of which the kernel tells.
GpuSample kernel_gpu_of(const World& world, const Thing& gpu) {
  GpuSample sample;
  sample.index = gpu.id;
  sample.vendor = gpu.text("vendor");
  const bool amd = sample.vendor == "amd";
  sample.name = gpu.text("name", amd ? "AMD Instinct MI210" : "Intel GPU 56a0");
  sample.bus = slot_of(gpu);
  sample.uuid = amd ? "AMD-00000000000000a" + std::to_string(gpu.id) : "PCI-" + sample.bus;
  sample.readings.fill({Reading::kNotSupported, 0});
  if (gpu.text("runtime") == "suspended") {
    sample.readings.fill({Reading::kAsleep, 0});
    sample.processes = sample.activity = {Reading::kAsleep, 0};
    return sample;
  }
  set_kernel_numbers(sample, world, gpu);
  std::vector<drm::ProcessUse> uses;
  for (const Thing* const on : world.all("on")) {
    if (on->id != gpu.id || on->number("ended") != 0 || on->number("foreign") != 0) continue;
    drm::ProcessUse& use = uses.emplace_back();
    use.pid = on->other;
    use.computes = on->number("kfd") != 0;
    use.uses = use.computes || on->text("uses", "C") == "C" ? kUsesCompute : kUsesGraphics;
    use.memory = {gpu.number("integrated") != 0 ? Reading::kMachineMemory : Reading::kOk,
                  static_cast<std::uint64_t>(on->number("vram") * kGiB)};
    use.share = {Reading::kOk, use.computes ? 0 : static_cast<std::uint64_t>(on->number("sm"))};
    if (on->has("occupancy")) use.occupancy = {Reading::kOk, static_cast<std::uint64_t>(on->number("occupancy"))};
  }
  drm::fill_processes(sample, std::move(uses), world.at <= 0);
  return sample;
}

void set_numbers(GpuSample& sample, const World& world, const Thing& gpu) {
  set(sample, gpu, Metric::kUtilCores, utilization(world, gpu, "util", "sm"));
  set(sample, gpu, Metric::kUtilMemory, utilization(world, gpu, "memutil", "mem"));
  set(sample, gpu, Metric::kPowerMilliwatts, 1e3 * gpu.number("power", 60));
  set(sample, gpu, Metric::kPowerLimitMilliwatts, 1e3 * gpu.number("limit", 400));
  set(sample, gpu, Metric::kEnergyMillijoules, 1e9 + 1e3 * sum_of(gpu, "power"));
  set(sample, gpu, Metric::kTemperature, gpu.number("temp", 40));
  set(sample, gpu, Metric::kClockCoresMhz, gpu.number("clock", 1410));
  set(sample, gpu, Metric::kClockMemoryMhz, 1593);
  set(sample, gpu, Metric::kClockReasons, gpu.number("reasons", 0));
  set(sample, gpu, Metric::kPcieSendKilobytes, gpu.number("pcie") * 500);  // MB/s, both ways together
  set(sample, gpu, Metric::kPcieReceiveKilobytes, gpu.number("pcie") * 500);
  const int links = gpu.has("nvlink") ? Reading::kOk : Reading::kNotSupported;
  set(sample, gpu, Metric::kNvlinkSendKib, 1000 + sum_of(gpu, "nvlink") * 1e6 / 2048, links);
  set(sample, gpu, Metric::kNvlinkReceiveKib, 1000 + sum_of(gpu, "nvlink") * 1e6 / 2048, links);
  set(sample, gpu, Metric::kEccUncorrected, gpu.number("ecc"));
  set(sample, gpu, Metric::kRemapPending, gpu.number("pending"));
  set(sample, gpu, Metric::kRemapFailed, gpu.number("failed"));
  set(sample, gpu, Metric::kRecoveryAction, gpu.number("recovery"));
  set(sample, gpu, Metric::kMig, gpu.number("mig"));
  set(sample, gpu, Metric::kMinor, gpu.id);
}

/// Of Hopper and later.
void set_counters(GpuSample& sample, const World& world, const Thing& gpu) {
  const int counters = gpu.number("gpm") == 0 || gpu.number("mig") != 0 ? Reading::kNotSupported
                       : world.at <= 0                                  ? static_cast<int>(Reading::kOneLook)
                                                                        : Reading::kOk;
  set(sample, gpu, Metric::kOccupancy, gpu.number("occupancy"), counters);
  set(sample, gpu, Metric::kTensor, gpu.number("tensor"), counters);
  set(sample, gpu, Metric::kMemoryTraffic, gpu.number("dram"), counters);
}

}  // namespace

GpuSample gpu_of(const World& world, const Thing& gpu) {
  if (!is_nvidia(gpu)) return kernel_gpu_of(world, gpu);
  GpuSample sample;
  sample.index = gpu.id;
  sample.name = gpu.text("name", "NVIDIA A100-SXM4-80GB");
  sample.uuid = gpu.text("uuid", "GPU-0000000" + std::to_string(gpu.id));
  sample.bus = "00000000:0" + std::to_string(gpu.id + 1) + ":00.0";
  sample.stuck_in = gpu.text("stuck");
  if (!sample.stuck_in.empty()) {
    sample.readings.fill({Reading::kTimeout, 0});
    sample.processes = sample.activity = {Reading::kTimeout, 0};
    return sample;
  }
  set_memory(sample, world, gpu);
  set_numbers(sample, world, gpu);
  set_counters(sample, world, gpu);
  set_processes(sample, world, gpu);
  set_log(sample, gpu);
  set_instances(sample, world, gpu);
  if (gpu.number("mig") != 0) {
    sample[Metric::kUtilCores] = sample[Metric::kUtilMemory] = {Reading::kMig, 0};
    nvml::judge_instances(sample);
  }
  if (gpu.has("xid")) sample.xids.push_back(static_cast<std::uint64_t>(gpu.number("xid")));
  return sample;
}

}  // namespace drover::inline v1::health
