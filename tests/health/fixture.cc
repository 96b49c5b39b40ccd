// SPDX-License-Identifier: Apache-2.0
#include "health/fixture.h"

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>

#include "drover/health/scenario/scenario_gpu.h"
#include "drover/health/scenario/scenario_source.h"
#include "health/drm_tree.h"

namespace drover_test {
namespace fs = std::filesystem;
using namespace drover::health;

Machine::Machine() {
  std::string name = (fs::temp_directory_path() / "health_XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp " + name);
  root_ = name;
}

Machine::~Machine() {
  std::error_code ignored;
  fs::remove_all(root_, ignored);
}

void Machine::write(const std::string& path, std::string_view content) {
  const auto known = written_.find(path);
  if (known != written_.end() && known->second == content) return;
  if (known == written_.end()) fs::create_directories(fs::path(root_ + path).parent_path());
  std::ofstream(root_ + path, std::ios::binary) << content;
  written_[path] = content;
}

void Machine::link(const std::string& path, const std::string& target) {
  if (written_.count(path) > 0) return;
  fs::create_directories(fs::path(root_ + path).parent_path());
  fs::create_symlink(target, root_ + path);
  written_[path] = target;
}

void Machine::remove(const std::string& path) {
  fs::remove_all(root_ + path);
  std::erase_if(written_, [&](const auto& entry) {
    return entry.first == path || entry.first.compare(0, path.size() + 1, path + "/") == 0;
  });
}

void Machine::write_host(bool container) {
  link("/proc/self/ns/pid", container ? "pid:[4026532201]" : "pid:[4026531836]");
  write("/proc/self/status", "Name:\tdrover\nCpus_allowed_list:\t0-7\n");
  write("/proc/self/cgroup", "0::/\n");
  write("/proc/cpuinfo", "processor\t: 0\nmodel name\t: Example CPU\n");
  write("/proc/loadavg", "1.50 1.00 0.50 2/300 12345\n");
  write("/proc/sys/kernel/osrelease", "6.1.0-test\n");
  write("/proc/sys/kernel/random/boot_id", "played\n");
  write("/proc/meminfo",
        "MemTotal:       268435456 kB\nMemFree:        100000000 kB\nMemAvailable:   188743680 kB\nSwapTotal: 0 kB\n");
  write("/sys/devices/system/cpu/online", "0-7\n");
  for (int cpu = 0; cpu < 8; ++cpu) {
    const std::string topology = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    write(topology + "core_cpus_list", std::to_string(cpu % 4) + "," + std::to_string(cpu % 4 + 4) + "\n");
    write(topology + "physical_package_id", std::to_string(cpu % 4 / 2) + "\n");
  }
  write("/sys/devices/system/node/node0/cpulist", "0-7\n");
  write("/etc/passwd", "root:x:0:0::/root:/bin/sh\nalice:x:1000:1000::/home/alice:/bin/sh\n");
}

std::string stat_text(const ProcessBrief& brief) {
  return std::to_string(brief.pid) + " (" + brief.name + ") " + brief.state + " " + std::to_string(brief.parent) + " " +
         std::to_string(brief.group) + " " + std::to_string(brief.session) + " 0 -1 4194304 0 0 0 0 " +
         std::to_string(brief.cpu_ticks) + " 0 0 0 20 0 " + std::to_string(brief.threads) + " 0 " +
         std::to_string(brief.start_ticks) + " 1000 100 18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0\n";
}

/// Those that are there no more are removed.
void Machine::write_threads(const std::string& tasks, ProcessBrief brief, const std::vector<ThreadSample>& threads) {
  std::set<std::string> ended;
  for (auto at = written_.lower_bound(tasks + "/"); at != written_.end(); ++at) {
    if (at->first.compare(0, tasks.size() + 1, tasks + "/") != 0) break;
    ended.insert(at->first.substr(0, at->first.find('/', tasks.size() + 1)));
  }
  for (const ThreadSample& thread : threads) ended.erase(tasks + "/" + std::to_string(thread.tid));
  for (const std::string& path : ended) remove(path);
  for (const ThreadSample& thread : threads) {
    brief.pid = thread.tid;
    brief.state = thread.state;
    const std::string path = tasks + "/" + std::to_string(thread.tid);
    write(path + "/stat", stat_text(brief));
    write(path + "/wchan", thread.waits_in.empty() ? "0" : thread.waits_in);
  }
}

void Machine::write_process(const World& world, const Thing& process) {
  const ProcessBrief brief = brief_of(process);
  const ProcessDetail detail = detail_of(process);
  const std::string folder = "/proc/" + std::to_string(process.id);
  write(folder + "/stat", stat_text(brief));
  const std::string pending = detail.kill_pending ? "0000000000000100" : "0000000000000000";
  const std::string uid = std::to_string(detail.uid.value_or(0));
  write(folder + "/status", "Name:\t" + brief.name + "\nUid:\t" + uid + "\t" + uid + "\t" + uid + "\t" + uid +
                                "\nTracerPid:\t" + std::to_string(detail.tracer) +
                                "\nSigPnd:\t0000000000000000\nShdPnd:\t" + pending + "\n");
  std::string command = detail.command, environment;
  for (char& c : command) c = c == ' ' ? '\0' : c;
  for (const auto& [name, value] : detail.environment) environment += name + "=" + value + '\0';
  write(folder + "/cmdline", command + (command.empty() ? "" : std::string(1, '\0')));
  const bool titled = process.number("titled") != 0;  // its title has gone over its environment
  if (detail.environment_known || titled)
    write(folder + "/environ", titled ? "rank 0: step 7" + std::string(9, '\0') : environment);
  write(folder + "/cgroup", "0::" + detail.cgroup + "\n");
  if (detail.io_bytes) write(folder + "/io", "rchar: " + std::to_string(*detail.io_bytes) + "\nwchar: 0\nsyscr: 1\n");
  write_threads(folder + "/task", brief, detail.threads);
  write(folder + "/wchan", detail.first.waits_in.empty() ? "0" : detail.first.waits_in);
  const std::string inode = std::to_string(70'000 + process.id);
  char port[8];
  std::snprintf(port, sizeof(port), "%04X", static_cast<unsigned>(process.number("listen")));
  write(folder + "/net/tcp",
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n" +
            (process.number("listen") != 0
                 ? "   0: 0100007F:" + std::string(port) +
                       " 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 " + inode + " 1\n"
                 : std::string()));
  link(folder + "/fd/0", process.number("batch") != 0 ? "/dev/null" : "/dev/pts/3");
  write(folder + "/syscall",
        detail.reads_terminal ? "0 0x0 0x7ffd12345678 0x400 0x0 0x0 0x0 0x7ffd0 0x7f1\n" : "running\n");
  if (process.number("listen") != 0) link(folder + "/fd/3", "socket:[" + inode + "]");
  int number = 10;
  if (!minors_of(process).empty() && process.number("uvm", 1) != 0) link(folder + "/fd/9", "/dev/nvidia-uvm");
  for (const int id : minors_of(process)) {
    const Thing* const gpu = world.find("gpu", id);
    link(folder + "/fd/" + std::to_string(number++), gpu == nullptr || is_nvidia(*gpu)
                                                         ? "/dev/nvidia" + std::to_string(id)
                                                         : "/dev/dri/renderD" + std::to_string(128 + id));
  }
}

/// What NVIDIA's driver wrote into the kernel's log.
void Machine::write_log(const World& world) {
  std::string text = "6,1,0,-;Linux version 6.1.0-test\n5,2,10,-;NVRM: loading NVIDIA UNIX x86_64 Kernel Module\n";
  for (const Thing* const gpu : world.all("gpu")) {
    if (!is_nvidia(*gpu)) continue;
    for (const LoggedXid& xid : gpu_of(world, *gpu).logged) {
      text += "4,3," + std::to_string(static_cast<unsigned long long>(1e6 * xid.at)) + ",-;NVRM: Xid (PCI:" + xid.bus +
              "): " + std::to_string(xid.xid) + ", pid=" + std::to_string(xid.pid) + ", name=" + xid.name +
              ", and more\n SUBSYSTEM=pci\n";
    }
  }
  write("/dev/kmsg", text);
}

void Machine::write_world(const World& world) {
  std::map<int, std::uint64_t> now;
  double busy = 0;
  for (const Thing* const process : world.processes()) {
    if (process->number("hidden") != 0) continue;
    const std::uint64_t began = now[process->id] = brief_of(*process).start_ticks;
    const auto before = processes_.find(process->id);
    if (before != processes_.end() && before->second != began) remove("/proc/" + std::to_string(process->id));
    write_process(world, *process);
    busy += static_cast<double>(brief_of(*process).cpu_ticks);
  }
  for (const auto& [pid, began] : processes_) {
    if (now.count(pid) == 0) remove("/proc/" + std::to_string(pid));
  }
  processes_ = now;
  const auto total = static_cast<long>(800 * (world.at + 1000));
  write("/proc/stat", "cpu  " + std::to_string(static_cast<long>(busy)) + " 0 0 " +
                          std::to_string(total - static_cast<long>(busy)) + " 0 0 0 0 0 0\nctxt 1\n");
  write_drm_world(*this, world);
  write_log(world);
  for (const Thing* const gpu : world.all("gpu")) {
    if (!is_nvidia(*gpu)) continue;
    const std::string device = "/sys/bus/pci/devices/0000:0" + std::to_string(gpu->id + 1) + ":00.0/";
    write(device + "vendor", "0x10de\n");
    write(device + "class", "0x030200\n");
    write(device + "power/runtime_status", gpu->text("runtime", "active") + "\n");
  }
}

void Machine::use_driver(const std::string& situation, const std::string& variant) {
  write("/situation", situation);
  set_driver_time(0);
  setenv("LD_LIBRARY_PATH", (std::string(FAKE_NVML_FOLDER) + (variant.empty() ? "" : "_" + variant)).c_str(), 1);
  setenv("DROVER_FAKE_NVML", (root_ + "/situation").c_str(), 1);
  setenv("DROVER_FAKE_NVML_CLOCK", (root_ + "/driver_clock").c_str(), 1);
}

PlayedMachine::PlayedMachine(const Scenario& scenario, const std::string& text) : scenario_(scenario) {
  machine_.write_host(scenario.container());
  machine_.use_driver(text);
  advance(0);
  SystemSourceOptions options;
  options.root = machine_.root();
  options.deadline = drover::Duration(0.5);
  options.now = [this] { return Scenario::kUptime + time_; };
  options.wait = [this](double until) { advance(until - Scenario::kUptime); };
  options.exists = [this](int pid) {
    const World world = scenario_.at(time_);
    const Thing* const thing = world.find("proc", pid);
    return thing != nullptr && thing->number("ended") == 0;
  };
  source_ = system_source(options);
}

void PlayedMachine::advance(double seconds) {
  time_ = std::max(time_, seconds);
  machine_.write_world(scenario_.at(time_));
  machine_.set_driver_time(time_);
}

}  // namespace drover_test
