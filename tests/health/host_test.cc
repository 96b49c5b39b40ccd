// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <stdlib.h>

#include "drover/health/engine.h"
#include "drover/health/probe/host_probe.h"
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

TEST(Devices, ThoseThatNvidiasModuleHasAreCountedButForPartsOfGuests) {
  Machine machine;
  const std::string devices = "/sys/bus/pci/devices/0000:0";
  for (const char* const number : {"1", "2", "3", "4"}) {
    machine.write(devices + number + ":00.0/vendor", "0x10de\n");
    machine.write(devices + number + ":00.0/class", "0x030200\n");
  }
  machine.link(devices + "1:00.0/driver", "../../../bus/pci/drivers/nvidia");
  machine.link(devices + "2:00.0/driver", "../../../bus/pci/drivers/vfio-pci");
  machine.link(devices + "3:00.0/driver", "../../../bus/pci/drivers/nvidia");
  machine.link(devices + "3:00.0/physfn", "../0000:01:00.0");
  const PciGpus found = find_nvidia_devices(machine.root());
  EXPECT_EQ(found.count, 4U);
  EXPECT_EQ(found.driven, std::vector<std::string>{"0000:01:00.0"});
}

TEST(Devices, MayBeHiddenInContainersAndJobsAndWhereTheModuleWasTold) {
  Machine machine;
  machine.write_host(false);
  EXPECT_FALSE(may_miss_gpus(machine.root(), {"HOME=/root"}));
  EXPECT_TRUE(may_miss_gpus(machine.root(), {"SLURM_JOB_ID=77"}));
  machine.write("/proc/driver/nvidia/params", "EnableMSI: 1\nExcludedGpus: \"\"\n");
  EXPECT_FALSE(may_miss_gpus(machine.root(), {}));
  machine.write("/proc/driver/nvidia/params", "EnableMSI: 1\nExcludedGpus: \"GPU-1234\"\n");
  EXPECT_TRUE(may_miss_gpus(machine.root(), {}));
  machine.remove("/proc/driver");
  machine.write("/proc/self/cgroup", "0::/system.slice/slurmstepd.scope/job_77/step_0\n");
  EXPECT_TRUE(may_miss_gpus(machine.root(), {}));
  Machine inside;
  inside.write_host(true);
  EXPECT_TRUE(may_miss_gpus(inside.root(), {}));
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

}  // namespace
