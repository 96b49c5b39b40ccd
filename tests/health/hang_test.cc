// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <chrono>
#include <memory>
#include <vector>

#include "drover/health/drm/probe.h"
#include "drover/health/drm/probe_client.h"
#include "drover/health/engine.h"
#include "drover/health/probe/process_probe.h"
#include "drover/health/scenario/scenario_source.h"
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

/// What is said of GPUs that nobody asked: no fault of theirs, and no GPU that is well.
void expect_not_asked(const std::vector<GpuSample>& gpus, const std::string& why) {
  ASSERT_EQ(gpus.size(), 2U);
  for (const GpuSample& gpu : gpus) {
    EXPECT_EQ(gpu.stuck_in, "");
    EXPECT_NE(gpu.not_asked.find(why), std::string::npos) << gpu.not_asked;
    EXPECT_EQ(gpu[Metric::kMemoryUsed].code, Reading::kNotAsked);
    EXPECT_EQ(gpu.name, "MI210");
  }
}

TEST(Hang, AHelperThatIsKilledOrCannotBeStartedIsNoAnswer) {
  Machine machine;
  for (const int number : {0, 1}) write_card(machine, card(number));
  drm::ProbeClient client(machine.root(), false, false, Duration(20));
  EXPECT_EQ(ask(client, 10).at(1).not_asked, "");
  ASSERT_EQ(kill(client.helper_pid(), SIGKILL), 0);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(client.helper_pid()), &info, WEXITED | WNOWAIT), 0);
  expect_not_asked(ask(client, 11), "was killed");
  EXPECT_TRUE(ask(client, 12).at(0)[Metric::kUtilCores].ok()) << "the next look has another helper";

  drm::ProbeClient other(machine.root(), false, false, Duration(20));
  EXPECT_TRUE(other.needed());
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{3, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  other.begin({process(500)}, 10);
  setrlimit(RLIMIT_NOFILE, &before);
  expect_not_asked(other.finish(), "no process could be started");
}

TEST(Hang, AHelperThatIsStoppedIsNoFaultOfTheGpu) {
  Machine machine;
  for (const int number : {0, 1}) write_card(machine, card(number));
  drm::ProbeClient client(machine.root(), false, false, Duration(0.5));
  ask(client, 10);
  const int pid = client.helper_pid();
  ASSERT_EQ(kill(pid, SIGSTOP), 0);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(pid), &info, WSTOPPED | WNOWAIT), 0);
  expect_not_asked(ask(client, 11), "does not run");
}

TEST(Hang, AGpuThatNobodyAskedIsUnknown) {
  const auto source = scenario_source(Scenario::parse("s", "gpu 0 vendor=amd\nproc 70\n"));
  Sample sample = source->sample({}, true);
  helper::mark_unanswered(sample.driver.gpus.at(0), "", "the process that looks at it was killed");
  const Thresholds limits;
  Tracker tracker(limits);
  tracker.add(sample, false, [](int) { return true; });
  const Sample before = sample;
  const Report report = conclude(*source, limits, tracker, {.first = before, .last = sample});
  EXPECT_EQ(report.exit_code(), 3);
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.findings[0].verdict, "CANNOT SEE THE GPU");
  EXPECT_NE(report.gpus.at(0).problem.find("was killed"), std::string::npos);
}

/// A helper of an earlier run that hangs since `age` seconds.
Sample sample_beside(const std::string& state, double age, const std::string& status, int parent = 500,
                     char first = 'D') {
  Machine machine;
  machine.write_host(false);
  write_card(machine, card(0));
  ProcessBrief left = process(77);
  left.state = first;
  left.parent = parent;
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
  const std::string hangs = "an earlier look, pid 77, which still waits", alive = "Uid:\t0\t0\t0\t0\n";
  EXPECT_EQ(problem(sample_beside("D", 100, alive, 1)), hangs) << "its parent was killed, and told nobody to end";
  EXPECT_EQ(problem(sample_beside("D", 100, alive, 500, 'Z')), hangs) << "its first thread has ended";
  EXPECT_EQ(problem(sample_beside("D", 100, "Uid:\t999\t999\t999\t999\nShdPnd:\t0000000000000100\n")), "")
      << "anybody may call his process so";
}

}  // namespace
