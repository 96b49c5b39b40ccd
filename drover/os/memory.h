// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

/// How much memory there is for this process and how much a process has. All sizes are bytes. Every function is
/// thread-safe and keeps nothing; `root` goes before /proc and the cgroup mounts. std::system_error comes only from
/// read_small_file (out of descriptors, I/O error).
namespace drover::inline v1::os {

struct AvailableMemory {
  /// The largest number when nothing is known.
  std::uint64_t bytes = std::numeric_limits<std::uint64_t>::max();
  /// Folder of the cgroup that is the tightest; empty when it is the machine.
  std::string cgroup;
};

struct ProcessMemory {
  std::uint64_t rss_bytes = 0;             ///< VmRSS
  std::uint64_t peak_rss_bytes = 0;        ///< VmHWM: the most that VmRSS ever was since the program started
  std::optional<std::uint64_t> pss_bytes;  ///< shared pages divided by the number of processes that map them
};

/// min(MemAvailable of the machine, CgroupMemory::room() of the own cgroup and each visible ancestor): what can be
/// reserved now without swapping or waking the out-of-memory killer. A snapshot: others allocate too.
AvailableMemory available_memory(const std::string& root = {});

/// nullopt when the process is gone or a zombie (the kernel has dropped its memory), or may not be looked at.
/// `with_pss` reads smaps_rollup, which walks all page tables (about 1 ms for each GB) and needs the right to ptrace
/// the process; pss_bytes stays empty without. The caller sees to it that the pid was not reused.
std::optional<ProcessMemory> process_memory(int pid, bool with_pss = false, const std::string& root = {});

/// How many processes the out-of-memory killer has ended in the own cgroup so far; where the kernel has no such counter
/// (before Linux 5.2), in it and below. nullopt when no cgroup counts. A child that died of SIGKILL while this rose was
/// most likely one of them.
std::optional<std::uint64_t> oom_kills(const std::string& root = {});

/// The same two for whoever can do without: nullopt instead of an exception too.
std::optional<ProcessMemory> process_memory_if_known(int pid) noexcept;
std::optional<std::uint64_t> oom_kills_if_known() noexcept;

/// Which deaths by SIGKILL the out-of-memory killer explains: each kill that the cgroup counts while a process lives
/// explains one, in the order in which they are seen, as several processes may have been killed at once.
class OomLedger {
 public:
  /// At a death by SIGKILL: the count when the process began, and now. False when either is unknown.
  bool explains(std::optional<std::uint64_t> at_start, std::optional<std::uint64_t> now) noexcept {
    if (!at_start || !now) return false;
    const std::uint64_t spent = std::max(explained_, *at_start);
    if (*now <= spent) return false;
    explained_ = spent + 1;
    return true;
  }

 private:
  std::uint64_t explained_ = 0;
};

/// MemAvailable in /proc/meminfo; MemFree on kernels without. Pure.
std::optional<std::uint64_t> parse_mem_available(std::string_view meminfo) noexcept;

/// VmRSS and VmHWM in /proc/PID/status. Pure.
std::optional<ProcessMemory> parse_process_status(std::string_view status) noexcept;

}  // namespace drover::inline v1::os
