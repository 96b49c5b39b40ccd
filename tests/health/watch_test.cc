// SPDX-License-Identifier: Apache-2.0
#include "drover/health/watch.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "drover/base/errors.h"
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

TEST(Watch, OptionsThatMeanNothingAreRefused) {
  EXPECT_THROW(Watch({.window = drover::Duration(5)}), drover::InvalidArgument);
  EXPECT_THROW(Watch({.interval = drover::Duration(0.001)}), drover::InvalidArgument);
  EXPECT_THROW(Watch({.demo = "nosuch"}), drover::InvalidArgument);
  EXPECT_THROW(Watch({.set = {"r8.warm=1h"}}), drover::InvalidArgument);
}

/// A source that counts how often the dear things are asked for.
class CountingSource : public Source {
 public:
  explicit CountingSource(int& scans)
      : scans_(scans), inner_(scenario_source(Scenario::parse("test", R"(
gpu 0
proc 4000 name=python state=Z
on 0 4000 vram=30
)"))) {}
  double now() override { return inner_->now(); }
  void wait(double until) override { inner_->wait(until); }
  Sample sample(const std::set<int>& watched, bool threads) override { return inner_->sample(watched, threads); }
  HolderScan holders(Sample& sample) override {
    ++scans_;
    return inner_->holders(sample);
  }
  void describe_processes(Sample& sample, const std::set<int>& pids) override {
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
  int& scans_;
  std::unique_ptr<Source> inner_;
};

TEST(Watch, DescriptorsOfAllProcessesAreNotReadInEachLook) {
  int scans = 0;
  Watch watch(std::make_unique<CountingSource>(scans), Thresholds(), {.interval_s = 1, .history = {}});
  for (int i = 0; i < 60; ++i) watch.look();
  EXPECT_GE(scans, 5);
  EXPECT_LE(scans, 7);
}

}  // namespace
