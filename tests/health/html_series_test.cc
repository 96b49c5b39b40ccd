// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "drover/health/engine.h"
#include "drover/health/history.h"
#include "drover/health/rules/identity.h"
#include "drover/health/scenario/scenario_source.h"
#include "os/fixture_tree.h"

namespace {

using namespace drover::health;
using drover_test::FixtureTree;

Scenario busy() {
  return Scenario::parse("s",
                         "gpu 0 power=62 util=10\nat 1000 gpu 0 util=90\nproc 4000 cmd=train\non 0 4000 vram=30\n");
}

Report look(Source& source, const std::string& history, double at, double window = 0) {
  source.wait(Scenario::kUptime + at);
  return run_inspection(source, Thresholds(), {.window_s = window, .interval_s = 0, .history = history});
}

TEST(Series, GrowsByOnePointALookAndStaysBounded) {
  const FixtureTree folder;
  const std::string file = folder.root() + "/history";
  const auto source = scenario_source(busy());
  Report report;
  for (int i = 0; i < 130; ++i) report = look(*source, file, 300.0 * i);
  const std::vector<GpuPoint>& points = report.gpus.at(0).series;
  ASSERT_EQ(points.size(), kSeriesPoints);
  EXPECT_NEAR(points.back().at - points.front().at, 300 * 119, 2);
  EXPECT_EQ(points.back().cores, 0.9);
  EXPECT_EQ(points.back().power_w, 62);
  EXPECT_TRUE(points.back().memory_used);
  EXPECT_NEAR(points.back().at, report.unix_time, 1e-6);
}

TEST(Series, ALongWindowIsThinnedAndNotCut) {
  const auto source = scenario_source(busy());
  const Report report = look(*source, "", 0, 3600);
  const std::vector<GpuPoint>& points = report.gpus.at(0).series;
  EXPECT_LE(points.size(), kSeriesPoints);
  EXPECT_GE(points.size(), kSeriesPoints - 20);
  EXPECT_NEAR(points.back().at - points.front().at, 3600, 40);
  EXPECT_EQ(points.front().cores, 0.1);
  EXPECT_EQ(points.back().cores, 0.9);
}

TEST(Series, ComesBackFromTheFile) {
  GpuSeries series;
  series["GPU-1"] = {{.at = 100, .cores = 0.5, .memory_used = 1U << 30U, .power_w = 99.5}, {.at = 200}};
  const Tracker tracker{Thresholds()};
  const std::string text = history_text(tracker, "boot", 500, series);
  EXPECT_NE(text.find("point GPU-1 100.000 0.5 1073741824 99.5\npoint GPU-1 200.000 - - -\n"), std::string::npos);
  Tracker back{Thresholds()};
  GpuSeries read;
  read_history(text, "boot", back, &read);
  ASSERT_EQ(read["GPU-1"].size(), 2U);
  EXPECT_EQ(read["GPU-1"][0].power_w, 99.5);
  EXPECT_FALSE(read["GPU-1"][1].cores);
}

TEST(Series, NonsenseIsLeftOut) {
  const std::string text =
      "drover-health 1 boot 500.000\npoint GPU-1 100 0.5 1 1\npoint GPU-1 50 0.5 1 1\npoint GPU-1 nan 1 1 1\n"
      "point GPU-1 200 7 -3 1e99\npoint GPU-1 300 0.5\npoint\nend\n";
  Tracker back{Thresholds()};
  GpuSeries read;
  read_history(text, "boot", back, &read);
  ASSERT_EQ(read.size(), 1U);
  ASSERT_EQ(read["GPU-1"].size(), 2U);
  EXPECT_FALSE(read["GPU-1"][1].cores || read["GPU-1"][1].memory_used || read["GPU-1"][1].power_w);
}

TEST(Series, TakesAnyBytes) {
  GpuSeries series;
  for (int i = 0; i < 5; ++i)
    series["GPU-1"].push_back({.at = 100.0 * i, .cores = 0.5, .memory_used = 5, .power_w = 9});
  const Tracker tracker{Thresholds()};
  drover_test::fuzz(history_text(tracker, "boot", 500, series), [](std::string_view text) {
    Tracker back{Thresholds()};
    GpuSeries read;
    read_history(text, "boot", back, &read);
    for (const auto& [gpu, points] : read) EXPECT_LE(points.size(), kSeriesPoints);
  });
}

TEST(OwnPlace, IsTakenFromTheEnvironment) {
  Report report;
  report.host = "n07.cluster";
  describe_own_place(report,
                     {"SLURMD_NODENAME=n07", "SLURM_PROCID=3", "SLURM_STEP_NUM_TASKS=8", "SLURM_JOB_ID=77", "X"});
  EXPECT_EQ(report.node, "n07");
  EXPECT_EQ(report.rank, 3);
  EXPECT_EQ(report.world_size, 8);
  EXPECT_EQ(report.job, "slurm 77");
  Report alone;
  alone.host = "desk";
  describe_own_place(alone, {});
  EXPECT_EQ(alone.node, "desk");
  EXPECT_FALSE(alone.rank);
}

TEST(WideGroup, TellsJobsOfManyNodesApart) {
  const auto group = [](std::map<std::string, std::string> environment) {
    ProcessDetail detail;
    detail.environment = std::move(environment);
    return job_of(detail).wide_group;
  };
  EXPECT_EQ(group({{"RANK", "1"}, {"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "0"}}), "slurm 7.0");
  EXPECT_EQ(group({{"RANK", "1"}, {"MASTER_ADDR", "n1"}, {"MASTER_PORT", "29500"}}), "master n1:29500");
  EXPECT_EQ(group({{"RANK", "1"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "29500"}}), "");
  EXPECT_EQ(group({{"RANK", "1"}, {"SLURM_JOB_ID", "7"}, {"MASTER_ADDR", "localhost"}, {"MASTER_PORT", "29501"}}),
            "slurm 7, port 29501")
      << "two torchruns of one step";
  EXPECT_EQ(group({{"RANK", "1"}, {"TORCHELASTIC_RUN_ID", "none"}}), "");
  EXPECT_EQ(group({{"SLURM_JOB_ID", "7"}}), "") << "no rank";
}

}  // namespace
