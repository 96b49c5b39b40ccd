// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What the control groups of this process allow, for version 1, version 2 and both at once.
///
/// Sources: cgroups(7); Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst of the Linux kernel; proc(5)
/// for mountinfo. Every function is thread-safe and keeps nothing. Functions with a `root` read `root` + "/proc/self/…"
/// and `root` + the mount points found there; tests give the folder of a fixture. What is missing or malformed counts
/// as "no limit"; std::system_error comes only from read_small_file (out of descriptors, I/O error).
namespace drover::inline v1::os {

/// A line of /proc/self/cgroup.
struct CgroupMembership {
  bool unified = false;                  ///< version 2
  std::vector<std::string> controllers;  ///< version 1 only; a named hierarchy is "name=…"
  std::string path;                      ///< seen from the cgroup namespace of this process
};

/// A mounted cgroup hierarchy in /proc/self/mountinfo.
struct CgroupMount {
  bool unified = false;
  std::vector<std::string> controllers;  ///< version 1: all super options, the controllers among them
  std::string root;                      ///< which cgroup of the hierarchy lies at the mount point
  std::string mount_point;
};

/// The folders of a cgroup and all its visible ancestors, the own one first. Empty when it cannot be seen from here.
struct CgroupPath {
  bool unified = false;
  std::vector<std::string> directories;
};

/// At most `quota_us` of CPU time in each `period_us`, both over 0.
struct CpuQuota {
  std::uint64_t quota_us = 0;
  std::uint64_t period_us = 0;

  /// ceil(quota / period): the number of threads that this quota can keep busy, at least 1.
  std::size_t cpus() const noexcept;
};

/// Memory of one cgroup in bytes.
struct CgroupMemory {
  std::string directory;
  std::optional<std::uint64_t> limit;  ///< the smaller of the hard limit and memory.high (over which all is throttled)
  std::optional<std::uint64_t> usage;  ///< counts the page cache too
  std::uint64_t reclaimable = 0;       ///< inactive file pages: cache that goes before anything fails

  /// limit − (usage − reclaimable), never under 0; nullopt when there is no limit or no usage. The kubelet's "working
  /// set" has the same formula; without it a cgroup that has read large files would look full.
  std::optional<std::uint64_t> room() const noexcept;
};

/// How many processes the out-of-memory killer has ended, since the cgroup was made. The kernel counts before it sends
/// SIGKILL (mm/oom_kill.c), so who has seen a child die sees the number that includes it.
struct CgroupOomKills {
  std::optional<std::uint64_t> own;      ///< members of this very cgroup (version 1; memory.events.local, Linux 5.2)
  std::optional<std::uint64_t> subtree;  ///< with all cgroups below (version 2)
};

/// Pure parsers. Lines that make no sense are left out.
std::vector<CgroupMembership> parse_cgroup_memberships(std::string_view proc_self_cgroup);
std::vector<CgroupMount> parse_cgroup_mounts(std::string_view mountinfo);

/// version 2, cpu.max: `150000 100000`; nullopt for `max 100000`.
std::optional<CpuQuota> parse_cpu_max(std::string_view text) noexcept;
/// version 1, the contents of cpu.cfs_quota_us and cpu.cfs_period_us; nullopt for a quota of -1.
std::optional<CpuQuota> parse_cfs_quota(std::string_view quota, std::string_view period) noexcept;
/// A memory limit of either version; nullopt for `max` and for version 1's 2^63 rounded down to a page.
std::optional<std::uint64_t> parse_memory_limit(std::string_view text) noexcept;

/// Which folders hold `controller` ("cpu", "memory"): version 1 when the kernel has the controller there, else
/// version 2. The cgroup's path is taken relative to the root of the mount, which in a container is often not "/".
/// Pure.
CgroupPath find_cgroup(const std::vector<CgroupMembership>& memberships, const std::vector<CgroupMount>& mounts,
                       std::string_view controller);

/// find_cgroup for this process; the directories begin with `root`.
CgroupPath own_cgroup(std::string_view controller, const std::string& root = {});

/// The quotas of the own cgroup and every visible ancestor, the own one first; those without a quota are left out.
std::vector<CpuQuota> cgroup_cpu_quotas(const std::string& root = {});

/// Memory of the own cgroup and every visible ancestor, the own one first.
std::vector<CgroupMemory> cgroup_memory(const std::string& root = {});

/// Of the own cgroup.
CgroupOomKills cgroup_oom_kills(const std::string& root = {});

}  // namespace drover::inline v1::os
