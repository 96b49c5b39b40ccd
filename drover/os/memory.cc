// SPDX-License-Identifier: Apache-2.0
#include "drover/os/memory.h"

#include <algorithm>

#include "drover/os/cgroup.h"
#include "drover/os/file_system.h"

namespace drover::inline v1::os {
namespace {

/// The kernel's "kB" are 1,024 bytes.
std::optional<std::uint64_t> keyed_kib(std::string_view text, std::string_view key) noexcept {
  const auto kib = keyed_number(text, key);
  if (!kib || *kib > (std::numeric_limits<std::uint64_t>::max() >> 10U)) return std::nullopt;
  return *kib << 10U;
}

}  // namespace

std::optional<std::uint64_t> parse_mem_available(std::string_view meminfo) noexcept {
  const auto available = keyed_kib(meminfo, "MemAvailable:");
  return available ? available : keyed_kib(meminfo, "MemFree:");
}

std::optional<ProcessMemory> parse_process_status(std::string_view status) noexcept {
  const auto rss = keyed_kib(status, "VmRSS:");
  if (!rss) return std::nullopt;
  // The two lines are not read at one instant, and the kernel's counters are approximate.
  return ProcessMemory{*rss, std::max(*rss, keyed_kib(status, "VmHWM:").value_or(0)), std::nullopt};
}

AvailableMemory available_memory(const std::string& root) {
  AvailableMemory result;
  if (const auto meminfo = read_small_file(root + "/proc/meminfo")) {
    result.bytes = parse_mem_available(*meminfo).value_or(result.bytes);
  }
  for (const CgroupMemory& memory : cgroup_memory(root)) {
    const auto room = memory.room();
    if (!room || *room >= result.bytes) continue;
    result.bytes = *room;
    result.cgroup = memory.directory;
  }
  return result;
}

std::optional<ProcessMemory> process_memory(int pid, bool with_pss, const std::string& root) {
  const std::string folder = root + "/proc/" + std::to_string(pid);
  const auto status = read_small_file(folder + "/status");
  if (!status) return std::nullopt;
  auto memory = parse_process_status(*status);
  if (memory && with_pss) {
    if (const auto rollup = read_small_file(folder + "/smaps_rollup")) memory->pss_bytes = keyed_kib(*rollup, "Pss:");
  }
  return memory;
}

std::optional<std::uint64_t> oom_kills(const std::string& root) {
  const CgroupOomKills kills = cgroup_oom_kills(root);
  return kills.own ? kills.own : kills.subtree;
}

std::optional<ProcessMemory> process_memory_if_known(int pid) noexcept {
  try {
    return process_memory(pid);
  } catch (...) {
    return std::nullopt;
  }
}

std::optional<std::uint64_t> oom_kills_if_known() noexcept {
  try {
    return oom_kills();
  } catch (...) {
    return std::nullopt;
  }
}

}  // namespace drover::inline v1::os
