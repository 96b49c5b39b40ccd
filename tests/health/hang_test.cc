// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <vector>

#include "drover/health/drm/probe.h"
#include "drover/health/drm/probe_client.h"
#include "drover/health/probe/process_probe.h"
#include "drover/health/source.h"
#include "drover/os/host_files.h"
#include "harness/deadline.h"
#include "harness/hanging_files.h"
#include "health/drm_tree.h"
#include "health/fixture.h"

/// Files of the kernel that do not come back.
namespace {

using namespace drover::health;
using drover::Duration;
using drover_test::Card;
using drover_test::eventually;
using drover_test::HangingFile;
using drover_test::Machine;
using drover_test::write_card;
using drover_test::write_descriptor;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

ProcessBrief process(int pid) {
  ProcessBrief brief;
  brief.pid = pid;
  brief.parent = 1;
  brief.state = 'S';
  brief.threads = 1;
  brief.start_ticks = 100;
  brief.name = "python";
  return brief;
}

void write_processes(Machine& machine) {
  for (const int pid : {500, 501, 502}) {
    const std::string folder = "/proc/" + std::to_string(pid);
    machine.write(folder + "/stat", drover_test::stat_text(process(pid)));
    machine.write(folder + "/cmdline", "train-" + std::to_string(pid));
    machine.write(folder + "/environ", std::string("RANK=3\0HOME=/root\0", 18));
  }
}

TEST(Hang, OfACommandHidesThatOneAlone) {
  Machine machine;
  write_processes(machine);
  HangingFile file("501/cmdline");
  ProcessProbe probe(machine.root());
  const auto look = [&] {
    HostSample sample;
    probe.list(sample);
    probe.describe(sample, {500, 501, 502}, false);
    return sample;
  };
  const auto begin = Clock::now();
  const HostSample first = look();
  EXPECT_LT(seconds_since(begin), 5);
  EXPECT_EQ(first.details.at(500).command, "train-500");
  EXPECT_EQ(first.details.at(502).command, "train-502") << "those behind it are read all the same";
  EXPECT_EQ(first.details.at(502).environment.at("RANK"), "3");
  EXPECT_EQ(first.details.at(501).command, "");
  EXPECT_TRUE(first.details.at(501).memory_locked);
  EXPECT_FALSE(first.details.at(500).memory_locked);

  const auto again = Clock::now();
  for (int i = 0; i < 40; ++i) EXPECT_TRUE(look().details.at(501).memory_locked);
  EXPECT_LT(seconds_since(again), 5) << "later looks do not wait for it, and start no more threads that hang";
  file.release();
  EXPECT_TRUE(eventually(std::chrono::seconds(10), [&] { return look().details.at(501).command == "train-501"; }));
  EXPECT_FALSE(look().details.at(501).memory_locked);
}

Card card(int number) {
  Card card;
  card.number = number;
  card.slot = "0000:0" + std::to_string(number + 3) + ":00.0";
  card.files = {{"product_name", "MI210\n"},
                {"mem_info_vram_total", "68702699520\n"},
                {"mem_info_vram_used", "11181002752\n"},
                {"gpu_busy_percent", "37\n"}};
  return card;
}

std::vector<GpuSample> ask(drm::ProbeClient& client, double at) {
  EXPECT_TRUE(client.needed());
  client.begin({process(500)}, at);
  return client.finish();
}

TEST(Hang, OfOneCardIsToldInTimeAndTheOtherOneInFull) {
  Machine machine;
  for (const int number : {0, 1}) write_card(machine, card(number));
  HangingFile file("0000:03:00.0/gpu_busy_percent");
  drm::ProbeClient client(machine.root(), false, false, Duration(0.5));
  const auto begin = Clock::now();
  const auto first = ask(client, 10);
  EXPECT_LT(seconds_since(begin), 0.5 + 0.1);
  ASSERT_EQ(first.size(), 2U);
  EXPECT_EQ(first[0].stuck_in, "its files under /sys");
  EXPECT_EQ(first[0].name, "MI210");
  EXPECT_EQ(first[0][Metric::kUtilCores].code, Reading::kTimeout);
  EXPECT_EQ(first[1].stuck_in, "") << "it was not asked, so nothing is said against it";

  const auto second = ask(client, 11);
  EXPECT_EQ(second[0].stuck_in, "its files under /sys");
  EXPECT_EQ(second[1][Metric::kUtilCores].value, 37U);
  EXPECT_LT(seconds_since(begin), 2);

  file.release();
  double at = 12;
  EXPECT_TRUE(eventually(std::chrono::seconds(10), [&] { return ask(client, ++at)[0][Metric::kUtilCores].ok(); }));
}

TEST(Hang, OfWhatACardTellsAboutAProcessIsItsOwn) {
  Machine machine;
  for (const int number : {0, 1}) write_card(machine, card(number));
  write_descriptor(machine, 500, 7, "/dev/dri/renderD129", "drm-driver:\tamdgpu\n");
  const HangingFile file("500/fdinfo/7");
  drm::ProbeClient client(machine.root(), false, false, Duration(0.5));
  EXPECT_EQ(ask(client, 10)[1].stuck_in, "what it tells of its processes");
  EXPECT_EQ(ask(client, 11)[0][Metric::kUtilCores].value, 37U);
}

TEST(Hang, AnswersAreThoseOfTheProbe) {
  Machine machine;
  write_card(machine, card(0));
  write_descriptor(machine, 500, 7, "/dev/dri/renderD128",
                   "drm-driver:\tamdgpu\ndrm-client-id:\t42\ndrm-pdev:\t0000:03:00.0\ndrm-memory-vram:\t1024 KiB\n"
                   "drm-engine-gfx:\t1000000 ns\n");
  drm::ProbeClient client(machine.root(), false, false, Duration(20));
  drm::Probe probe(machine.root(), false, false);
  for (const double at : {10.0, 11.0}) {
    const GpuSample through = ask(client, at).at(0), direct = probe.look({process(500)}, at).at(0);
    EXPECT_EQ(encode(helper::Answer{1, through}), encode(helper::Answer{1, direct}));
    EXPECT_EQ(through.rows.at(0).memory.value, 1U << 20U);
  }
}

TEST(Hang, NoCardNoHelper) {
  const Machine machine;
  drm::ProbeClient client(machine.root(), false, false, Duration(1));
  EXPECT_FALSE(client.needed());
  EXPECT_FALSE(client.started());
}

/// A helper of an earlier run that hangs since `age` seconds.
Sample sample_beside(const std::string& state, double age, const std::string& status) {
  Machine machine;
  machine.write_host(false);
  write_card(machine, card(0));
  ProcessBrief left = process(77);
  left.state = 'D';
  left.name = drm::kRole.name;
  const double started = 1000 - age;
  left.start_ticks = static_cast<std::uint64_t>(started * drover::os::clock_ticks());
  machine.write("/proc/77/stat", drover_test::stat_text(left));
  machine.write("/proc/77/status", status);
  left.state = state[0];
  machine.write("/proc/77/task/77/stat", drover_test::stat_text(left));
  SystemSourceOptions options;
  options.root = machine.root();
  options.now = [] { return 1000.0; };
  return system_source(options)->sample({}, false);
}

TEST(Hang, OfAnEarlierLookIsNotJoined) {
  const std::string killed = "Uid:\t0\t0\t0\t0\nShdPnd:\t0000000000000100\n";
  const auto problem = [](const Sample& sample) { return sample.driver.gpus.at(0).stuck_in; };
  EXPECT_EQ(problem(sample_beside("D", 100, killed)), "an earlier look, pid 77, which still waits");
  EXPECT_EQ(problem(sample_beside("S", 100, killed)), "") << "it is about to end";
  EXPECT_EQ(problem(sample_beside("D", 5, killed)), "") << "so is this one";
  EXPECT_EQ(problem(sample_beside("D", 100, "Uid:\t0\t0\t0\t0\n")), "") << "of a look that goes on";
  EXPECT_EQ(problem(sample_beside("D", 100, "Uid:\t999\t999\t999\t999\nShdPnd:\t0000000000000100\n")), "")
      << "anybody may call his process so";
}

}  // namespace
