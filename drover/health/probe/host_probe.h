// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "drover/health/report.h"
#include "drover/health/sample.h"

/// CPUs and memory of a machine. `root` goes before /proc, /sys and the cgroup mounts. What is missing or malformed is
/// left at "not known". Thread-safe; std::system_error only when this process is out of descriptors.
namespace drover::inline v1::health {

/// What does not change while one looks: model, cores, sockets, NUMA nodes, kinds of cores, allowed CPUs, quota.
CpuReport read_topology(const std::string& root);

/// MemTotal and the like, the tightest cgroup, pressure.
MemoryReport read_memory(const std::string& root);

/// CPU times and the cgroup's counters; not the processes.
HostSample read_cpu_times(const std::string& root);

/// Fills in what is the difference of two samples: busy shares, throttling. And the load and pressure of now.
void fill_load(CpuReport& cpu, const HostSample& first, const HostSample& last, double seconds,
               const std::string& root);

/// Whether /proc/self/ns/pid is not the machine's own namespace.
bool in_pid_namespace(const std::string& root);

/// "6.1.0-18-amd64".
std::string kernel_release(const std::string& root);

/// Whether there is an NVIDIA display device, by PCI, and whether all of them are powered down.
struct PciGpus {
  std::size_t count = 0, asleep = 0;
  std::vector<std::string>
      driven;  ///< those that NVIDIA's kernel module has, but for parts that a host gives to guests
};
PciGpus find_nvidia_devices(const std::string& root);

/// Whether this process may be kept from some of the machine's GPUs: in a container or a job of a scheduler, or where
/// the kernel module was told to leave some out. `environment`: as "NAME=value".
bool may_miss_gpus(const std::string& root, const std::vector<std::string>& environment);

}  // namespace drover::inline v1::health
