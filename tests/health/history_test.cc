// SPDX-License-Identifier: Apache-2.0
#include "drover/health/history.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "drover/base/errors.h"
#include "drover/health/engine.h"
#include "drover/health/scenario/scenario_source.h"
#include "os/fixture_tree.h"

namespace {

using namespace drover::health;
using drover_test::FixtureTree;

/// Looks at a situation as cron would: a single look each time, with a history.
Report look(Source& source, const std::string& history, double at) {
  source.wait(Scenario::kUptime + at);
  return run_inspection(source, Thresholds(), {.window_s = 0, .interval_s = 0, .history = history});
}

Scenario idle() {
  return Scenario::parse("s", "gpu 0 power=62\nproc 100 name=bash\nproc 4000 ppid=100 cmd=train\non 0 4000 vram=30\n");
}

bool warns(const Report& report, Rule rule) {
  for (const Finding& finding : report.findings) {
    if (finding.rule == rule && finding.severity == Severity::kWarning) return true;
  }
  return false;
}

TEST(History, SingleLooksAddUp) {
  const FixtureTree folder;
  const std::string file = folder.root() + "/history";
  const auto source = scenario_source(idle());
  for (double at = 0; at < 3600; at += 600) EXPECT_FALSE(warns(look(*source, file, at), Rule::kR8)) << at;
  const Report report = look(*source, file, 3700);
  EXPECT_TRUE(warns(report, Rule::kR8));
  EXPECT_GT(*report.findings.front().held_s, 3600);
}

TEST(History, LooksTooFarApartDoNot) {
  const FixtureTree folder;
  const auto source = scenario_source(idle());
  for (double at = 0; at < 20'000; at += 2000)
    EXPECT_FALSE(warns(look(*source, folder.root() + "/h", at), Rule::kR8)) << at;
}

TEST(History, WorkBetweenTwoLooksShowsInTheCounters) {
  const FixtureTree folder;
  const std::string text =
      "gpu 0 power=62\nproc 100 name=bash\nproc 4000 ppid=100 cmd=train\non 0 4000 vram=30\n"
      "at 1900 proc 4000 cpu=1\nat 2100 proc 4000 cpu=0\n";  // between the looks at 1800 and 2400
  const auto source = scenario_source(Scenario::parse("s", text));
  for (double at = 0; at <= 5000; at += 600)
    EXPECT_FALSE(warns(look(*source, folder.root() + "/h", at), Rule::kR8)) << at;
  EXPECT_TRUE(warns(look(*source, folder.root() + "/h", 6000), Rule::kR8));
}

TEST(History, ASpinningJobIsFoundByCron) {
  const FixtureTree folder;
  const std::string text =
      "gpu 0 power=98\nproc 100 name=bash\nproc 4000 ppid=100 cmd=train cpu=1 state=R\non 0 4000 vram=30 sm=100\n";
  const auto source = scenario_source(Scenario::parse("s", text));
  EXPECT_FALSE(warns(look(*source, folder.root() + "/h", 0), Rule::kR6));
  EXPECT_FALSE(warns(look(*source, folder.root() + "/h", 200), Rule::kR6));
  EXPECT_TRUE(warns(look(*source, folder.root() + "/h", 400), Rule::kR6));
}

TEST(History, AGpuThatItsHardwareSlowsIsFoundByCron) {
  const FixtureTree folder;
  const std::string text =
      "gpu 0 temp=96 reasons=0x48\nproc 4000 cmd=train cpu=1 state=R\non 0 4000 vram=30 sm=99 mem=30\n";
  const auto source = scenario_source(Scenario::parse("s", text));
  EXPECT_FALSE(warns(look(*source, folder.root() + "/h", 0), Rule::kR1));
  EXPECT_FALSE(warns(look(*source, folder.root() + "/h", 400), Rule::kR1));
  EXPECT_TRUE(warns(look(*source, folder.root() + "/h", 800), Rule::kR1));
}

TEST(History, AThreadThatIsStuckIsFoundByCron) {
  const FixtureTree folder;
  const std::string text = "gpu 0 power=98\nproc 4000 cmd=train state=D wchan=nvidia_ioctl\non 0 4000 vram=30\n";
  const auto source = scenario_source(Scenario::parse("s", text));
  EXPECT_EQ(look(*source, folder.root() + "/h", 0).exit_code(), 0);
  EXPECT_EQ(look(*source, folder.root() + "/h", 300).exit_code(), 2);
}

TEST(History, AThreadThatIsStuckInTheDriverIsFoundByCronBesideOneThatWaitsForIt) {
  const FixtureTree folder;
  const std::string text =
      "gpu 0 power=70\nproc 100 name=bash\nproc 4000 ppid=100 cmd=train threads=2 state=D "
      "tasks=4000:D:rwsem_down_read_slowpath,4001:D:uvm_va_space_down_write\non 0 4000 vram=30\n";
  const auto source = scenario_source(Scenario::parse("s", text));
  look(*source, folder.root() + "/h", 0);
  for (double at = 300; at <= 1200; at += 300) EXPECT_EQ(look(*source, folder.root() + "/h", at).exit_code(), 2) << at;
}

TEST(History, AThreadThatWasNotStuckBeforeIsNotTakenForOneThatWas) {
  const FixtureTree folder;
  const std::string text =
      "gpu 0 power=70\nproc 100 name=bash\nproc 4000 ppid=100 cmd=train threads=2 state=D "
      "tasks=4000:D:nfs_wait_bit_killable,4001:S:futex_wait_queue\non 0 4000 vram=30\n"
      "at 599 proc 4000 tasks=4000:D:nfs_wait_bit_killable,4001:D:nvidia_ioctl\n";
  const auto source = scenario_source(Scenario::parse("s", text));
  for (const double at : {0.0, 300.0, 600.0}) EXPECT_EQ(look(*source, folder.root() + "/h", at).exit_code(), 0) << at;
}

Tracker some_tracks() {
  Tracker tracker{Thresholds()};
  ProcessTrack process;
  process.seen = 500;
  process.cpu_seconds = 12.5;
  process.io_bytes = 77;
  process.calm = {100, 500, 5, 0, true};
  process.stuck_threads = {4001, 4005, 4003};
  tracker.processes()[{4000, 99}] = process;
  HoldTrack hold;
  hold.seen = 500;
  hold.idle = {100, 500, 5, 0, false};
  hold.power = {4, 98.5, 0.25};
  tracker.holds()[{"GPU-1", {4000, 99}}] = hold;
  GpuTrack gpu;
  gpu.seen = 500;
  gpu.energy_j = 1e6;
  tracker.gpus()["GPU-1"] = gpu;
  return tracker;
}

TEST(History, ComesBackAsItWas) {
  const std::string text = history_text(some_tracks(), "boot", 500);
  Tracker back{Thresholds()};
  read_history(text, "boot", back);
  EXPECT_EQ(history_text(back, "boot", 500), text);
  EXPECT_EQ(back.processes().size(), 1U);
  EXPECT_TRUE(back.processes().begin()->second.calm.reported);
  EXPECT_EQ(back.processes().begin()->second.stuck_threads, (std::vector<int>{4001, 4005, 4003}));
}

TEST(History, LargeCountersMoveByAsLittleAsSmallOnes) {
  Tracker tracker = some_tracks();
  ProcessTrack& process = tracker.processes().begin()->second;
  GpuTrack& gpu = tracker.gpus().begin()->second;
  process.cpu_seconds = 12'345'678.25;
  gpu.energy_j = 9'876'543'210.125;
  gpu.nvlink_bytes = 123'456'789'012'345'680.0;
  Tracker back{Thresholds()};
  read_history(history_text(tracker, "boot", 500), "boot", back);
  EXPECT_EQ(back.processes().begin()->second.cpu_seconds, process.cpu_seconds);
  EXPECT_EQ(back.gpus().begin()->second.energy_j, gpu.energy_j);
  EXPECT_EQ(back.gpus().begin()->second.nvlink_bytes, gpu.nvlink_bytes);
}

TEST(History, APointThatMakesNoSenseIsLeftOut) {
  const std::string text =
      "drover-health 1 boot 500.000\npoint G 5 xx yy zz\npoint G 6 0.5 1 x\npoint G 7 0.5 - 99\npoint G 8 0.5 1\nend\n";
  Tracker back{Thresholds()};
  GpuSeries series;
  read_history(text, "boot", back, &series);
  ASSERT_EQ(series["G"].size(), 1U);
  EXPECT_EQ(series["G"][0].at, 7);
  EXPECT_EQ(series["G"][0].cores, 0.5);
  EXPECT_FALSE(series["G"][0].memory_used);
}

TEST(History, OfAnotherUserIsNotBelieved) {
  const FixtureTree folder;
  std::string file = folder.root() + "/h";
  const auto source = scenario_source(idle());
  look(*source, file, 0);
  if (::geteuid() != 0) {
    file = "/etc/passwd";  // root's, and everybody may read it
  } else {
    ASSERT_EQ(::chown(file.c_str(), 12'345, 12'345), 0);
  }
  try {
    look(*source, file, 600);
    ADD_FAILURE() << "it was believed";
  } catch (const drover::InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("belongs to another user"), std::string::npos) << error.what();
  }
}

TEST(History, AnotherBootIsLeftAside) {
  Tracker back{Thresholds()};
  read_history(history_text(some_tracks(), "boot", 500), "another", back);
  read_history(history_text(some_tracks(), "", 500), "", back);
  EXPECT_TRUE(back.processes().empty());
}

TEST(History, TakesAnyBytes) {
  drover_test::fuzz(history_text(some_tracks(), "boot", 500), [](std::string_view text) {
    Tracker back{Thresholds()};
    read_history(text, "boot", back);
    for (const auto& [key, track] : back.processes()) EXPECT_LE(track.calm.since, track.calm.last);
  });
}

TEST(History, OfTheFutureDoesNotCount) {
  const FixtureTree folder;
  const auto source = scenario_source(idle());
  look(*source, folder.root() + "/h", 3000);
  const auto earlier = scenario_source(idle());
  const Report report = look(*earlier, folder.root() + "/h", 0);
  EXPECT_FALSE(warns(report, Rule::kR8));
  EXPECT_GE(report.findings.at(0).held_s.value_or(0), 0);
}

TEST(History, ThatCannotBeWrittenIsAFindingBesideTheOthers) {
  const auto source = scenario_source(idle());
  const Report report = look(*source, "/nonexistent/history", 0);
  EXPECT_TRUE(std::any_of(report.findings.begin(), report.findings.end(),
                          [](const Finding& finding) { return finding.verdict == "HISTORY NOT SAVED"; }));
  EXPECT_EQ(report.exit_code(), 3);
}

TEST(History, IsARegularFile) {
  const auto source = scenario_source(idle());
  EXPECT_THROW(look(*source, "/dev/null", 0), drover::InvalidArgument) << "a device must not be replaced";
}

TEST(Streak, NeedsAnUnbrokenTimeAndIsPatientOnceReported) {
  Streak streak;
  for (int t = 0; t <= 10; ++t) streak.add(t, t, Holds::kYes, 5, 3);
  EXPECT_EQ(streak.length(), 10);
  streak.add(10, 11, Holds::kUnknown, 5, 3);
  EXPECT_EQ(streak.length(), 10);
  streak.add(11, 12, Holds::kNo, 5, 3);
  EXPECT_FALSE(streak.holds());
  for (int t = 20; t <= 30; ++t) streak.add(t, t, Holds::kYes, 5, 3);
  streak.reported = true;
  streak.add(30, 31, Holds::kNo, 5, 3);
  streak.add(31, 32, Holds::kNo, 5, 3);
  EXPECT_TRUE(streak.holds());
  streak.add(32, 33, Holds::kYes, 5, 3);
  EXPECT_EQ(streak.length(), 13);
  streak.add(33, 50, Holds::kYes, 5, 3);
  EXPECT_EQ(streak.length(), 0) << "a gap";
}

}  // namespace
