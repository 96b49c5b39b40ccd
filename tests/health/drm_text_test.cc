// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "drover/health/drm/engine_use.h"
#include "drover/health/drm/fdinfo.h"
#include "drover/health/drm/kfd.h"
#include "drover/health/drm/processes.h"

namespace {

using namespace drover::health;
using drm::Client;
using drm::parse_fdinfo;

constexpr const char* kAmd =
    "pos:\t0\nflags:\t02100002\nmnt_id:\t24\nino:\t1239\ndrm-driver:\tamdgpu\ndrm-client-id:\t42\n"
    "drm-pdev:\t0000:0b:00.0\npasid:\t32771\ndrm-memory-vram:\t2048 KiB\ndrm-memory-gtt: \t9 MiB\n"
    "drm-memory-cpu: \t0 KiB\namd-evicted-vram:\t7 KiB\ndrm-total-vram:\t3 MiB\ndrm-shared-vram:\t0\n"
    "drm-resident-vram:\t2 MiB\ndrm-active-vram:\t0\ndrm-engine-gfx:\t100 ns\ndrm-engine-compute:\t50 ns\n";

TEST(Fdinfo, OfAmdTakesTheSameMemoryOnce) {
  const auto client = parse_fdinfo(kAmd);
  ASSERT_TRUE(client);
  EXPECT_EQ(client->driver, "amdgpu");
  EXPECT_EQ(client->device, "0000:0b:00.0");
  EXPECT_EQ(client->id, 42U);
  EXPECT_EQ(client->video_bytes, 2U << 20U) << "resident and memory say the same twice";
  EXPECT_EQ(client->system_bytes, 9U << 20U);
  ASSERT_EQ(client->engines.size(), 2U);
  EXPECT_EQ(client->engines[0].name, "gfx");
  EXPECT_EQ(client->engines[0].ns, 100U);
}

TEST(Fdinfo, OfXeHasCyclesAndTheirClock) {
  const auto client = parse_fdinfo(
      "drm-driver:\txe\ndrm-client-id:\t3\ndrm-pdev:\t0000:03:00.0\ndrm-total-gtt:\t192 KiB\ndrm-resident-gtt:\t0\n"
      "drm-total-vram0:\t23992 KiB\ndrm-shared-vram0:\t16 MiB\ndrm-resident-vram0:\t12 KiB\ndrm-resident-vram1:\t4 "
      "KiB\ndrm-cycles-rcs:\t28257900\ndrm-total-cycles-rcs:\t7655183225\ndrm-cycles-ccs:\t5\n"
      "drm-total-cycles-ccs:\t7655183225\ndrm-engine-capacity-ccs:\t4\n");
  ASSERT_TRUE(client);
  EXPECT_EQ(client->video_bytes, 16U << 10U) << "of all tiles";
  EXPECT_EQ(client->system_bytes, 0U) << "resident counts, not what was asked for";
  ASSERT_EQ(client->engines.size(), 2U);
  EXPECT_EQ(client->engines[0].cycles, 28257900U);
  EXPECT_EQ(client->engines[0].total_cycles, 7655183225U);
  EXPECT_EQ(client->engines[1].capacity, 4U);
  EXPECT_FALSE(client->engines[0].ns);
}

TEST(Fdinfo, OfI915HasNoMemoryOfItsOwn) {
  const auto client = parse_fdinfo(
      "drm-driver: i915\ndrm-client-id: 5\ndrm-pdev: 0000:00:02.0\ndrm-total-system0: 4 MiB\ndrm-resident-system0: 2 "
      "MiB\ndrm-resident-stolen-system0: 0\ndrm-engine-render: 25662044495 ns\ndrm-engine-video: 0 "
      "ns\ndrm-engine-capacity-video: 2\n");
  ASSERT_TRUE(client);
  EXPECT_FALSE(client->video_bytes);
  EXPECT_EQ(client->system_bytes, 2U << 20U);
  EXPECT_EQ(client->engines.at(1).capacity, 2U);
}

TEST(Fdinfo, WhatIsNoClientIsNone) {
  for (const char* const text : {"", "pos:\t0\nflags:\t02\n", "drm-driver: x\n", "drm-client-id: 4\n",
                                 "drm-driver: x\ndrm-client-id: -4\n", "drm-driver: x\ndrm-client-id: 4x\n"}) {
    EXPECT_FALSE(parse_fdinfo(text)) << text;
  }
}

TEST(Fdinfo, GarbageIsLeftOut) {
  std::string text =
      "drm-driver: x\ndrm-client-id: 4\ndrm-engine-: 5 ns\ndrm-engine-gfx: many ns\ndrm-engine-capacity-gfx: 0\n"
      "drm-memory-vram: 5 KB\ndrm-memory-vram2: 99999999999999999999999 KiB\ndrm-memory-vram3: 18446744073709551615 "
      "GiB\ndrm-cycles-a: -1\n: 4\n:\n";
  for (int i = 0; i < 1000; ++i) text += "drm-engine-e" + std::to_string(i) + ": 1 ns\n";
  const auto client = parse_fdinfo(text);
  ASSERT_TRUE(client);
  EXPECT_LE(client->engines.size(), 64U);
  EXPECT_EQ(client->video_bytes, UINT64_MAX) << "saturates";
}

TEST(Nodes, AreThoseOfGpus) {
  EXPECT_EQ(drm::node_of("/dev/dri/renderD128"), "renderD128");
  EXPECT_EQ(drm::node_of("/dev/dri/card1"), "card1");
  for (const char* const path : {"/dev/dri/", "/dev/dri/card", "/dev/dri/card1-DP-1", "/dev/dri/cardinal",
                                 "/dev/dri/renderD12345678", "/dev/nvidia0", "", "socket:[5]"}) {
    EXPECT_EQ(drm::node_of(path), "") << path;
  }
}

TEST(Kfd, PlacesOfTheTopologyAreSlots) {
  EXPECT_EQ(drm::slot_of_properties("simd_count 4\nlocation_id 768\ndomain 0\n"), "0000:03:00.0");
  EXPECT_EQ(drm::slot_of_properties("location_id 49416\ndomain 65535\n"), "ffff:c1:01.0");
  EXPECT_EQ(drm::slot_of_properties("location_id 2684355328\n"), "0000:03:00.0") << "a partition";
  EXPECT_EQ(drm::slot_of_properties("location_id 0\n"), "") << "a CPU";
  EXPECT_EQ(drm::slot_of_properties("nonsense"), "");
  EXPECT_EQ(drm::slot_of_properties("location_id 3\ndomain 99999999999\n"), "");
}

drm::OwnedClient owned(int pid, const std::string& text) { return {pid, 1, 0, *parse_fdinfo(text)}; }
std::string gfx(int id, std::uint64_t ns) {
  return "drm-driver: amdgpu\ndrm-client-id: " + std::to_string(id) + "\ndrm-engine-gfx: " + std::to_string(ns) +
         " ns\n";
}

TEST(EngineUse, IsTheDifferenceOverTheTimeAndNeverNegative) {
  drm::EngineUse use;
  EXPECT_EQ(use.add(0, {owned(5, gfx(1, 1000))}, 10, -1).by_pid.at(5).code, Reading::kOneLook);
  EXPECT_EQ(use.add(0, {owned(5, gfx(1, 500'001'000))}, 11, 10).by_pid.at(5).value, 50U);
  EXPECT_EQ(use.add(0, {owned(5, gfx(1, 400'000'000))}, 12, 11).by_pid.at(5).value, 0U) << "it fell behind";
  EXPECT_EQ(use.add(0, {owned(5, gfx(1, 500'001'000))}, 13, 12).by_pid.at(5).value, 0U) << "and has caught up";
  EXPECT_EQ(use.add(0, {owned(5, gfx(1, 500'001'001))}, 14, 13).by_pid.at(5).value, 1U) << "little is not nothing";
  EXPECT_EQ(use.add(0, {owned(5, gfx(1, 9'500'001'001))}, 15, 14).by_pid.at(5).value, 100U) << "no more than all";
}

TEST(EngineUse, AddsClientsOfAProcessAndTakesTheBusiestEngine) {
  drm::EngineUse use;
  use.add(0, {}, 10, -1);
  const auto shares =
      use.add(0,
              {owned(5, gfx(1, 200'000'000)), owned(5, gfx(2, 100'000'000) + "drm-engine-dec: 50000000 ns\n"),
               owned(6, gfx(3, 400'000'000))},
              11, 10);
  EXPECT_EQ(shares.by_pid.at(5).value, 30U);
  EXPECT_EQ(shares.by_pid.at(6).value, 40U);
  EXPECT_EQ(shares.all.value, 70U);
}

TEST(EngineUse, OfAmdTheGpusOwnFigureHasNoVideo) {
  drm::EngineUse use;
  use.add(0, {}, 10, -1);
  const auto shares = use.add(0, {owned(5, gfx(1, 101'000'000) + "drm-engine-dec: 900000000 ns\n")}, 11, 10);
  EXPECT_EQ(shares.by_pid.at(5).value, 90U);
  EXPECT_NEAR(shares.told.at(5), 10.1, 1e-6) << "and is not rounded";
}

TEST(EngineUse, OfXeIsCyclesOverItsClockAndEngines) {
  const auto text = [](int cycles, int total) {
    return "drm-driver: xe\ndrm-client-id: 1\ndrm-cycles-ccs: " + std::to_string(cycles) +
           "\ndrm-total-cycles-ccs: " + std::to_string(total) + "\ndrm-engine-capacity-ccs: 4\n";
  };
  drm::EngineUse use;
  use.add(0, {owned(5, text(1000, 10'000))}, 10, -1);
  EXPECT_EQ(use.add(0, {owned(5, text(3000, 11'000))}, 11, 10).by_pid.at(5).value, 50U);
  EXPECT_EQ(use.add(0, {owned(5, text(3000, 11'000))}, 12, 11).by_pid.at(5).value, 0U) << "the clock stood still";
}

TEST(EngineUse, ADriverThatTellsNothingGivesNoZero) {
  drm::EngineUse use;
  use.add(0, {}, 10, -1);
  const auto shares = use.add(0, {owned(5, "drm-driver: i915\ndrm-client-id: 1\n")}, 11, 10);
  EXPECT_EQ(shares.by_pid.at(5).code, Reading::kNotSupported);
  EXPECT_EQ(shares.all.code, Reading::kNotSupported);
  EXPECT_TRUE(use.add(0, {owned(5, "drm-driver: amdgpu\ndrm-client-id: 2\n")}, 12, 11).by_pid.at(5).ok())
      << "amdgpu leaves out engines that were never used";
}

GpuSample with_busy(std::uint64_t percent) {
  GpuSample gpu;
  gpu[Metric::kUtilCores] = {Reading::kOk, percent};
  gpu[Metric::kMemoryTotal] = {Reading::kOk, 1000};
  return gpu;
}
drm::ProcessUse queue(int pid) {
  return {pid, kUsesCompute, {0, 100}, {0, 0}, true, {Reading::kNotSupported, 0}, false};
}

TEST(Processes, OneThatComputesDidWhatTheGpuDid) {
  GpuSample gpu = with_busy(90);
  drm::fill_processes(gpu, {queue(5)}, false);
  ASSERT_EQ(gpu.active.size(), 1U);
  EXPECT_EQ(gpu.active[0].cores, 90U);
}

TEST(Processes, OfTwoThatComputeNeitherIsCalledIdle) {
  GpuSample gpu = with_busy(90);
  drm::fill_processes(gpu, {queue(5), queue(6)}, false);
  EXPECT_EQ(gpu.activity.code, Reading::kUntold);
  EXPECT_EQ(gpu.rows.at(0).use_code, Reading::kUntold);
  GpuSample idle = with_busy(0);
  drm::fill_processes(idle, {queue(5), queue(6)}, false);
  EXPECT_EQ(idle.activity.code, Reading::kNotFound) << "the GPU rests, so both do";
}

TEST(Processes, WhatEnginesTellIsNotBlamedOnQueues) {
  GpuSample gpu = with_busy(60);
  drm::ProcessUse draws{7, kUsesGraphics, {0, 1}, {0, 60}, false, {Reading::kNotSupported, 0}, false};
  drm::fill_processes(gpu, {queue(5), draws, queue(6)}, false);
  ASSERT_EQ(gpu.active.size(), 1U);
  EXPECT_EQ(gpu.active[0].pid, 7);
  EXPECT_EQ(gpu.rows.at(0).use_code, Reading::kOk);
}

TEST(Processes, VideoDoesNotAccountForQueues) {
  GpuSample gpu = with_busy(60);
  drm::ProcessUse decodes{7, kUsesGraphics, {0, 1}, {0, 60}, false, {Reading::kNotSupported, 0}, false, 0.0};
  drm::fill_processes(gpu, {queue(5), queue(6), decodes}, false);
  EXPECT_EQ(gpu.rows.at(0).use_code, Reading::kUntold);
  EXPECT_EQ(gpu.rows.at(1).use_code, Reading::kUntold);
  ASSERT_EQ(gpu.active.size(), 1U);
  EXPECT_EQ(gpu.active[0].pid, 7);
  GpuSample alone = with_busy(60);
  drm::fill_processes(alone, {queue(5), decodes}, false);
  ASSERT_EQ(alone.active.size(), 2U);
  EXPECT_EQ(alone.active[0].cores, 60U);
}

TEST(Processes, SharesThatWereRoundedUpDoNotAddUpToAnExcuse) {
  GpuSample gpu = with_busy(10);
  std::vector<drm::ProcessUse> uses = {queue(5), queue(6)};
  for (int pid = 10; pid < 20; ++pid) {
    uses.push_back({pid, kUsesGraphics, {0, 1}, {0, 1}, false, {Reading::kNotSupported, 0}, false, 0.01});
  }
  drm::fill_processes(gpu, uses, false);
  EXPECT_EQ(gpu.rows.at(0).use_code, Reading::kUntold);
  GpuSample noise = with_busy(3);
  drm::fill_processes(noise, {queue(5), queue(6)}, false);
  EXPECT_EQ(noise.rows.at(0).use_code, Reading::kOk);
}

TEST(Processes, WorkThatNobodyAccountsForLeavesTheIdleUnknown) {
  GpuSample gpu = with_busy(60);
  drm::ProcessUse draws{7, kUsesGraphics, {0, 2000}, {0, 0}, false, {Reading::kNotSupported, 0}, false};
  drm::fill_processes(gpu, {draws}, false);
  EXPECT_EQ(gpu.activity.code, Reading::kUntold) << "a user queue, perhaps";
  EXPECT_EQ(gpu.rows.at(0).memory.code, Reading::kNoValue) << "more than the GPU has";
}

TEST(Processes, ASensorThatIsMissingIsNoZero) {
  GpuSample gpu;
  gpu[Metric::kUtilCores] = {Reading::kNotSupported, 0};
  drm::ProcessUse seen = queue(6);
  seen.occupancy = {Reading::kOk, 70};
  drm::fill_processes(gpu, {queue(5), seen}, false);
  EXPECT_EQ(gpu.rows.at(0).use_code, Reading::kUntold);
  ASSERT_EQ(gpu.active.size(), 1U);
  EXPECT_EQ(gpu.active[0].cores, 70U);
  GpuSample first;
  drm::fill_processes(first, {queue(5)}, true);
  EXPECT_EQ(first.activity.code, Reading::kOneLook);
}

}  // namespace
