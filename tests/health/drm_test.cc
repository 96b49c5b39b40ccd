// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "drover/health/drm/probe.h"
#include "drover/health/probe/process_probe.h"
#include "health/drm_tree.h"

namespace {

using namespace drover::health;
using drover_test::Card;
using drover_test::Machine;
using drover_test::write_card;
using drover_test::write_descriptor;
using drover_test::write_kfd_node;
using drover_test::write_kfd_process;

ProcessBrief process(int pid, std::uint64_t start = 100, std::uint64_t cpu = 5) {
  ProcessBrief brief;
  brief.pid = pid;
  brief.parent = 1;
  brief.state = 'S';
  brief.threads = 1;
  brief.start_ticks = start;
  brief.cpu_ticks = cpu;
  return brief;
}

Card instinct() {
  Card card;
  card.files = {{"product_name", "AMD Instinct MI210\n"},
                {"unique_id", "a1b2c3d4e5f60718\n"},
                {"mem_info_vram_total", "68702699520\n"},
                {"mem_info_vram_used", "11181002752\n"},
                {"gpu_busy_percent", "37\n"},
                {"mem_busy_percent", "12\n"},
                {"ras/umc_err_count", "ue: 2\nce: 17\n"},
                {"hwmon/hwmon5/power1_average", "123000000\n"},
                {"hwmon/hwmon5/power1_cap", "300000000\n"},
                {"hwmon/hwmon5/temp1_input", "41000\n"},
                {"hwmon/hwmon5/freq1_input", "1700000000\n"},
                {"hwmon/hwmon5/freq2_input", "1600000000\n"}};
  return card;
}

std::string client(int id, int vram_kib, std::uint64_t ns, const std::string& slot = "0000:03:00.0") {
  return "drm-driver:\tamdgpu\ndrm-client-id:\t" + std::to_string(id) + "\ndrm-pdev:\t" + slot +
         "\ndrm-memory-vram:\t" + std::to_string(vram_kib) + " KiB\ndrm-engine-gfx:\t" + std::to_string(ns) + " ns\n";
}

TEST(Drm, AmdsNumbersHaveTheirUnits) {
  Machine machine;
  write_card(machine, instinct());
  drm::Probe probe(machine.root(), false, false);
  const auto gpus = probe.look({}, 10);
  ASSERT_EQ(gpus.size(), 1U);
  const GpuSample& gpu = gpus[0];
  EXPECT_EQ(gpu.vendor, "amd");
  EXPECT_EQ(gpu.name, "AMD Instinct MI210");
  EXPECT_EQ(gpu.uuid, "AMD-a1b2c3d4e5f60718");
  EXPECT_EQ(gpu.bus, "0000:03:00.0");
  EXPECT_EQ(gpu[Metric::kMemoryTotal].value, 68702699520U);
  EXPECT_EQ(gpu[Metric::kMemoryUsed].value, 11181002752U);
  EXPECT_EQ(gpu[Metric::kUtilCores].value, 37U);
  EXPECT_EQ(gpu[Metric::kUtilMemory].value, 12U);
  EXPECT_EQ(gpu[Metric::kPowerMilliwatts].value, 123'000U);
  EXPECT_EQ(gpu[Metric::kPowerLimitMilliwatts].value, 300'000U);
  EXPECT_EQ(gpu[Metric::kTemperature].value, 41U);
  EXPECT_EQ(gpu[Metric::kClockCoresMhz].value, 1700U);
  EXPECT_EQ(gpu[Metric::kEccUncorrected].value, 2U);
  EXPECT_EQ(gpu[Metric::kMinor].value, 128U);
  EXPECT_EQ(gpu[Metric::kPcieSendKilobytes].code, Reading::kNotSupported) << "never 0";
}

TEST(Drm, AClientInManyDescriptorsAndProcessesCountsOnce) {
  Machine machine;
  write_card(machine, instinct());
  const auto write = [&](std::uint64_t ns) {
    for (const int fd : {7, 8}) write_descriptor(machine, 500, fd, "/dev/dri/renderD128", client(42, 1024, ns));
    write_descriptor(machine, 600, 9, "/dev/dri/renderD128", client(42, 1024, ns));  // inherited by a worker
    write_descriptor(machine, 600, 10, "/dev/dri/card0", client(43, 512, 0));        // and one of its own
    write_descriptor(machine, 700, 3, "/dev/dri/card0", client(44, 0, 0));           // opened and never used
  };
  const std::vector<ProcessBrief> table = {process(500), process(600, 200), process(700)};
  write(1'000'000);
  drm::Probe probe(machine.root(), false, false);
  GpuSample gpu = probe.look(table, 10).at(0);
  EXPECT_EQ(gpu.activity.code, Reading::kOneLook);
  write(301'000'000);
  gpu = probe.look(table, 11).at(0);
  ASSERT_EQ(gpu.rows.size(), 2U);
  EXPECT_EQ(gpu.rows[0].pid, 500);
  EXPECT_EQ(gpu.rows[0].memory.value, 1U << 20U);
  EXPECT_EQ(gpu.rows[1].pid, 600);
  EXPECT_EQ(gpu.rows[1].memory.value, 512U << 10U);
  ASSERT_EQ(gpu.active.size(), 1U);
  EXPECT_EQ(gpu.active[0].pid, 500);
  EXPECT_EQ(gpu.active[0].cores, 30U);
  gpu = probe.look({process(600, 200)}, 12).at(0);
  ASSERT_EQ(gpu.rows.size(), 1U) << "the parent died, and the worker keeps its memory";
  EXPECT_EQ(gpu.rows[0].memory.value, (1U << 20U) + (512U << 10U));
}

TEST(Drm, TwoAmdGpusAreToldApartAndStayInOrder) {
  Machine machine;
  Card first = instinct(), second = instinct();
  first.number = 1;
  first.slot = "0000:c1:00.0";
  second.number = 0;
  second.slot = "0000:23:00.0";
  second.files["unique_id"] = "not a number!\n";
  second.files.erase("product_name");
  machine.write("/usr/share/misc/pci.ids",
                "# list\n1001  Other\n\t740f  Wrong\n1002  Advanced Micro Devices\n\t7408  MI250\n\t740f  Aldebaran "
                "[Instinct MI210]\n\t\t1002 0c34  Card\n8086  Intel\n");
  write_card(machine, first);
  write_card(machine, second);
  write_kfd_node(machine, 1, 51'000, 0x2300);
  write_kfd_node(machine, 2, 52'000, 0xc100);
  write_kfd_process(machine, 500, 51'000, 0);
  write_kfd_process(machine, 500, 52'000, 7 << 20);
  drm::Probe probe(machine.root(), false, false);
  const auto gpus = probe.look({process(500)}, 10);
  ASSERT_EQ(gpus.size(), 2U);
  EXPECT_EQ(gpus[0].bus, "0000:23:00.0");
  EXPECT_EQ(gpus[0].uuid, "PCI-0000:23:00.0");
  EXPECT_EQ(gpus[0].name, "Aldebaran [Instinct MI210]");
  EXPECT_TRUE(gpus[0].rows.empty()) << "it opened the driver and holds nothing";
  EXPECT_EQ(gpus[1].index, 1);
  ASSERT_EQ(gpus[1].rows.size(), 1U);
  EXPECT_EQ(gpus[1].rows[0].memory.value, 7U << 20U);
  EXPECT_EQ(gpus[1].rows[0].uses, kUsesCompute);
}

TEST(Drm, QueuesAndTheirClientAreTheSameMemory) {
  Machine machine;
  write_card(machine, instinct());
  write_kfd_node(machine, 1, 51'000, 0x300, 100);
  write_kfd_process(machine, 500, 51'000, 2ULL << 30U, 10, 40);
  write_descriptor(machine, 500, 7, "/dev/dri/renderD128", client(42, 2 << 20, 0));
  write_descriptor(machine, 500, 8, "/dev/kfd", "pos:\t0\n");
  drm::Probe probe(machine.root(), false, false);
  probe.look({process(500)}, 10);
  const GpuSample gpu = probe.look({process(500)}, 11).at(0);
  ASSERT_EQ(gpu.rows.size(), 1U);
  EXPECT_EQ(gpu.rows[0].memory.value, 2ULL << 30U);
  ASSERT_EQ(gpu.active.size(), 1U);
  EXPECT_EQ(gpu.active[0].cores, 40U) << "more than the 37 % that the GPU says";
}

TEST(Drm, InAContainerThePidsOfTheComputeDriverAreNotOurs) {
  Machine machine;
  write_card(machine, instinct());
  write_kfd_node(machine, 1, 51'000, 0x300);
  write_kfd_process(machine, 500, 51'000, 2ULL << 30U);
  drm::Probe probe(machine.root(), true, false);
  EXPECT_TRUE(probe.look({process(500)}, 10).at(0).rows.empty()) << "500 is somebody else here";
}

TEST(Drm, ASleepingGpuIsLeftAlone) {
  Machine machine;
  Card card = instinct();
  card.runtime = "suspended";
  write_card(machine, card);
  write_kfd_node(machine, 1, 51'000, 0x300);
  write_kfd_process(machine, 500, 51'000, 2ULL << 30U);
  write_descriptor(machine, 500, 7, "/dev/dri/renderD128", client(42, 1024, 0));
  drm::Probe probe(machine.root(), false, false), waking(machine.root(), false, true);
  const GpuSample gpu = probe.look({process(500)}, 10).at(0);
  for (const Reading& reading : gpu.readings) EXPECT_EQ(reading.code, Reading::kAsleep);
  EXPECT_EQ(gpu.processes.code, Reading::kAsleep);
  EXPECT_TRUE(gpu.rows.empty());
  EXPECT_TRUE(waking.look({process(500)}, 10).at(0)[Metric::kMemoryTotal].ok());
}

TEST(Drm, IntelsArcTellsEnergyAndMemoryByTile) {
  Machine machine;
  Card card;
  card.vendor = "0x8086";
  card.device = "0x56a0";
  card.driver = "xe";
  card.files = {{"tile0/physical_vram_size_bytes", "17179869184\n"},
                {"tile0/gt0/freq0/act_freq", "2400\n"},
                {"hwmon/hwmon2/energy1_input", "1000000000\n"},
                {"hwmon/hwmon2/power1_max", "190000000\n"}};
  write_card(machine, card);
  const auto write = [&](int cycles, int total) {
    write_descriptor(machine, 500, 7, "/dev/dri/renderD128",
                     "drm-driver:\txe\ndrm-client-id:\t42\ndrm-pdev:\t0000:03:00.0\ndrm-total-vram0:\t9 "
                     "MiB\ndrm-resident-vram0:\t8 MiB\ndrm-cycles-ccs:\t" +
                         std::to_string(cycles) + "\ndrm-total-cycles-ccs:\t" + std::to_string(total) + "\n");
  };
  write(0, 1000);
  drm::Probe probe(machine.root(), false, false);
  probe.look({process(500)}, 10);
  write(700, 2000);
  machine.write("/sys/devices/pci0000:00/0000:03:00.0/hwmon/hwmon2/energy1_input", "1240000000\n");
  const GpuSample gpu = probe.look({process(500)}, 12).at(0);
  EXPECT_EQ(gpu.name, "Intel GPU 56a0");
  EXPECT_EQ(gpu[Metric::kMemoryTotal].value, 16ULL << 30U);
  EXPECT_EQ(gpu[Metric::kMemoryUsed].code, Reading::kNotSupported);
  EXPECT_EQ(gpu[Metric::kPowerMilliwatts].value, 120'000U);
  EXPECT_EQ(gpu[Metric::kClockCoresMhz].value, 2400U);
  EXPECT_EQ(gpu[Metric::kUtilCores].value, 70U);
  ASSERT_EQ(gpu.rows.size(), 1U);
  EXPECT_EQ(gpu.rows[0].memory.value, 8U << 20U);
  EXPECT_EQ(gpu.rows[0].uses, kUsesCompute);
}

TEST(Drm, AnIntegratedGpuHasNoMemoryOfItsOwn) {
  Machine machine;
  Card card;
  card.vendor = "0x8086";
  card.slot = "0000:00:02.0";
  card.driver = "i915";
  write_card(machine, card);
  write_descriptor(machine, 500, 7, "/dev/dri/card0",
                   "drm-driver:\ti915\ndrm-client-id:\t1\ndrm-pdev:\t0000:00:02.0\ndrm-resident-system0:\t9 "
                   "MiB\ndrm-engine-render:\t5 ns\n");
  drm::Probe probe(machine.root(), false, false);
  const GpuSample gpu = probe.look({process(500)}, 10).at(0);
  EXPECT_EQ(gpu[Metric::kMemoryTotal].code, Reading::kMachineMemory);
  ASSERT_EQ(gpu.rows.size(), 1U);
  EXPECT_EQ(gpu.rows[0].memory.code, Reading::kMachineMemory);
}

TEST(Drm, GarbageIsNoNumber) {
  Machine machine;
  Card card = instinct();
  card.files["mem_info_vram_total"] = "lots\n";
  card.files["mem_info_vram_used"] = "99999999999999999999999999\n";
  card.files["gpu_busy_percent"] = "9223372036854776000\n";
  card.files["mem_busy_percent"] = "";
  card.files["hwmon/hwmon5/temp1_input"] = "-5000\n";
  write_card(machine, card);
  write_card(machine, {.number = 1, .slot = "../../etc", .files = {}});
  machine.write("/sys/class/drm/card7/device/vendor", "0x1002\n");  // no slot
  write_kfd_node(machine, 1, 51'000, 0x300);
  machine.write("/sys/class/kfd/kfd/proc/500/vram_51000", "much\n");
  write_descriptor(machine, 500, 7, "/dev/dri/renderD128", std::string(70'000, '\xff'));
  drm::Probe probe(machine.root(), false, false);
  const auto gpus = probe.look({process(500)}, 10);
  ASSERT_EQ(gpus.size(), 1U);
  for (const Metric metric :
       {Metric::kMemoryTotal, Metric::kMemoryUsed, Metric::kUtilCores, Metric::kUtilMemory, Metric::kTemperature}) {
    EXPECT_FALSE(gpus[0][metric].ok()) << metric_name(metric);
  }
  EXPECT_TRUE(gpus[0].rows.empty());
}

TEST(Drm, WhatNoGpuCanHaveIsNoNumber) {
  Machine machine;
  Card card = instinct();
  card.files["hwmon/hwmon5/temp1_input"] = "201000\n";
  card.files["hwmon/hwmon5/power1_average"] = "10001000000\n";
  card.files["hwmon/hwmon5/power1_cap"] = "18446744073709551615\n";
  write_card(machine, card);
  drm::Probe probe(machine.root(), false, false);
  const GpuSample gpu = probe.look({}, 10).at(0);
  for (const Metric metric : {Metric::kTemperature, Metric::kPowerMilliwatts, Metric::kPowerLimitMilliwatts}) {
    EXPECT_EQ(gpu[metric].code, Reading::kNoValue) << metric_name(metric);
  }
}

TEST(Drm, ANumberThatSeveralHaveTellsNoneOfThemApart) {
  Machine machine;
  for (const int number : {0, 1, 2}) {
    Card card = instinct();
    card.number = number;
    card.slot = "0000:0" + std::to_string(number + 3) + ":00.0";
    if (number == 2) card.files["unique_id"] = "0000000000000000\n";
    write_card(machine, card);
  }
  const auto gpus = drm::Probe(machine.root(), false, false).look({}, 10);
  ASSERT_EQ(gpus.size(), 3U);
  EXPECT_EQ(gpus[0].uuid, "AMD-a1b2c3d4e5f60718");
  EXPECT_EQ(gpus[1].uuid, "PCI-0000:04:00.0");
  EXPECT_EQ(gpus[2].uuid, "PCI-0000:05:00.0") << "zeros are no number";
}

TEST(Drm, NvidiaAndOthersAreNobodysBusinessHere) {
  Machine machine;
  Card card;
  card.vendor = "0x10de";
  write_card(machine, card);
  EXPECT_TRUE(drm::Probe(machine.root(), false, false).look({process(500)}, 10).empty());
  EXPECT_TRUE(drm::Probe("/nonexistent", false, false).look({}, 10).empty());
}

TEST(Drm, AGpuThatComesLaterIsSeen) {
  Machine machine;
  drm::Probe probe(machine.root(), false, false);
  EXPECT_TRUE(probe.look({}, 10).empty());
  write_card(machine, instinct());
  EXPECT_EQ(probe.look({}, 11).size(), 1U);
  machine.remove("/sys/class/drm");
  EXPECT_TRUE(probe.look({}, 12).empty());
}

TEST(Drm, WhoHasRunIsLookedAtAgainAndWhoSleepsNowAndThen) {
  Machine machine;
  write_card(machine, instinct());
  machine.link("/proc/500/fd/0", "/dev/null");
  machine.link("/proc/600/fd/0", "/dev/null");
  drm::Probe probe(machine.root(), false, false);
  EXPECT_TRUE(probe.look({process(500), process(600)}, 10).at(0).rows.empty());
  for (const int pid : {500, 600}) write_descriptor(machine, pid, 7, "/dev/dri/renderD128", client(pid, 1024, 9));
  EXPECT_EQ(probe.look({process(500, 100, 6), process(600)}, 11).at(0).rows.size(), 1U) << "only 500 has run";
  EXPECT_EQ(probe.look({process(500, 100, 6), process(600)}, 42).at(0).rows.size(), 2U);
  EXPECT_EQ(probe.look({process(500, 900, 0)}, 43).at(0).rows.size(), 1U) << "the number was used again";
}

TEST(Drm, OfAZombieTheLivingThreadsDescriptorsCount) {
  Machine machine;
  write_card(machine, instinct());
  machine.write("/proc/500/task/500/stat", "x");
  machine.link("/proc/500/task/501/fd/7", "/dev/dri/renderD128");
  machine.write("/proc/500/task/501/fdinfo/7", client(1, 1024, 9));
  ProcessBrief zombie = process(500);
  zombie.state = 'Z';
  zombie.threads = 2;
  drm::Probe probe(machine.root(), false, false);
  EXPECT_EQ(probe.look({zombie}, 10).at(0).rows.size(), 1U);
  zombie.threads = 1;
  EXPECT_TRUE(probe.look({zombie}, 11).at(0).rows.empty());
}

TEST(Holders, OfRenderNodesAreFound) {
  Machine machine;
  write_descriptor(machine, 500, 7, "/dev/dri/renderD129", "");
  write_descriptor(machine, 600, 7, "/dev/kfd", "");
  write_descriptor(machine, 700, 7, "/dev/dri/card0", "");
  HostSample host;
  host.processes = {process(500), process(600), process(700)};
  const HolderScan scan = ProcessProbe(machine.root()).find_holders(host);
  ASSERT_EQ(scan.holders.size(), 2U);
  EXPECT_EQ(scan.holders[0].render_minors, std::vector<int>{129});
  EXPECT_EQ(scan.holders[1].pid, 600) << "a control file only";
  EXPECT_TRUE(scan.holders[1].minors.empty() && scan.holders[1].render_minors.empty());
}

}  // namespace
