// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <optional>
#include <set>

#include "drover/health/engine.h"
#include "drover/health/probe/host_probe.h"
#include "drover/health/probe/process_probe.h"
#include "drover/health/rules/rules.h"
#include "drover/health/scenario/scenario_source.h"
#include "health/fixture.h"

namespace {

using namespace drover::health;
using drover_test::Machine;

/// Writes CPUs that are `threads` wide, cores numbered anew in each of `sockets`, as real machines do.
void write_cpus(Machine& machine, int sockets, int cores, int threads) {
  const int all = sockets * cores * threads;
  machine.write("/sys/devices/system/cpu/online", "0-" + std::to_string(all - 1) + "\n");
  for (int cpu = 0; cpu < all; ++cpu) {
    const int core = cpu % (sockets * cores);
    std::string siblings;
    for (int t = 0; t < threads; ++t) siblings += (t == 0 ? "" : ",") + std::to_string(core + t * sockets * cores);
    const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    machine.write(folder + "core_cpus_list", siblings + "\n");
    machine.write(folder + "core_id", std::to_string(core % cores) + "\n");
    machine.write(folder + "physical_package_id", std::to_string(core / cores) + "\n");
  }
}

struct Shape {
  int sockets, cores, threads;
};
class Shapes : public testing::TestWithParam<Shape> {};

TEST_P(Shapes, CoresAreCountedThoughTheirNumbersRepeat) {
  const auto [sockets, cores, threads] = GetParam();
  Machine machine;
  write_cpus(machine, sockets, cores, threads);
  const CpuReport cpu = read_topology(machine.root());
  EXPECT_EQ(cpu.logical, static_cast<std::size_t>(sockets * cores * threads));
  EXPECT_EQ(cpu.physical, static_cast<std::size_t>(sockets * cores));
  EXPECT_EQ(cpu.sockets, static_cast<std::size_t>(sockets));
  EXPECT_EQ(cpu.hyperthreading, threads > 1);
}
INSTANTIATE_TEST_SUITE_P(Topology, Shapes,
                         testing::Values(Shape{1, 1, 1}, Shape{1, 4, 1}, Shape{1, 8, 2}, Shape{2, 16, 1},
                                         Shape{2, 16, 2}, Shape{4, 4, 2}, Shape{2, 8, 4}, Shape{8, 80, 2}));

TEST(Topology, OfflineCpusDoNotCount) {
  Machine machine;
  write_cpus(machine, 2, 4, 2);
  machine.write("/sys/devices/system/cpu/online", "0-3,8\n");
  const CpuReport cpu = read_topology(machine.root());
  EXPECT_EQ(cpu.logical, 5U);
  EXPECT_EQ(cpu.physical, 4U);
  EXPECT_EQ(cpu.sockets, 1U);
}

TEST(Topology, IntelsTwoKindsOfCores) {
  Machine machine;
  machine.write("/sys/devices/system/cpu/online", "0-19\n");
  for (int cpu = 0; cpu < 20; ++cpu) {
    const int first = cpu < 12 ? cpu / 2 * 2 : cpu;
    const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    machine.write(folder + "core_cpus_list", cpu < 12 ? std::to_string(first) + "-" + std::to_string(first + 1) + "\n"
                                                      : std::to_string(cpu) + "\n");
    machine.write(folder + "physical_package_id", "0\n");
  }
  machine.write("/sys/devices/cpu_core/cpus", "0-11\n");
  machine.write("/sys/devices/cpu_atom/cpus", "12-19\n");
  const CpuReport cpu = read_topology(machine.root());
  EXPECT_EQ(cpu.physical, 14U);
  EXPECT_EQ(cpu.performance_cores, 6U);
  EXPECT_EQ(cpu.efficiency_cores, 8U);
}

TEST(Topology, ArmsKindsByCapacityAndNoPackage) {
  Machine machine;
  machine.write("/sys/devices/system/cpu/online", "0-7\n");
  for (int cpu = 0; cpu < 8; ++cpu) {
    const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(cpu);
    machine.write(folder + "/topology/thread_siblings_list", std::to_string(cpu) + "\n");
    machine.write(folder + "/topology/physical_package_id", "-1\n");
    machine.write(folder + "/cpu_capacity", cpu < 4 ? "446\n" : "1024\n");
  }
  const CpuReport cpu = read_topology(machine.root());
  EXPECT_EQ(cpu.physical, 8U);
  EXPECT_EQ(cpu.sockets, 1U);
  EXPECT_EQ(cpu.performance_cores, 4U);
  EXPECT_EQ(cpu.efficiency_cores, 4U);
}

TEST(Topology, WithoutSysCpuinfoIsAsked) {
  Machine machine;
  machine.write("/sys/devices/system/cpu/online", "0-3\n");
  std::string text;
  for (int cpu = 0; cpu < 4; ++cpu) {
    text += "processor\t: " + std::to_string(cpu) +
            "\nmodel name\t: Old CPU\nphysical id\t: " + std::to_string(cpu / 2) + "\ncore id\t\t: 0\n\n";
  }
  machine.write("/proc/cpuinfo", text);
  const CpuReport cpu = read_topology(machine.root());
  EXPECT_EQ(cpu.model, "Old CPU");
  EXPECT_EQ(cpu.physical, 2U);
  EXPECT_EQ(cpu.sockets, 2U);
}

TEST(Topology, OfAnEmptyFolderIsUnknownAndNoError) {
  Machine machine;
  const CpuReport cpu = read_topology(machine.root());
  EXPECT_EQ(cpu.logical, 0U);
  EXPECT_EQ(read_memory(machine.root()).total, 0U);
  EXPECT_FALSE(in_pid_namespace(machine.root()));
  EXPECT_EQ(find_nvidia_devices(machine.root()).count, 0U);
}

TEST(Topology, TheTightestQuotaOfAllAncestorsCounts) {
  Machine machine;
  write_cpus(machine, 1, 8, 1);
  machine.write("/proc/self/cgroup", "0::/a/b\n");
  machine.write("/proc/self/mountinfo", "30 24 0:26 / /cg rw - cgroup2 cgroup2 rw\n");
  machine.write("/cg/a/b/cpu.max", "max 100000\n");
  machine.write("/cg/a/cpu.max", "250000 100000\n");
  EXPECT_EQ(read_topology(machine.root()).quota, 2.5);
}

TEST(Load, IsTheDifferenceAndNeverNegative) {
  HostSample first, last;
  first.cpu = {100, 200, 50, 0};
  last.cpu = {150, 300, 40, 10};
  CpuReport cpu;
  cpu.logical = cpu.allowed = 4;
  cpu.quota = 2;
  first.cgroup_usage_us = 1'000'000;
  last.cgroup_usage_us = 2'000'000;
  first.quotas["/job"] = {100, 7};
  last.quotas["/job"] = {110, 12};
  Machine machine;
  fill_load(cpu, first, last, 1, machine.root());
  EXPECT_DOUBLE_EQ(*cpu.busy, 0.5);
  EXPECT_DOUBLE_EQ(*cpu.iowait, 0) << "iowait may fall";
  EXPECT_DOUBLE_EQ(*cpu.steal, 0.1);
  EXPECT_DOUBLE_EQ(*cpu.cgroup_busy, 0.5);
  EXPECT_DOUBLE_EQ(*cpu.throttled, 0.5);
  EXPECT_FALSE(cpu.pressure);
  EXPECT_FALSE(cpu.pressure.reason.empty());
}

TEST(Load, QuotaThatIsUsedUpCountsByPeriodsAndNotByCpus) {
  Machine machine;
  machine.write("/proc/self/cgroup", "0::/job\n");
  machine.write("/proc/self/mountinfo", "30 24 0:26 / /cg rw - cgroup2 cgroup2 rw\n");
  // 16 threads, which were held back for 20 ms each in one of ten periods.
  machine.write("/cg/job/cpu.stat", "usage_usec 1000000\nnr_periods 50\nnr_throttled 3\nthrottled_usec 1000000\n");
  const HostSample first = read_cpu_times(machine.root());
  machine.write("/cg/job/cpu.stat", "usage_usec 2000000\nnr_periods 60\nnr_throttled 4\nthrottled_usec 1320000\n");
  const HostSample last = read_cpu_times(machine.root());
  CpuReport cpu;
  cpu.logical = 16;
  cpu.quota = 2;
  fill_load(cpu, first, last, 1, machine.root());
  EXPECT_DOUBLE_EQ(*cpu.throttled, 0.1);
  fill_load(cpu, first, first, 1, machine.root());
  EXPECT_DOUBLE_EQ(*cpu.throttled, 0) << "no period is over";
}

TEST(Load, AQuotaThatIsUsedUpAboveHoldsBackAll) {
  Machine machine;
  machine.write("/proc/self/cgroup", "0::/slice/job\n");
  machine.write("/proc/self/mountinfo", "30 24 0:26 / /cg rw - cgroup2 cgroup2 rw\n");
  machine.write("/cg/slice/job/cpu.stat", "usage_usec 1000000\nnr_periods 50\nnr_throttled 3\n");
  machine.write("/cg/slice/cpu.stat", "usage_usec 5000000\nnr_periods 70\nnr_throttled 10\n");
  const HostSample first = read_cpu_times(machine.root());
  machine.write("/cg/slice/job/cpu.stat", "usage_usec 2000000\nnr_periods 60\nnr_throttled 4\n");
  machine.write("/cg/slice/cpu.stat", "usage_usec 9000000\nnr_periods 80\nnr_throttled 19\n");
  CpuReport cpu;
  cpu.logical = 16;
  fill_load(cpu, first, read_cpu_times(machine.root()), 1, machine.root());
  EXPECT_DOUBLE_EQ(*cpu.throttled, 0.9);
}

TEST(Load, OfVersion1IsToldByTwoControllers) {
  Machine machine;
  machine.write("/proc/self/cgroup", "4:cpu,cpuacct:/job\n");
  machine.write("/proc/self/mountinfo", "30 24 0:26 / /cg rw - cgroup cgroup rw,cpu,cpuacct\n");
  machine.write("/cg/job/cpu.stat", "nr_periods 10\nnr_throttled 2\nthrottled_time 5000000\n");
  machine.write("/cg/job/cpuacct.usage", "3000000000\n");
  const HostSample first = read_cpu_times(machine.root());
  machine.write("/cg/job/cpu.stat", "nr_periods 20\nnr_throttled 7\nthrottled_time 9000000\n");
  machine.write("/cg/job/cpuacct.usage", "4000000000\n");
  CpuReport cpu;
  cpu.logical = 4;
  fill_load(cpu, first, read_cpu_times(machine.root()), 1, machine.root());
  EXPECT_DOUBLE_EQ(*cpu.throttled, 0.5);
  EXPECT_DOUBLE_EQ(*cpu.cgroup_busy, 0.25);
}

TEST(Host, ThatHasNoProcIsNotWell) {
  ::setenv("LD_LIBRARY_PATH", "/nonexistent", 1);  // no driver either
  Machine machine;
  const auto source = system_source({.root = machine.root()});
  const Report report = run_inspection(*source, Thresholds(), {.window_s = 0, .interval_s = 0, .history = {}});
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.findings[0].verdict, "CANNOT SEE THE MACHINE");
  EXPECT_EQ(report.exit_code(), 3);
  EXPECT_NE(report.verdict().find("UNKNOWN: "), std::string::npos) << report.verdict();
  EXPECT_NE(report.verdict().find("/proc"), std::string::npos) << report.verdict();
}

TEST(Load, AQuotaIsJudgedOverAWindowOnly) {
  Report report;
  report.processes = 1;
  report.memory.total = report.memory.available = 1;
  report.cpu.throttled.value = 0.5;
  for (const bool once : {true, false}) {
    report.once = once;
    std::vector<Finding> findings;
    judge_host(report, Thresholds(), findings);
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].verdict, "CPU QUOTA USED UP");
    EXPECT_EQ(findings[0].severity, once ? Severity::kInfo : Severity::kWarning);
  }
}

TEST(Memory, IsTheMachinesAndTheLimits) {
  Machine machine;
  machine.write_host(false);
  machine.write("/proc/self/cgroup", "0::/job\n");
  machine.write("/proc/self/mountinfo", "30 24 0:26 / /cg rw - cgroup2 cgroup2 rw\n");
  machine.write("/cg/job/memory.max", "1073741824\n");
  machine.write("/cg/job/memory.current", "900000000\n");
  machine.write("/cg/job/memory.stat", "inactive_file 400000000\n");
  machine.write("/proc/pressure/memory",
                "some avg10=0.00 avg60=1.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
  const MemoryReport memory = read_memory(machine.root());
  EXPECT_EQ(memory.total, 268435456ULL << 10U);
  EXPECT_EQ(memory.limit, 1073741824U);
  EXPECT_EQ(memory.limit_used, 500000000U);
  EXPECT_DOUBLE_EQ((*memory.pressure).some60, 0.01);
  EXPECT_FALSE(memory.io_pressure);
}

TEST(Processes, ANumberThatWasUsedAgainIsNotDescribed) {
  Machine machine;
  machine.write_host(false);
  const Scenario scenario = Scenario::parse("s", "proc 77 name=one cmd=one");
  machine.write_world(scenario.at(0));
  ProcessProbe probe(machine.root());
  HostSample sample;
  probe.list(sample);
  ASSERT_EQ(sample.processes.size(), 1U);
  machine.write_world(Scenario::parse("s", "proc 77 name=other cmd=other age=5").at(0));
  probe.describe(sample, {77}, true);
  EXPECT_TRUE(sample.details.empty());
}

/// A process that is looked at again and again.
class Program : public testing::Test {
 protected:
  Program() {
    put("python", std::string("python\0train.py\0", 16), std::string("SLURM_JOB_ID=1\0", 15));
    probe_.emplace(machine_.root());
  }
  void put(const std::string& name, const std::string& command, const std::string& environment) {
    ProcessBrief brief;
    brief.pid = 77;
    brief.parent = brief.threads = 1;
    brief.state = 'S';
    brief.name = name;
    brief.start_ticks = 100;
    machine_.write("/proc/77/stat", drover_test::stat_text(brief));
    machine_.write("/proc/77/cmdline", command);
    machine_.write("/proc/77/environ", environment);
  }
  ProcessDetail look() {
    HostSample sample;
    probe_->list(sample);
    probe_->describe(sample, {77}, false);
    return sample.details.at(77);
  }

  Machine machine_;
  std::optional<ProcessProbe> probe_;
};

TEST_F(Program, ThatExecStartedIsTheOneThatIsTold) {
  EXPECT_EQ(look().command, "python train.py");
  put("bash", std::string("bash\0", 5), std::string("SLURM_JOB_ID=2\0", 15));
  ProcessDetail detail = look();
  EXPECT_EQ(detail.command, "bash");
  EXPECT_EQ(detail.environment["SLURM_JOB_ID"], "2");
  put("bash", std::string("bash\0-l\0", 8), "");
  for (int i = 0; i < 16; ++i) detail = look();
  EXPECT_EQ(detail.command, "bash -l") << "the name is the same";
  EXPECT_TRUE(detail.environment.empty());
}

TEST_F(Program, ThatEndsKeepsItsCommand) {
  look();
  put("python", "", "");
  for (int i = 0; i < 40; ++i) {
    const ProcessDetail detail = look();
    EXPECT_EQ(detail.command, "python train.py");
    EXPECT_EQ(detail.environment.at("SLURM_JOB_ID"), "1");
  }
}

/// Leaves so many descriptors while it lives.
class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t left) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);  // the lowest that is free
    ::close(next);
    const rlimit few{static_cast<rlim_t>(next) + left, before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit before_{};
};

void write_stat(Machine& machine, int pid, char state, int threads) {
  ProcessBrief brief;
  brief.pid = pid;
  brief.parent = 1;
  brief.threads = threads;
  brief.state = state;
  brief.name = "python";
  brief.start_ticks = 100;
  machine.write("/proc/" + std::to_string(pid) + "/stat", drover_test::stat_text(brief));
}

TEST(Processes, ManyAreDescribedWithFewDescriptors) {
  Machine machine;
  std::set<int> pids;
  for (int pid = 1000; pid < 1100; ++pid) {
    write_stat(machine, pid, 'S', 1);
    machine.write("/proc/" + std::to_string(pid) + "/environ", std::string("RANK=3\0", 7));
    pids.insert(pid);
  }
  ProcessProbe probe(machine.root());
  const auto look = [&](rlim_t descriptors) {
    HostSample sample;
    const FewDescriptors few(descriptors);
    probe.list(sample);
    probe.describe(sample, pids, true);
    return sample;
  };
  const HostSample sample = look(24);
  EXPECT_EQ(sample.without_descriptor, 0);
  ASSERT_EQ(sample.details.size(), 100U);
  for (const auto& [pid, detail] : sample.details) EXPECT_EQ(detail.environment.count("RANK"), 1U) << pid;
  EXPECT_GT(look(4).without_descriptor, 0) << "and when there are none, that is said";
}

TEST(Processes, WithoutADescriptorAreUnknownAndNotAbsent) {
  const auto source = scenario_source(Scenario::parse("s", "gpu 0\nproc 70\n"));
  Sample sample = source->sample({}, true);
  sample.host.without_descriptor = 3;
  sample.host.stuck_left_out = 5;
  const Thresholds limits;
  Tracker tracker(limits);
  const Sample before = sample;
  const Report report = conclude(*source, limits, tracker, {.first = before, .last = sample});
  EXPECT_EQ(report.exit_code(), 3);
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_NE(report.findings[0].because.at(0).find("3 processes"), std::string::npos);
  ASSERT_EQ(report.warnings.size(), 1U);
  EXPECT_EQ(report.warnings[0].substr(0, 16), "5 more processes");
}

TEST(Processes, ZombiesHideNobodyWhoIsStuck) {
  Machine machine;
  machine.write_host(false);
  for (int pid = 1000; pid < 1300; ++pid) write_stat(machine, pid, 'Z', 1);
  write_stat(machine, 1300, 'Z', 2);
  write_stat(machine, 2000, 'D', 1);
  const auto look = [&](const std::set<int>& watched) {
    SystemSourceOptions options{.root = machine.root(), .deadline = drover::Duration(20)};
    options.now = [] { return 1e6; };
    return system_source(options)->sample(watched, true);
  };
  const Sample sample = look({});
  EXPECT_EQ(sample.host.details.count(2000), 1U);
  EXPECT_EQ(sample.host.details.count(1300), 1U) << "it has a thread that lives";
  EXPECT_EQ(sample.host.details.count(1000), 0U);
  EXPECT_EQ(sample.host.stuck_left_out, 0);
  for (int pid = 1000; pid < 1300; ++pid) write_stat(machine, pid, 'D', 1);
  const Sample many = look({2000});
  EXPECT_EQ(many.host.details.count(2000), 1U) << "it is followed already";
  EXPECT_EQ(many.host.stuck_left_out, 302 - 256 - 1);
}

TEST(Processes, SleepingGpusAreNotWoken) {
  Machine machine;
  machine.write_host(false);
  machine.write_world(Scenario::parse("s", "gpu 0 runtime=suspended\nproc 77").at(0));
  machine.use_driver("gpu 0\nhost hang=nvmlInit_v2\n");
  const auto source = system_source({.root = machine.root(), .deadline = drover::Duration(20)});
  const Sample sample = source->sample({}, false);
  EXPECT_EQ(sample.driver.state, DriverState::kAsleep);
  EXPECT_FALSE(sample.driver.problem.empty());
}

TEST(Processes, GpusThatWakeAreAskedAbout) {
  Machine machine;
  machine.write_host(false);
  machine.write_world(Scenario::parse("s", "gpu 0 runtime=suspended\nproc 77").at(0));
  machine.use_driver("gpu 0\n");
  double time = 1000;
  const auto source =
      system_source({.root = machine.root(), .deadline = drover::Duration(20), .now = [&] { return time; }});
  EXPECT_EQ(source->sample({}, false).driver.state, DriverState::kAsleep);
  time += 6;
  EXPECT_EQ(source->sample({}, false).driver.state, DriverState::kAsleep);
  machine.write_world(Scenario::parse("s", "gpu 0\nproc 77").at(0));
  time += 4;
  EXPECT_EQ(source->sample({}, false).driver.state, DriverState::kAsleep) << "not at each look";
  time += 2;
  const Sample sample = source->sample({}, false);
  EXPECT_EQ(sample.driver.state, DriverState::kOk) << sample.driver.problem;
  EXPECT_EQ(sample.driver.gpus.size(), 1U);
}

TEST(Processes, AHelperThatIsStillStuckKeepsUsFromAskingAgain) {
  Machine machine;
  machine.write_host(false);
  machine.write_world(
      Scenario::parse(
          "s", "gpu 0\nproc 77 name=drover-nvml uid=0 age=100 kill=1 threads=2 tasks=77:S:pipe_read,78:D:nvidia_ioctl")
          .at(0));
  machine.use_driver("gpu 0\nhost hang=nvmlInit_v2\n");
  SystemSourceOptions options{.root = machine.root(), .deadline = drover::Duration(20)};
  options.now = [] { return 1e6; };  // as situations have it
  const Sample sample = system_source(options)->sample({}, false);
  EXPECT_EQ(sample.driver.state, DriverState::kNotAnswering);
  EXPECT_NE(sample.driver.problem.find("pid 77"), std::string::npos);
}

}  // namespace
