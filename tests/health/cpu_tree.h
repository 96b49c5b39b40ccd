// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "health/fixture.h"

namespace drover_test {

/// One hardware thread of a made-up machine.
struct FakeCpu {
  int number = 0;
  int package = 0, die = 0, core = 0;  ///< core: the number that /sys shows, which repeats; siblings share all three
  int node = 0;
  int capacity = 0, megahertz = 0;  ///< 0: no such file
  bool online = true;
};

struct FakeMachine {
  std::string name;
  std::vector<FakeCpu> cpus;
  int memory_nodes = 0;          ///< NUMA nodes without CPUs, behind the others
  std::string allowed;           ///< of the cpuset; empty: all
  std::string big, little;       ///< Intel's kinds of cores
  bool package_unknown = false;  ///< physical_package_id is -1
  bool old_names = false;        ///< thread_siblings instead of core_cpus, as before Linux 5.3
  bool no_nodes = false;         ///< a kernel without NUMA
};

/// Writes it as Linux does: /sys/devices/system/cpu and node, /proc, the cpuset's cgroup.
void write_machine(Machine& tree, const FakeMachine& machine);

/// Machines that have come out wrong in some program or other.
std::vector<FakeMachine> fake_machines();

/// "0-3,8", and "000001ff" in words of 32 bits.
std::string list_text(const std::set<int>& cpus);
std::string mask_text(const std::set<int>& cpus);

}  // namespace drover_test
