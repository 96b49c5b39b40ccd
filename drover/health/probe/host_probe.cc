// SPDX-License-Identifier: Apache-2.0
#include "drover/health/probe/host_probe.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

#include "drover/health/probe/proc_text.h"
#include "drover/os/cgroup.h"
#include "drover/os/cpu.h"
#include "drover/os/file_system.h"
#include "drover/os/host_files.h"

namespace drover::inline v1::health {
namespace {

using Cpus = std::vector<std::size_t>;

constexpr std::uint64_t kInitPidNamespace = 4026531836;  // PROC_PID_INIT_INO, include/linux/proc_ns.h

std::string first_line(const std::string& path) {
  const std::string text = os::read_small_file(path, 4096).value_or(std::string());
  return text.substr(0, text.find('\n'));
}

std::optional<Cpus> cpu_list(const std::string& path) {
  const auto text = os::read_small_file(path, 256U << 10U);
  return text ? os::parse_cpu_list(*text) : std::nullopt;
}

/// Distinct sets of hardware threads are cores: core_id repeats over packages and dies.
std::string core_key(const std::string& topology, std::size_t cpu) {
  std::string key = first_line(topology + "core_cpus_list");
  if (key.empty()) key = first_line(topology + "thread_siblings_list");
  return key.empty() ? "cpu" + std::to_string(cpu) : key;
}

struct Cores {
  std::set<std::string> cores, packages;
  std::map<std::string, std::set<std::string>> cores_by_capacity;
};

Cores find_cores(const std::string& root, const Cpus& online) {
  Cores found;
  for (const std::size_t cpu : online) {
    const std::string folder = root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/";
    const std::string core = core_key(folder + "topology/", cpu);
    found.cores.insert(core);
    const std::string package = first_line(folder + "topology/physical_package_id");
    if (!package.empty() && package != "-1") found.packages.insert(package);
    const std::string capacity = first_line(folder + "cpu_capacity");
    if (!capacity.empty()) found.cores_by_capacity[capacity].insert(core);
  }
  return found;
}

std::size_t cores_among(const std::string& root, const Cpus& cpus, const Cpus& online) {
  std::set<std::string> cores;
  for (const std::size_t cpu : cpus) {
    if (!std::binary_search(online.begin(), online.end(), cpu)) continue;
    cores.insert(core_key(root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/", cpu));
  }
  return cores.size();
}

/// Intel tells the kinds by PMU, ARM by capacity; of more than two capacities the largest are the performance cores.
void find_kinds(CpuReport& cpu, const std::string& root, const Cpus& online, const Cores& cores) {
  const auto performance = cpu_list(root + "/sys/devices/cpu_core/cpus");
  const auto efficiency = cpu_list(root + "/sys/devices/cpu_atom/cpus");
  if (performance && efficiency) {
    cpu.performance_cores = cores_among(root, *performance, online);
    cpu.efficiency_cores = cores_among(root, *efficiency, online);
  } else if (cores.cores_by_capacity.size() > 1) {
    std::uint64_t most = 0;
    for (const auto& [capacity, members] : cores.cores_by_capacity) {
      const std::uint64_t value = os::parse_number(capacity).value_or(0);
      if (value >= most) cpu.performance_cores = members.size();
      most = std::max(most, value);
    }
    cpu.efficiency_cores = cpu.physical - std::min(cpu.physical, cpu.performance_cores);
  }
}

/// Where there is no topology in /sys: pairs of (physical id, core id).
void count_by_cpuinfo(CpuReport& cpu, const std::string& cpuinfo) {
  std::set<std::string> cores, packages;
  std::string package;
  std::string_view rest = cpuinfo;
  while (!rest.empty()) {
    const std::string_view line = os::take_line(rest);
    const std::string_view value = line.find(':') == line.npos ? std::string_view() : line.substr(line.find(':') + 1);
    if (line.substr(0, 11) == "physical id") packages.insert(package = value);
    if (line.substr(0, 7) == "core id") cores.insert(package + "/" + std::string(value));
  }
  if (!cores.empty()) cpu.physical = cores.size();
  if (!packages.empty()) cpu.sockets = packages.size();
}

std::string cpu_model(const std::string& cpuinfo) {
  std::string_view rest = cpuinfo;
  while (!rest.empty()) {
    const std::string_view line = os::take_line(rest);
    const std::size_t colon = line.find(':');
    if (colon == line.npos || colon + 2 > line.size()) continue;
    if (line.substr(0, 10) == "model name" || line.substr(0, 9) == "Processor")
      return std::string(line.substr(colon + 2));
  }
  return {};
}

std::size_t count_nodes(const std::string& root) {
  const auto names = os::HostFolder(root + "/sys/devices/system/node").names();
  if (!names) return 0;
  return static_cast<std::size_t>(std::count_if(names->begin(), names->end(), [](const std::string& name) {
    return name.size() > 4 && name.substr(0, 4) == "node" && name.find_first_not_of("0123456789", 4) == name.npos;
  }));
}

/// The CPUs of this process: with a root, what the fixture's status says, else what the kernel says.
std::size_t allowed_cpus(const std::string& root) {
  if (root.empty()) return os::allowed_cpus().size();
  std::string_view status;
  const std::string text = os::read_small_file(root + "/proc/self/status").value_or(std::string());
  status = text;
  while (!status.empty()) {
    std::string_view line = os::take_line(status);
    if (line.substr(0, 18) != "Cpus_allowed_list:") continue;
    line.remove_prefix(std::min(line.find_first_not_of(" \t", 18), line.size()));
    const auto cpus = os::parse_cpu_list(line);
    return cpus ? cpus->size() : 0;
  }
  return 0;
}

Maybe<Stall> read_pressure(const std::string& path) {
  const auto text = os::read_small_file(path, 4096);
  if (!text) return {std::nullopt, "this kernel keeps no pressure figures (psi=1 turns them on)"};
  const auto pressure = parse_pressure(*text);
  if (!pressure) return {std::nullopt, "the pressure figures cannot be read"};
  return {Stall{pressure->some10, pressure->some60, pressure->full10, pressure->full60}, {}};
}

std::uint64_t since(std::uint64_t now, std::uint64_t before) { return now > before ? now - before : 0; }

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : std::min(1.0, static_cast<double>(part) / static_cast<double>(whole));
}

/// How many CPUs this cgroup may keep busy.
double usable(const CpuReport& cpu) {
  const double allowed = static_cast<double>(std::max<std::size_t>(1, cpu.allowed == 0 ? cpu.logical : cpu.allowed));
  return cpu.quota ? std::min(*cpu.quota, allowed) : allowed;
}

void fill_cgroup_load(CpuReport& cpu, const HostSample& first, const HostSample& last, double seconds) {
  cpu.cgroup_busy.reason = cpu.throttled.reason = "the cgroup has no such counter";
  if (!(seconds > 0)) return;
  if (first.cgroup_usage_us && last.cgroup_usage_us) {
    const double used = 1e-6 * static_cast<double>(since(*last.cgroup_usage_us, *first.cgroup_usage_us));
    cpu.cgroup_busy = {std::min(1.0, used / (seconds * usable(cpu))), {}};
  }
  // The time for which it was held back would not do: the kernel adds that up over all CPUs.
  // A group above may be out of quota while the own one is not, as others use it too: the worst of all counts.
  std::optional<double> worst;
  for (const auto& [group, use] : last.quotas) {
    const auto before = first.quotas.find(group);
    if (before == first.quotas.end()) continue;
    const double used_up =
        share(since(use.used_up, before->second.used_up), since(use.periods, before->second.periods));
    worst = std::max(worst.value_or(0), used_up);
  }
  if (worst) cpu.throttled = {worst, {}};
}

}  // namespace

CpuReport read_topology(const std::string& root) {
  CpuReport cpu;
  const std::string cpuinfo = os::read_small_file(root + "/proc/cpuinfo", 16U << 20U).value_or(std::string());
  cpu.model = cpu_model(cpuinfo);
  const Cpus online = cpu_list(root + "/sys/devices/system/cpu/online").value_or(Cpus());
  const Cores cores = find_cores(root, online);
  cpu.logical = online.size();
  cpu.physical = cores.cores.size();
  cpu.sockets = std::max<std::size_t>(cores.packages.size(), online.empty() ? 0 : 1);
  if (!online.empty() &&
      !os::HostFolder(root + "/sys/devices/system/cpu/cpu" + std::to_string(online.front()) + "/topology").open()) {
    count_by_cpuinfo(cpu, cpuinfo);
  }
  cpu.numa_nodes = std::max<std::size_t>(count_nodes(root), online.empty() ? 0 : 1);
  const std::string smt = first_line(root + "/sys/devices/system/cpu/smt/active");
  cpu.hyperthreading = smt.empty() ? cpu.logical > cpu.physical : smt == "1";
  find_kinds(cpu, root, online, cores);
  cpu.allowed = allowed_cpus(root);
  for (const os::CpuQuota& quota : os::cgroup_cpu_quotas(root)) {
    const double cpus = static_cast<double>(quota.quota_us) / static_cast<double>(quota.period_us);
    cpu.quota = std::min(cpu.quota.value_or(cpus), cpus);
  }
  return cpu;
}

MemoryReport read_memory(const std::string& root) {
  MemoryReport memory;
  const auto info = parse_meminfo(os::read_small_file(root + "/proc/meminfo").value_or(std::string()));
  const auto value = [&](const char* name) { return info.count(name) ? info.at(name) : 0; };
  memory.total = value("MemTotal");
  memory.available = info.count("MemAvailable") ? value("MemAvailable") : value("MemFree");
  memory.swap_total = value("SwapTotal");
  memory.swap_free = value("SwapFree");
  memory.shared = value("Shmem");
  const std::uint64_t page = std::min<std::uint64_t>(value("Hugepagesize"), 1ULL << 34U);
  memory.huge_total = std::min<std::uint64_t>(value("HugePages_Total"), 1ULL << 28U) * page;
  memory.huge_free = std::min<std::uint64_t>(value("HugePages_Free"), 1ULL << 28U) * page;
  std::optional<std::uint64_t> tightest;
  for (const os::CgroupMemory& group : os::cgroup_memory(root)) {
    const auto room = group.room();
    if (!room || (tightest && *tightest <= *room)) continue;
    tightest = room;
    memory.limit = group.limit;
    memory.limit_used = *group.limit - *room;
  }
  const os::CgroupOomKills kills = os::cgroup_oom_kills(root);
  memory.oom_kills = kills.own ? kills.own : kills.subtree;
  memory.pressure = read_pressure(root + "/proc/pressure/memory");
  memory.io_pressure = read_pressure(root + "/proc/pressure/io");
  return memory;
}

namespace {

/// Microseconds. Version 1 counts them in another controller, in nanoseconds.
std::optional<std::uint64_t> usage_of_version_1(const std::string& root) {
  const os::CgroupPath group = os::own_cgroup("cpuacct", root);
  if (group.unified || group.directories.empty()) return std::nullopt;
  const auto text = os::read_small_file(group.directories.front() + "/cpuacct.usage", 64);
  const auto ns = os::parse_number(text.value_or(std::string()));
  return ns ? std::optional(*ns / 1000) : std::nullopt;
}

}  // namespace

HostSample read_cpu_times(const std::string& root) {
  HostSample sample;
  // 65,536 CPUs of 120 bytes a line.
  if (auto table = parse_cpu_times(os::read_small_file(root + "/proc/stat", 8U << 20U).value_or(std::string()))) {
    sample.cpu = table->all;
    sample.cpus = std::move(table->cpus);
  }
  const os::CgroupPath group = os::own_cgroup("cpu", root);
  if (!group.directories.empty()) {
    const std::string stat = os::read_small_file(group.directories.front() + "/cpu.stat").value_or(std::string());
    sample.cgroup_usage_us = os::keyed_number(stat, "usage_usec");
    if (!sample.cgroup_usage_us) sample.cgroup_usage_us = usage_of_version_1(root);
  }
  for (const std::string& directory : group.directories) {
    const std::string stat = os::read_small_file(directory + "/cpu.stat").value_or(std::string());
    const auto periods = os::keyed_number(stat, "nr_periods");  // both are so named in version 1 too
    const auto used_up = os::keyed_number(stat, "nr_throttled");
    if (periods && used_up) sample.quotas[directory] = {*periods, *used_up};
  }
  return sample;
}

void fill_load(CpuReport& cpu, const HostSample& first, const HostSample& last, double seconds,
               const std::string& root) {
  const std::uint64_t total = since(last.cpu.total, first.cpu.total);
  if (total > 0) {
    cpu.busy = {share(since(last.cpu.busy, first.cpu.busy), total), {}};
    cpu.iowait = {share(since(last.cpu.iowait, first.cpu.iowait), total), {}};
    cpu.steal = {share(since(last.cpu.steal, first.cpu.steal), total), {}};
  } else {
    cpu.busy.reason = cpu.iowait.reason = cpu.steal.reason = "/proc/stat did not move";
  }
  cpu.each.assign(last.cpus.size(), std::nullopt);
  for (std::size_t i = 0; i < std::min(first.cpus.size(), last.cpus.size()); ++i) {
    const std::uint64_t own = since(last.cpus[i].total, first.cpus[i].total);
    if (own > 0) cpu.each[i] = share(since(last.cpus[i].busy, first.cpus[i].busy), own);
  }
  fill_cgroup_load(cpu, first, last, seconds);
  const std::string load = first_line(root + "/proc/loadavg");
  cpu.load1 = std::strtod(load.c_str(), nullptr);
  cpu.pressure = read_pressure(root + "/proc/pressure/cpu");
}

bool in_pid_namespace(const std::string& root) {
  const auto link = os::HostFolder(root + "/proc/self/ns").link("pid");
  return link && *link != "pid:[" + std::to_string(kInitPidNamespace) + "]";
}

std::string kernel_release(const std::string& root) { return first_line(root + "/proc/sys/kernel/osrelease"); }

PciGpus find_nvidia_devices(const std::string& root) {
  PciGpus found;
  const os::HostFolder devices(root + "/sys/bus/pci/devices");
  const auto property = [](const os::HostFolder& device, const char* name) {
    const std::string text = device.text(name, 64).value_or(std::string());
    return text.substr(0, text.find('\n'));
  };
  for (const std::string& name : devices.names().value_or(std::vector<std::string>())) {
    const os::HostFolder device(devices, name.c_str());
    if (property(device, "vendor") != "0x10de") continue;
    if (property(device, "class").substr(0, 4) != "0x03") continue;  // display controllers, 3D ones too
    ++found.count;
    if (property(device, "power/runtime_status") == "suspended") ++found.asleep;
    // A virtual function of SR-IOV is for a guest, and the driver of the host does not list it.
    const std::string driver = device.link("driver").value_or(std::string());
    if (driver.substr(driver.rfind('/') + 1) == "nvidia" && !device.link("physfn")) found.driven.push_back(name);
  }
  return found;
}

bool may_miss_gpus(const std::string& root, const std::vector<std::string>& environment) {
  for (const std::string_view name :
       {"SLURM_JOB_ID=", "KUBERNETES_SERVICE_HOST=", "PBS_JOBID=", "LSB_JOBID=", "JOB_ID="}) {
    if (std::any_of(environment.begin(), environment.end(), [&](const auto& one) { return one.starts_with(name); }))
      return true;
  }
  const auto text_of = [&](const char* path) {
    return os::read_small_file(root + path, 64U << 10U).value_or(std::string());
  };
  const std::string cgroup = text_of("/proc/self/cgroup");
  // Of schedulers a job's cgroup, not that of their own service.
  for (const char* const part : {"/job_", "slurmstepd.scope", "/pbs_jobs", "/lsf/", "docker", "kubepods", "libpod",
                                 "containerd", "crio", "lxc"}) {
    if (cgroup.find(part) != cgroup.npos) return true;
  }
  const os::HostFolder top(root + "/");
  if (in_pid_namespace(root) || top.exists(".dockerenv") || top.exists("run/.containerenv")) return true;
  const std::string told = text_of("/proc/driver/nvidia/params");
  const std::size_t excluded = told.find("ExcludedGpus: \"");
  return excluded != told.npos && told.compare(excluded, 16, "ExcludedGpus: \"\"") != 0;
}

}  // namespace drover::inline v1::health
