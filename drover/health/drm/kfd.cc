// SPDX-License-Identifier: Apache-2.0
#include "drover/health/drm/kfd.h"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "drover/os/file_system.h"

namespace drover::inline v1::health::drm {
namespace {

constexpr const char* kTopology = "/sys/class/kfd/kfd/topology/nodes";
constexpr const char* kProcesses = "/sys/class/kfd/kfd/proc";

std::optional<std::uint64_t> number_in(const os::HostFolder& folder, const std::string& name) {
  const auto text = folder.text(name.c_str(), 64);
  return text ? os::parse_number(*text) : std::nullopt;
}

}  // namespace

std::string slot_of_properties(std::string_view properties) {
  const auto location = os::keyed_number(properties, "location_id");
  if (!location || *location == 0) return {};
  const std::uint64_t domain = os::keyed_number(properties, "domain").value_or(0);
  if (domain > 0xFFFFFFFFU) return {};
  // Bus, device and function; the bits above say which partition of the GPU it is.
  char slot[32];
  std::snprintf(slot, sizeof slot, "%04x:%02x:%02x.%x", static_cast<unsigned>(domain),
                static_cast<unsigned>(*location >> 8U & 0xFFU), static_cast<unsigned>(*location >> 3U & 0x1FU),
                static_cast<unsigned>(*location & 7U));
  return slot;
}

void Kfd::discover() {
  gpus_.clear();
  const os::HostFolder nodes(root_ + kTopology);
  for (const int number : nodes.numbers()) {
    const os::HostFolder node(nodes, std::to_string(number).c_str());
    const auto id = number_in(node, "gpu_id");
    if (!id || *id == 0) continue;  // a CPU, or a GPU that this cgroup may not see
    const std::string properties = node.text("properties", 16U << 10U).value_or(std::string());
    const std::uint64_t simds = os::keyed_number(properties, "simd_count").value_or(0);
    const std::uint64_t each = os::keyed_number(properties, "simd_per_cu").value_or(0);
    const std::string slot = slot_of_properties(properties);
    if (!slot.empty()) gpus_.push_back({std::to_string(*id), slot, each > 0 ? simds / each : 0});
  }
}

std::vector<KfdProcess> Kfd::processes(const std::string& slot) const {
  std::vector<KfdProcess> found;
  if (!present()) return found;
  const os::HostFolder all(root_ + kProcesses);
  for (const int pid : all.numbers()) {
    const os::HostFolder folder(all, std::to_string(pid).c_str());
    for (const Gpu& gpu : gpus_) {
      if (gpu.slot == slot) read_process(pid, folder, gpu, found);
    }
  }
  return found;
}

/// A process is listed for merely having opened /dev/kfd: only one that holds or does something counts.
void Kfd::read_process(int pid, const os::HostFolder& folder, const Gpu& gpu, std::vector<KfdProcess>& found) {
  const std::uint64_t memory = number_in(folder, "vram_" + gpu.id).value_or(0);
  const std::uint64_t copies = number_in(folder, "sdma_" + gpu.id).value_or(0);
  const auto units = number_in(folder, "stats_" + gpu.id + "/cu_occupancy");
  if (memory == 0 && copies == 0 && units.value_or(0) == 0) return;
  auto at = std::find_if(found.begin(), found.end(), [&](const KfdProcess& one) { return one.pid == pid; });
  if (at == found.end()) at = found.insert(at, KfdProcess{pid, 0, {Reading::kNotSupported, 0}, 0});
  at->memory_bytes += memory;  // of all partitions
  at->copy_us += copies;
  if (!units || gpu.compute_units == 0) return;
  const std::uint64_t percent = std::min<std::uint64_t>(
      100, (100 * std::min(*units, gpu.compute_units) + gpu.compute_units - 1) / gpu.compute_units);
  at->occupancy = {Reading::kOk, std::max(at->occupancy.ok() ? at->occupancy.value : 0, percent)};
}

}  // namespace drover::inline v1::health::drm
