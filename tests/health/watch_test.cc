// SPDX-License-Identifier: Apache-2.0
#include "drover/health/watch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "drover/base/errors.h"
#include "drover/health/rules/tracker.h"
#include "drover/health/scenario/scenario_source.h"

namespace {

using namespace drover::health;

Watch watch_of(const std::string& situation, double interval = 10) {
  return Watch(scenario_source(Scenario::parse("test", situation)), Thresholds(),
               {.interval_s = interval, .history = {}});
}

const Finding* find(const Report& report, Rule rule) {
  const auto at = std::find_if(report.findings.begin(), report.findings.end(),
                               [&](const Finding& one) { return one.rule == rule; });
  return at == report.findings.end() ? nullptr : &*at;
}

TEST(Watch, RulesThatNeedTimeComeToJudge) {
  Watch watch = watch_of(R"(
gpu 0 power=62
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" wchan=do_select
on 0 4000 vram=30
)",
                         60);
  Report report = watch.look();
  ASSERT_NE(find(report, Rule::kR8), nullptr);
  EXPECT_EQ(find(report, Rule::kR8)->severity, Severity::kInfo);
  for (int minutes = 0; minutes < 62; ++minutes) report = watch.look();
  EXPECT_EQ(find(report, Rule::kR8)->severity, Severity::kWarning);
  EXPECT_NEAR(report.window_s, 62 * 60, 1);
  EXPECT_EQ(report.samples, 64);
  EXPECT_FALSE(report.once);
}

TEST(Watch, ShowsWhatIsNowAndNotTheMean) {
  Watch watch = watch_of(R"(
gpu 0 power=300
proc 4000 cmd="python train.py" state=R cpu=1
on 0 4000 vram=30 sm=90
at 20 on 0 4000 sm=10
at 20 proc 4000 cpu=0
)");
  Report report = watch.look();
  EXPECT_NEAR(*report.gpus[0].processes[0].cores, 0.9, 0.01);
  for (int i = 0; i < 5; ++i) report = watch.look();
  EXPECT_NEAR(*report.gpus[0].processes[0].cores, 0.1, 0.01);
  EXPECT_NEAR(*report.gpus[0].cores, 0.1, 0.01);
  EXPECT_NEAR(report.gpus[0].processes[0].process.cpu_share.value_or(-1), 0, 0.01);
  EXPECT_TRUE(report.busiest.empty());
}

TEST(Watch, WhatIsUnknownStaysUnknown) {
  Watch watch = watch_of("gpu 0 mig=1\nproc 4000 name=python\non 0 4000 vram=30\n");
  watch.look();
  const Report report = watch.look();
  EXPECT_FALSE(report.gpus[0].processes[0].cores);
  EXPECT_FALSE(report.gpus[0].processes[0].cores.reason.empty());
}

TEST(Watch, WhatIsNotKnownAnyMoreIsNotZero) {
  Watch watch = watch_of(R"(
gpu 0 vendor=amd util=0
proc 4000 name=python
proc 4001 name=python
on 0 4000 vram=30 kfd=1
on 0 4001 vram=20 kfd=1
at 20 gpu 0 util=90
)");
  Report report = watch.look();
  EXPECT_EQ(report.gpus[0].processes[0].cores.value, 0.0);
  for (int i = 0; i < 5; ++i) report = watch.look();
  for (const GpuProcessReport& row : report.gpus[0].processes) {
    EXPECT_FALSE(row.cores) << "one of them works, and it is not known which";
    EXPECT_FALSE(row.cores.reason.empty());
    EXPECT_FALSE(row.memory);
  }
}

TEST(Watch, FindingsEndWhenTheirReasonDoes) {
  Watch watch = watch_of(R"(
gpu 0
proc 4000 name=python state=Z
on 0 4000 vram=30
at 100 on 0 4000 ended=1
at 100 proc 4000 ended=1
)");
  Report report;
  for (int i = 0; i < 5; ++i) report = watch.look();
  EXPECT_NE(find(report, Rule::kR3), nullptr);
  for (int i = 0; i < 10; ++i) report = watch.look();
  EXPECT_EQ(find(report, Rule::kR3), nullptr);
  EXPECT_EQ(report.exit_code(), 0);
}

TEST(Watch, ASituationIsPlayedAndGoesOn) {
  Watch watch({.demo = "idle-job"});
  Report report = watch.look();
  EXPECT_EQ(report.exit_code(), 1);
  const double window = report.window_s;
  EXPECT_GE(window, 4200 - 1);
  report = watch.look();
  EXPECT_NEAR(report.window_s, window + 1, 0.01);
  EXPECT_EQ(report.exit_code(), 1);
}

/// What `inspect` says of a situation, the watch says too.
TEST(Watch, JudgesSituationsAsAWindowDoes) {
  for (const Demo& demo : demos()) {
    const Report once = inspect({.demo = demo.name});
    if (once.once) continue;
    Watch watch({.demo = demo.name});
    EXPECT_EQ(watch.look().exit_code(), once.exit_code()) << demo.name;
  }
}

/// Of many threads, which are not looked at in each look.
TEST(Watch, APausedProcessIsPausedInEachLook) {
  for (const auto& [state, verdict] :
       {std::pair{"D wchan=__refrigerator", ""}, std::pair{"S wchan=do_freezer_trap", ""},
        std::pair{"D kill=1 wchan=__refrigerator", "KILLED WHILE PAUSED"}}) {
    Watch watch = watch_of(
        std::string("gpu 0\nproc 4000 threads=600 cmd=\"python train.py\" state=") + state + "\non 0 4000 vram=30\n",
        1);
    for (int look = 0; look < 12; ++look) {
      const Report report = watch.look();
      const Finding* const stuck = find(report, Rule::kR2);
      EXPECT_EQ(stuck == nullptr ? "" : stuck->verdict, verdict) << state << " in look " << look;
    }
  }
}

/// As what sleeps for a time: it is blocked in no look.
TEST(Watch, OfManyThreadsTheFirstOneIsSeenInEachLook) {
  for (const auto& [place, found] : {std::pair{"hrtimer_nanosleep", false}, std::pair{"futex_wait_queue", true}}) {
    Watch watch = watch_of(std::string(R"(
gpu 0 power=64
proc 100 name=torchrun cmd="torchrun fit.py"
proc 4000 ppid=100 cmd="python fit.py" threads=600 env="RANK=0 WORLD_SIZE=1 LOCAL_WORLD_SIZE=1" wchan=)") +
                               place + "\non 0 4000 vram=12\n",
                           300);
    watch.look();
    for (int look = 1; look < 12; ++look) {
      const Report report = watch.look();
      EXPECT_EQ(find(report, Rule::kR7) != nullptr, found) << place << " in look " << look;
    }
  }
}

/// The first thread waits behind another one, which hangs in the driver; threads are looked at in every fifth look.
TEST(Watch, OfManyThreadsTheOneThatHangsInTheDriverIsNotForgotten) {
  const Scenario scenario = Scenario::parse(
      "s",
      "gpu 0\nproc 4000 threads=600 tasks=4000:D:rwsem_down_read_slowpath,4001:D:uvm_va_space_down_write\n"
      "on 0 4000 vram=30\nat 105 proc 4000 tasks=4000:S:futex_wait_queue,4001:D:uvm_va_space_down_write");
  for (const int first_full : {0, 3}) {
    const auto source = scenario_source(scenario);
    Tracker tracker{Thresholds()};
    for (int look = 0; look < 12; ++look) {
      source->wait(Scenario::kUptime + 10 * look);
      const Sample sample = source->sample({}, look % 5 == first_full);
      tracker.add(sample, false, [](int) { return true; });
      const ProcessTrack& track = tracker.processes().at(key_of(sample.host, 4000));
      EXPECT_EQ(track.stuck.length(), 10 * std::min(look, 10)) << first_full << " in look " << look;
      if (look < first_full) continue;
      EXPECT_TRUE(track.in_driver) << first_full << " in look " << look;
      EXPECT_EQ(track.stuck_threads.size(), look < 11 ? 2U : 1U) << first_full << " in look " << look;
    }
  }
}

TEST(Watch, OptionsThatMeanNothingAreRefused) {
  EXPECT_THROW(Watch({.window = drover::Duration(5)}), drover::InvalidArgument);
  EXPECT_THROW(Watch({.interval = drover::Duration(0.001)}), drover::InvalidArgument);
  EXPECT_THROW(Watch({.demo = "nosuch"}), drover::InvalidArgument);
  EXPECT_THROW(Watch({.set = {"r8.warm=1h"}}), drover::InvalidArgument);
}

/// A source that notes how often the dear things are asked for, and about whom; from `reused_at` on 4100 is another
/// process.
class CountingSource : public Source {
 public:
  struct Notes {
    int scans = 0;
    double reused_at = 1e18;
    std::map<int, int> described = {};  // how often
  };
  explicit CountingSource(Notes& notes)
      : notes_(notes), inner_(scenario_source(Scenario::parse("test", R"(
gpu 0
proc 4000 name=python state=Z
proc 4100 name=python open=0
on 0 4000 vram=30
)"))) {}
  double now() override { return inner_->now(); }
  void wait(double until) override { inner_->wait(until); }
  Sample sample(const std::set<int>& watched, bool threads) override {
    Sample sample = inner_->sample(watched, threads);
    for (ProcessBrief& brief : sample.host.processes) {
      if (brief.pid == 4100 && sample.at >= notes_.reused_at) ++brief.start_ticks;
    }
    return sample;
  }
  HolderScan holders(Sample& sample) override {
    ++notes_.scans;
    return inner_->holders(sample);
  }
  void describe_processes(Sample& sample, const std::set<int>& pids) override {
    for (const int pid : pids) ++notes_.described[pid];
    inner_->describe_processes(sample, pids);
  }
  bool exists(int pid) override { return inner_->exists(pid); }
  void describe(Report& report, const Sample& first, const Sample& last, double seconds) override {
    inner_->describe(report, first, last, seconds);
  }
  std::string user(std::uint32_t uid) override { return inner_->user(uid); }
  std::string boot() override { return inner_->boot(); }
  bool container() override { return inner_->container(); }

 private:
  Notes& notes_;
  std::unique_ptr<Source> inner_;
};

TEST(Watch, AHistoryThatCannotBeWrittenIsAFindingUntilItCan) {
  std::string base = testing::TempDir() + "watch-XXXXXX";
  ASSERT_NE(mkdtemp(base.data()), nullptr);
  const std::string folder = base + "/later";
  Watch watch(scenario_source(Scenario::parse("test", "gpu 0\n")), Thresholds(),
              {.interval_s = 10, .history = folder + "/history"});
  const auto unsaved = [&] {
    const Report report = watch.look();
    return std::count_if(report.findings.begin(), report.findings.end(),
                         [](const Finding& finding) { return finding.verdict == "HISTORY NOT SAVED"; });
  };
  for (int i = 0; i < 8; ++i) EXPECT_EQ(unsaved(), 1) << "also in looks between two attempts";
  std::filesystem::create_directory(folder);
  for (int i = 0; i < 4; ++i) unsaved();
  EXPECT_EQ(unsaved(), 0);
  std::filesystem::remove_all(base);
}

TEST(Watch, DescriptorsOfAllProcessesAreNotReadInEachLook) {
  CountingSource::Notes notes;
  Watch watch(std::make_unique<CountingSource>(notes), Thresholds(), {.interval_s = 1, .history = {}});
  for (int i = 0; i < 60; ++i) watch.look();
  EXPECT_GE(notes.scans, 5);
  EXPECT_LE(notes.scans, 7);
}

TEST(Watch, AHoldersNumberThatIsUsedAgainIsNotTheHolder) {
  CountingSource::Notes notes;
  auto source = std::make_unique<CountingSource>(notes);
  notes.reused_at = source->now() + 3;
  Watch watch(std::move(source), Thresholds(), {.interval_s = 1, .history = {}});
  for (int i = 0; i < 6; ++i) watch.look();
  EXPECT_EQ(notes.scans, 1);
  EXPECT_EQ(notes.described[4100], 2) << "in the looks after 1 s and 2 s";
}

}  // namespace
