// SPDX-License-Identifier: Apache-2.0
#include "drover/health/drm/probe.h"

#include <algorithm>
#include <utility>

#include "drover/os/host_files.h"

namespace drover::inline v1::health::drm {
namespace {

/// Engines that compute and nothing else; all others draw, copy or decode as well.
bool computes(const Client& client) {
  const auto busy = [](const Engine& engine) { return engine.ns.value_or(0) > 0 || engine.cycles.value_or(0) > 0; };
  bool compute = false, other = false;
  for (const Engine& engine : client.engines) {
    const bool copies = engine.name == "dma" || engine.name == "copy" || engine.name == "bcs";
    if (!busy(engine) || copies) continue;
    (engine.name == "compute" || engine.name == "ccs" ? compute : other) = true;
  }
  return compute && !other;
}

/// Many open a device and never use it.
bool idle_bystander(const Client& client) {
  if (client.video_bytes.value_or(0) > 0 || client.system_bytes.value_or(0) > 0) return false;
  return std::all_of(client.engines.begin(), client.engines.end(),
                     [](const Engine& engine) { return engine.ns.value_or(0) == 0 && engine.cycles.value_or(0) == 0; });
}

ProcessUse& use_of(std::vector<ProcessUse>& uses, int pid) {
  const auto at = std::find_if(uses.begin(), uses.end(), [&](const ProcessUse& use) { return use.pid == pid; });
  if (at != uses.end()) return *at;
  ProcessUse& added = uses.emplace_back();
  added.pid = pid;
  return added;
}

void add_memory(ProcessUse& use, const Device& device, const Client& client) {
  if (device.integrated) {
    use.memory = {Reading::kMachineMemory, 0};
  } else if (client.video_bytes) {
    const std::uint64_t before = use.memory.ok() ? use.memory.value : 0;
    use.memory = {Reading::kOk, before + std::min(*client.video_bytes, UINT64_MAX - before)};
  }
}

GpuSample sleeping_gpu() {
  GpuSample gpu;
  gpu.readings.fill({Reading::kAsleep, 0});
  gpu.processes = gpu.activity = {Reading::kAsleep, 0};
  return gpu;
}

}  // namespace

Probe::Probe(std::string root, bool container, bool wake)
    : root_(std::move(root)), container_(container), wake_(wake), scan_(root_), kfd_(root_) {
  rediscover();
}

/// Looks again when devices came or went; true when they did.
bool Probe::rediscover() {
  auto names = os::HostFolder(root_ + "/sys/class/drm").names().value_or(std::vector<std::string>());
  std::sort(names.begin(), names.end());
  if (names == names_) return false;
  names_ = std::move(names);
  devices_ = find_devices(root_);
  past_.assign(devices_.size(), Past());
  engines_ = EngineUse();
  if (!devices_.empty() && !container_) kfd_.discover();
  return true;
}

std::vector<GpuSample> Probe::look(const std::vector<ProcessBrief>& processes, double at,
                                   const std::vector<std::uint32_t>& leave_alone) {
  rediscover();
  std::vector<GpuSample> result;
  if (devices_.empty()) return result;
  const auto left = [&](std::size_t index) {
    return std::find(leave_alone.begin(), leave_alone.end(), index) != leave_alone.end();
  };
  std::vector<bool> closed;  // not to be asked
  for (std::size_t i = 0; i < devices_.size(); ++i) closed.push_back(left(i) || (!wake_ && asleep(devices_[i])));
  const bool all_closed = std::find(closed.begin(), closed.end(), false) == closed.end();
  const ClientList list = all_closed ? ClientList() : scan_.look(processes, at, devices_, closed, progress_);
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    if (left(i)) continue;
    GpuSample gpu = closed[i] ? sleeping_gpu() : look_at(i, list, at);
    gpu.index = static_cast<int>(i);
    devices_[i].identify(gpu);
    result.push_back(std::move(gpu));
  }
  progress_.at(Progress::kNone, "nothing");
  return result;
}

GpuSample Probe::look_at(std::size_t index, const ClientList& list, double at) {
  const Device& device = devices_[index];
  Past& past = past_[index];
  GpuSample gpu;
  gpu.unseen = list.unreadable;
  progress_.at(index, "its files under /sys");
  read_numbers(device, gpu);
  progress_.at(index, "the lists of KFD");
  const std::vector<KfdProcess> queues = kfd_.processes(device.slot);
  std::vector<ProcessUse> uses;
  const EngineUse::Shares shares = engines_.add(index, list.clients, at, past.looked);
  for (const OwnedClient& owned : list.clients) {
    if (owned.device != index || idle_bystander(owned.client)) continue;
    ProcessUse& use = use_of(uses, owned.pid);
    use.uses |= computes(owned.client) ? kUsesCompute : kUsesGraphics;
    use.share = shares.by_pid.at(owned.pid);
    use.told = shares.told.at(owned.pid);
    add_memory(use, device, owned.client);
  }
  add_queues(uses, queues, past);
  if (device.vendor == "intel") {
    gpu[Metric::kUtilCores] = list.unreadable > 0 ? Reading{Reading::kNoPermission, 0} : shares.all;
  }
  const auto energy = gpu[Metric::kEnergyMillijoules].number();
  if (!gpu[Metric::kPowerMilliwatts].ok() && energy && past.energy_mj >= 0 && past.looked >= 0 && at > past.looked) {
    const double milliwatts = std::max(0.0, *energy - past.energy_mj) / (at - past.looked);
    const bool possible = milliwatts <= static_cast<double>(kMostMilliwatts);
    gpu[Metric::kPowerMilliwatts] =
        possible ? Reading{Reading::kOk, static_cast<std::uint64_t>(milliwatts)} : Reading{Reading::kNoValue, 0};
  }
  fill_processes(gpu, std::move(uses), past.looked < 0);
  past.looked = at;
  past.energy_mj = energy.value_or(-1);
  return gpu;
}

void Probe::add_queues(std::vector<ProcessUse>& uses, const std::vector<KfdProcess>& queues, Past& past) const {
  std::map<int, std::uint64_t> copies;
  for (const KfdProcess& queue : queues) {
    ProcessUse& use = use_of(uses, queue.pid);
    use.computes = true;
    use.uses = (use.uses & ~kUsesGraphics) | kUsesCompute;
    // The same buffers are counted by the process's DRM client, on newer kernels.
    const std::uint64_t known = use.memory.ok() ? use.memory.value : 0;
    use.memory = {Reading::kOk, std::max(known, queue.memory_bytes)};
    use.occupancy = queue.occupancy;
    copies[queue.pid] = queue.copy_us;
    const auto before = past.copy_us.find(queue.pid);
    use.copied = before != past.copy_us.end() && queue.copy_us > before->second;
  }
  past.copy_us = std::move(copies);
}

}  // namespace drover::inline v1::health::drm
