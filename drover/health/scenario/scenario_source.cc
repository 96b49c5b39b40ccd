// SPDX-License-Identifier: Apache-2.0
#include "drover/health/scenario/scenario_source.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "drover/health/probe/proc_text.h"
#include "drover/health/scenario/scenario_gpu.h"

namespace drover::inline v1::health {
namespace {

constexpr double kTicks = 100;
constexpr std::uint64_t kGiB = 1ULL << 30U;

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t at = 0;
  while (at <= text.size()) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    if (end > at) parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

class ScenarioSource : public Source {
 public:
  explicit ScenarioSource(Scenario scenario) : scenario_(std::move(scenario)) {}

  double now() override { return Scenario::kUptime + time_; }
  void wait(double until) override { time_ = std::max(time_, until - Scenario::kUptime); }
  Sample sample(const std::set<int>& watched, bool threads) override;
  HolderScan holders(Sample& sample) override;
  void describe_processes(Sample&, const std::set<int>&) override {}  // all are described
  bool exists(int pid) override {
    const World world = scenario_.at(time_);
    const Thing* const thing = world.find("proc", pid);
    return thing != nullptr && thing->number("ended") == 0;
  }
  void describe(Report& report, const Sample& first, const Sample& last, double seconds) override;
  std::string user(std::uint32_t uid) override { return uid == 0 ? "root" : "user" + std::to_string(uid); }
  std::string boot() override { return "played"; }
  bool container() override { return scenario_.container(); }

 private:
  const Scenario scenario_;
  double time_ = 0;
};

Sample ScenarioSource::sample(const std::set<int>&, bool threads) {
  const World world = scenario_.at(time_);
  Sample sample;
  sample.at = now();
  sample.host.cpu.total = static_cast<std::uint64_t>(1600 * (time_ + 1000));
  for (const Thing* const process : world.processes()) {
    if (process->number("hidden") != 0) continue;
    sample.host.processes.push_back(brief_of(*process));
    ProcessDetail& detail = sample.host.details[process->id] = detail_of(*process);
    if (!threads) detail.threads.clear();
    sample.host.cpu.busy += sample.host.processes.back().cpu_ticks;
  }
  sample.driver.state = DriverState::kOk;
  sample.driver.version = "550.90.07";
  sample.driver.cuda = 12040;
  const std::vector<const Thing*> gpus = world.all("gpu");
  if (gpus.empty()) sample.driver.state = DriverState::kNoGpu;
  for (const Thing* const gpu : gpus) sample.driver.gpus.push_back(gpu_of(world, *gpu));
  return sample;
}

HolderScan ScenarioSource::holders(Sample& sample) {
  HolderScan scan;
  scan.done = true;
  const World world = scenario_.at(time_);
  for (const ProcessBrief& brief : sample.host.processes) {
    const Thing* const process = world.find("proc", brief.pid);
    if (process == nullptr) continue;
    if (process->number("closed") != 0) {
      ++scan.unreadable;
    } else if (!minors_of(*process).empty() && (brief.state != 'Z' || brief.threads > 1)) {
      Holder& holder = scan.holders.emplace_back();
      holder.pid = brief.pid;
      holder.uvm = process->number("uvm", 1) != 0;
      for (const int id : minors_of(*process)) {
        const Thing* const gpu = world.find("gpu", id);
        const bool nvidia = gpu == nullptr || is_nvidia(*gpu);
        (nvidia ? holder.minors : holder.render_minors).push_back(nvidia ? id : 128 + id);
      }
    }
  }
  return scan;
}

void ScenarioSource::describe(Report& report, const Sample& first, const Sample& last, double seconds) {
  report.host = "demo";
  report.kernel = "6.1.0";
  report.demo = scenario_.name();
  CpuReport& cpu = report.cpu;
  cpu.model = "Example CPU";
  cpu.logical = cpu.allowed = 16;
  cpu.physical = 8;
  cpu.sockets = cpu.numa_nodes = 1;
  cpu.hyperthreading = true;
  const double total = 1600 * seconds;
  const auto busy =
      static_cast<double>(last.host.cpu.busy > first.host.cpu.busy ? last.host.cpu.busy - first.host.cpu.busy : 0);
  cpu.busy.value = total > 0 ? std::min(1.0, busy / total) : 0;
  cpu.iowait.value = cpu.steal.value = 0;
  const std::string reason = "not part of the situation";
  cpu.cgroup_busy.reason = cpu.throttled.reason = cpu.pressure.reason = reason;
  report.memory.total = 256 * kGiB;
  report.memory.available = 180 * kGiB;
  report.memory.pressure.reason = report.memory.io_pressure.reason = reason;
}

}  // namespace

ProcessBrief brief_of(const Thing& process) {
  ProcessBrief brief;
  brief.pid = process.id;
  brief.parent = static_cast<int>(process.number("ppid", 1));
  brief.group = static_cast<int>(process.number("group", process.id));
  brief.session = static_cast<int>(process.number("session", brief.group));
  brief.state = process.text("state", "S").front();
  brief.threads = static_cast<int>(process.number("threads", 1));
  brief.name = process.text("name", "python").substr(0, 15);
  brief.start_ticks = static_cast<std::uint64_t>((Scenario::kUptime - process.number("age", 36'000)) * kTicks);
  const auto cpu = process.sums.find("cpu");
  brief.cpu_ticks = 1000 + static_cast<std::uint64_t>(cpu != process.sums.end() ? cpu->second * kTicks : 0);
  return brief;
}

std::vector<ThreadSample> threads_of(const Thing& process) {
  std::vector<ThreadSample> threads;
  for (const std::string& task : split(process.text("tasks"), ',')) {
    const std::vector<std::string> parts = split(task, ':');
    if (parts.size() < 2) continue;
    threads.push_back({std::atoi(parts[0].c_str()), parts[1].front(), parts.size() > 2 ? parts[2] : ""});
  }
  if (threads.empty()) threads.push_back({process.id, process.text("state", "S").front(), process.text("wchan")});
  return threads;
}

ProcessDetail detail_of(const Thing& process) {
  ProcessDetail detail;
  detail.uid = static_cast<std::uint32_t>(process.number("uid", 1000));
  detail.command = process.text("cmd", process.text("name", "python"));
  detail.cgroup = process.text("cgroup", "/user.slice");
  std::string environment;
  for (const std::string& entry : split(process.text("env"), ' ')) environment += entry + '\0';
  detail.environment = parse_environ(environment, job_variables());
  detail.memory_locked = process.number("locked") != 0;
  detail.environment_known = !detail.memory_locked && process.number("titled") == 0;
  detail.kill_pending = process.number("kill") != 0;
  detail.tracer = static_cast<int>(process.number("tracer"));
  detail.inner_pid = static_cast<int>(process.number("inner"));
  if (process.text("io") != "na") {
    const auto sum = process.sums.find("io");
    detail.io_bytes = static_cast<std::uint64_t>(5'000'000 + (sum == process.sums.end() ? 0 : sum->second));
  }
  detail.threads = threads_of(process);
  detail.first = detail.threads.front();
  if (detail.memory_locked || process.text("state", "S") == "Z") {  // a zombie has none
    detail.command.clear();
    detail.environment.clear();
  }
  const int port = static_cast<int>(process.number("listen"));
  detail.listens = port != 0 && is_port_of_service(port, parse_first_free_port(""));
  detail.reads_terminal = process.number("tty") != 0;
  if (process.number("batch") != 0) detail.at_terminal = false;
  return detail;
}

std::vector<int> minors_of(const Thing& process) {
  std::vector<int> minors;
  for (const std::string& minor : split(process.text("open"), ',')) minors.push_back(std::atoi(minor.c_str()));
  return minors;
}

std::unique_ptr<Source> scenario_source(Scenario scenario) {
  return std::make_unique<ScenarioSource>(std::move(scenario));
}

}  // namespace drover::inline v1::health
