// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace drover::inline v1::os {

/// Looks up an environment variable; nullptr when it is not set.
using EnvironmentLookup = std::function<const char*(const char*)>;

/// What bounds the number of CPUs that this process can keep busy.
struct CpuLimits {
  std::size_t affinity = 1;                        ///< CPUs the calling thread may run on (cpusets are part of that)
  std::optional<std::size_t> quota;                ///< tightest ceil(quota / period) of the cgroup and its ancestors
  std::optional<std::size_t> slurm_cpus_per_task;  ///< SLURM_CPUS_PER_TASK, where it holds a number of at least 1
};

/// The smallest of the limits, at least 1. Pure.
std::size_t usable_cpus(const CpuLimits& limits) noexcept;

/// Reads the limits of this moment. The affinity is that of the calling thread, which children inherit; the host's
/// number of CPUs is never used. `root` goes before /proc and the cgroup mounts; an empty `environment` means getenv.
/// Throws std::system_error when the kernel refuses sched_getaffinity. Thread-safe as far as nobody changes the
/// environment.
CpuLimits read_cpu_limits(const std::string& root = {}, const EnvironmentLookup& environment = {});

/// usable_cpus(read_cpu_limits()). Reads files each time and the answer may change while the process runs: callers who
/// need one answer keep it.
std::size_t usable_cpus();

/// The CPUs that the calling thread may run on, ascending; any number of CPUs. Throws std::system_error. Thread-safe.
std::vector<std::size_t> allowed_cpus();

/// The kernel's list format (`0-3,8`) as ascending numbers, each once; an empty list for empty text. nullopt when it is
/// malformed or names a CPU of 65,536 or more. Pure.
std::optional<std::vector<std::size_t>> parse_cpu_list(std::string_view text);

}  // namespace drover::inline v1::os
