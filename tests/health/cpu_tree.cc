// SPDX-License-Identifier: Apache-2.0
#include "health/cpu_tree.h"

#include <algorithm>
#include <cstdio>

namespace drover_test {
namespace {

constexpr const char* kCpus = "/sys/devices/system/cpu/";

template <class Same>
std::set<int> numbers(const FakeMachine& machine, const Same& same) {
  std::set<int> result;
  for (const FakeCpu& cpu : machine.cpus) {
    if (same(cpu)) result.insert(cpu.number);
  }
  return result;
}

void write_set(Machine& tree, const std::string& folder, const std::string& mask, const std::string& list,
               const std::set<int>& cpus) {
  tree.write(folder + mask, mask_text(cpus) + "\n");
  tree.write(folder + list, list_text(cpus) + "\n");
}

void write_cpu(Machine& tree, const FakeMachine& machine, const FakeCpu& cpu) {
  const std::string folder = kCpus + std::string("cpu") + std::to_string(cpu.number) + "/";
  if (cpu.number != 0) tree.write(folder + "online", cpu.online ? "1\n" : "0\n");
  if (!cpu.online) return;  // the kernel takes its topology away
  const std::string topology = folder + "topology/";
  const auto package = [&](const FakeCpu& other) { return other.online && other.package == cpu.package; };
  const auto die = [&](const FakeCpu& other) { return package(other) && other.die == cpu.die; };
  const auto core = [&](const FakeCpu& other) { return die(other) && other.core == cpu.core; };
  tree.write(topology + "physical_package_id", machine.package_unknown ? "-1\n" : std::to_string(cpu.package) + "\n");
  tree.write(topology + "core_id", std::to_string(cpu.core) + "\n");
  write_set(tree, topology, "thread_siblings", "thread_siblings_list", numbers(machine, core));
  write_set(tree, topology, "core_siblings", "core_siblings_list", numbers(machine, package));
  if (!machine.old_names) {
    tree.write(topology + "die_id", std::to_string(cpu.die) + "\n");
    write_set(tree, topology, "core_cpus", "core_cpus_list", numbers(machine, core));
    write_set(tree, topology, "die_cpus", "die_cpus_list", numbers(machine, die));
    write_set(tree, topology, "package_cpus", "package_cpus_list", numbers(machine, package));
  }
  if (cpu.capacity > 0) tree.write(folder + "cpu_capacity", std::to_string(cpu.capacity) + "\n");
  if (cpu.megahertz == 0) return;
  tree.write(folder + "cpufreq/cpuinfo_max_freq", std::to_string(1000 * cpu.megahertz) + "\n");
  tree.write(folder + "cpufreq/base_frequency", std::to_string(600 * cpu.megahertz) + "\n");
}

void write_node(Machine& tree, const FakeMachine& machine, int node, int nodes) {
  const std::string folder = "/sys/devices/system/node/node" + std::to_string(node) + "/";
  const auto inside = [&](const FakeCpu& cpu) { return cpu.online && cpu.node == node; };
  write_set(tree, folder, "cpumap", "cpulist", numbers(machine, inside));
  tree.write(folder + "meminfo", "Node " + std::to_string(node) + " MemTotal:       67108864 kB\n");
  std::string distances;
  for (int other = 0; other < nodes; ++other) distances += other == node ? "10 " : "20 ";
  tree.write(folder + "distance", distances + "\n");
}

}  // namespace

std::string list_text(const std::set<int>& cpus) {
  std::string text;
  for (auto at = cpus.begin(); at != cpus.end();) {
    const int first = *at;
    int last = first;
    for (++at; at != cpus.end() && *at == last + 1; ++at) last = *at;
    text += (text.empty() ? "" : ",") + std::to_string(first) + (last > first ? "-" + std::to_string(last) : "");
  }
  return text;
}

std::string mask_text(const std::set<int>& cpus) {
  std::vector<unsigned> words(cpus.empty() ? 1 : static_cast<std::size_t>(*cpus.rbegin()) / 32 + 1);
  for (const int cpu : cpus) words[static_cast<std::size_t>(cpu) / 32] |= 1U << (static_cast<unsigned>(cpu) % 32);
  std::string text;
  for (auto word = words.rbegin(); word != words.rend(); ++word) {
    char part[12];
    std::snprintf(part, sizeof part, "%s%08x", text.empty() ? "" : ",", *word);
    text += part;
  }
  return text;
}

void write_machine(Machine& tree, const FakeMachine& machine) {
  const std::string all = list_text(numbers(machine, [](const FakeCpu&) { return true; }));
  const std::string online = list_text(numbers(machine, [](const FakeCpu& cpu) { return cpu.online; }));
  const std::string allowed = machine.allowed.empty() ? online : machine.allowed;
  tree.write(kCpus + std::string("possible"), all + "\n");
  tree.write(kCpus + std::string("present"), all + "\n");
  tree.write(kCpus + std::string("online"), online + "\n");
  std::string cpuinfo;
  int last_node = 0;
  for (const FakeCpu& cpu : machine.cpus) {
    write_cpu(tree, machine, cpu);
    last_node = std::max(last_node, cpu.node);
    if (cpu.online) cpuinfo += "processor\t: " + std::to_string(cpu.number) + "\nmodel name\t: Example CPU\n\n";
  }
  for (int node = 0; !machine.no_nodes && node <= last_node + machine.memory_nodes; ++node)
    write_node(tree, machine, node, last_node + machine.memory_nodes + 1);
  if (!machine.big.empty()) tree.write("/sys/devices/cpu_core/cpus", machine.big + "\n");
  if (!machine.little.empty()) tree.write("/sys/devices/cpu_atom/cpus", machine.little + "\n");
  tree.write("/proc/cpuinfo", cpuinfo);
  tree.write("/proc/meminfo", "MemTotal:       67108864 kB\n");
  tree.write("/proc/self/status", "Name:\tx\nCpus_allowed_list:\t" + allowed + "\n");
  tree.write("/proc/self/cgroup", "0::/job\n");
  tree.write("/proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n");
  tree.write("/proc/self/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n");
  tree.write("/proc/self/mountinfo", "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  tree.write("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu memory\n");
  tree.write("/sys/fs/cgroup/job/cpuset.cpus.effective", allowed + "\n");
  tree.write("/sys/fs/cgroup/job/cpuset.mems.effective",
             "0-" + std::to_string(last_node + machine.memory_nodes) + "\n");
}

namespace {

/// `threads` of a core are numbered far apart, as on x86, or (`near`) one behind the other, as on POWER.
FakeMachine regular(std::string name, int packages, int dies, int cores, int threads, bool near = false) {
  FakeMachine machine;
  machine.name = std::move(name);
  const int all = packages * dies * cores;
  for (int i = 0; i < all * threads; ++i) {
    const int core = near ? i / threads : i % all;
    const int package = core / (dies * cores);
    machine.cpus.push_back({i, package, core / cores % dies, core % cores, package, 0, 0, true});
  }
  return machine;
}

FakeMachine hybrid() {
  FakeMachine machine{"hybrid Intel, 6 P with 2 threads and 8 E", {}, 0, {}, "0-11", "12-19", false, false, false};
  for (int i = 0; i < 20; ++i) {
    machine.cpus.push_back({i, 0, 0, i < 12 ? 4 * (i / 2) : 20 + i, 0, 0, i < 12 ? 5000 : 3900, true});
  }
  return machine;
}

FakeMachine with_capacities(std::string name, const std::vector<int>& capacities) {
  FakeMachine machine = regular(std::move(name), 1, 1, static_cast<int>(capacities.size()), 1);
  for (std::size_t i = 0; i < capacities.size(); ++i) machine.cpus[i].capacity = capacities[i];
  return machine;
}

FakeMachine without(FakeMachine machine, std::string name, const std::set<int>& offline) {
  machine.name = std::move(name);
  for (FakeCpu& cpu : machine.cpus) cpu.online = offline.count(cpu.number) == 0;
  return machine;
}

std::set<int> range(int from, int to) {
  std::set<int> result;
  for (int i = from; i <= to; ++i) result.insert(i);
  return result;
}

}  // namespace

std::vector<FakeMachine> fake_machines() {
  std::vector<FakeMachine> all;
  all.push_back(regular("two sockets of 16 cores and 2 threads", 2, 1, 16, 2));
  all.push_back(hybrid());
  all.push_back(with_capacities("ARM big.LITTLE 4 and 4", {446, 446, 446, 446, 1024, 1024, 1024, 1024}));
  all.push_back(with_capacities("ARM with three kinds", {250, 250, 250, 250, 770, 770, 770, 1024}));
  all.push_back(without(regular("", 2, 1, 4, 2), "some CPUs offline", {3, 5, 11, 13, 14, 15}));
  all.push_back(without(regular("", 2, 1, 4, 2), "a whole socket offline", {4, 5, 6, 7, 12, 13, 14, 15}));
  all.push_back(without(regular("", 1, 1, 8, 2), "SMT off", range(8, 15)));
  all.push_back(without(regular("", 1, 1, 8, 2), "one thread of one core offline", {9}));
  all.push_back(regular("8 cores of which a cpuset allows 6 threads", 1, 1, 8, 2));
  all.back().allowed = "1-4,9,12";
  all.push_back(regular("1,152 CPUs", 2, 1, 288, 2));
  all.push_back(regular("POWER, 2 sockets of 12 cores and 8 threads", 2, 1, 12, 8, true));
  all.push_back(without(regular("", 2, 1, 12, 8, true), "POWER in SMT4 mode", [] {
    std::set<int> offline;
    for (int cpu = 0; cpu < 192; ++cpu) {
      if (cpu % 8 >= 4) offline.insert(cpu);
    }
    return offline;
  }()));
  all.push_back(regular("a VM with one core and no package", 1, 1, 1, 1));
  all.back().package_unknown = all.back().no_nodes = true;
  all.push_back(regular("a VM whose 8 CPUs are 8 sockets", 8, 1, 1, 1));
  all.push_back(regular("four sockets", 4, 1, 8, 2));
  all.push_back(regular("two sockets and a node that is memory only (CXL)", 2, 1, 8, 2));
  all.back().memory_nodes = 1;
  all.push_back(regular("AMD, 8 dies in which core numbers repeat", 1, 8, 8, 2));
  all.push_back(regular("AMD, 2 sockets, 4 NUMA nodes in each", 2, 4, 16, 2));
  for (FakeCpu& cpu : all.back().cpus) cpu.node = 4 * cpu.package + cpu.die;
  all.push_back(regular("an old kernel", 2, 1, 6, 2));
  all.back().old_names = true;
  return all;
}

}  // namespace drover_test
