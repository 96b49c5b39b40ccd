// SPDX-License-Identifier: Apache-2.0
#include "drover/health/drm/clients.h"

#include <algorithm>
#include <optional>

namespace drover::inline v1::health::drm {
namespace {

constexpr std::size_t kMostDescriptors = 65'536, kMostInfo = 16U << 10U;
constexpr double kLookAgain = 30;   // seconds, for one that seems to sleep
constexpr int kThreadOfKernel = 2;  // kthreadd

/// Kernel threads have no descriptors, and neither has what ended.
bool can_hold(const ProcessBrief& process) {
  if (process.pid == kThreadOfKernel || process.parent == kThreadOfKernel) return false;
  return process.state != 'X' && (process.state != 'Z' || process.threads > 1);
}

/// Where the descriptors are: a first thread that ended has none, but the others may live on.
std::string folder_of(const os::HostFolder& proc, const ProcessBrief& process) {
  std::string name = std::to_string(process.pid);
  if (process.state != 'Z') return name;
  for (const int tid : os::HostFolder(proc, (name + "/task").c_str()).numbers()) {
    if (tid != process.pid) return name + "/task/" + std::to_string(tid);
  }
  return name;
}

std::optional<std::size_t> device_of_node(const std::vector<Device>& devices, std::string_view node) {
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const auto& nodes = devices[i].nodes;
    if (std::find(nodes.begin(), nodes.end(), node) != nodes.end()) return i;
  }
  return std::nullopt;
}

std::optional<std::size_t> device_of_slot(const std::vector<Device>& devices, const std::string& slot) {
  const auto at = std::find_if(devices.begin(), devices.end(), [&](const Device& one) { return one.slot == slot; });
  return at == devices.end() ? std::nullopt : std::optional(static_cast<std::size_t>(at - devices.begin()));
}

}  // namespace

bool ClientScan::worth_looking(const Known& known, const ProcessBrief& process, double at) const {
  return known.looked < 0 || known.holds || known.cpu_ticks != process.cpu_ticks || at - known.looked >= kLookAgain;
}

ClientList ClientScan::look(const std::vector<ProcessBrief>& processes, double at, const std::vector<Device>& devices,
                            const std::vector<bool>& closed, Progress& progress) {
  ClientList list;
  found_.clear();
  for (auto& [key, known] : known_) known.there = false;
  for (const ProcessBrief& process : processes) {
    if (!can_hold(process)) continue;
    Known& known = known_[{process.pid, process.start_ticks}];
    known.there = true;
    if (worth_looking(known, process, at)) {
      known.looked = at;
      known.cpu_ticks = process.cpu_ticks;
      look_at(process, known, devices, closed, progress);
    }
    if (known.unreadable) ++list.unreadable;
  }
  std::erase_if(known_, [](const auto& entry) { return !entry.second.there; });
  for (auto& [key, owned] : found_) list.clients.push_back(std::move(owned));
  return list;
}

void ClientScan::look_at(const ProcessBrief& process, Known& known, const std::vector<Device>& devices,
                         const std::vector<bool>& closed, Progress& progress) {
  const os::HostFolder folder(proc_, folder_of(proc_, process).c_str());
  const os::HostFolder descriptors(folder, "fd");
  const auto names = descriptors.names(kMostDescriptors);
  known.holds = false;
  known.unreadable = !names && descriptors.access() != os::Access::kGone;
  if (!names) return;
  for (const std::string& name : *names) {
    const std::string link = descriptors.link(name.c_str()).value_or(std::string());
    const std::string_view node = node_of(link);
    if (node.empty()) continue;
    known.holds = true;
    const auto by_node = device_of_node(devices, node);
    if (by_node && closed[*by_node]) continue;  // the question alone wakes some
    if (by_node) progress.at(*by_node, "what it tells of its processes");
    if (folder.read(("fdinfo/" + name).c_str(), text_, kMostInfo) != os::Access::kOk) continue;
    auto client = parse_fdinfo(text_);
    if (!client) continue;
    const auto by_slot = device_of_slot(devices, client->device);
    const auto device = by_slot ? by_slot : client->device.empty() ? by_node : std::nullopt;
    if (device) take(process, *device, std::move(*client));
  }
}

void ClientScan::take(const ProcessBrief& process, std::size_t device, Client client) {
  const auto key = std::pair(device, client.id);
  const auto at = found_.find(key);
  if (at == found_.end()) {
    found_.emplace(key, OwnedClient{process.pid, process.start_ticks, device, std::move(client)});
  } else if (std::pair(process.start_ticks, process.pid) < std::pair(at->second.start_ticks, at->second.pid)) {
    at->second.pid = process.pid;
    at->second.start_ticks = process.start_ticks;
  }
}

}  // namespace drover::inline v1::health::drm
