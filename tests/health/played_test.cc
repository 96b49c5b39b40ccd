// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "drover/health/engine.h"
#include "drover/health/scenario/scenario_source.h"
#include "health/fixture.h"

namespace {

using namespace drover::health;

/// What a verdict is about, without its words.
std::vector<std::string> summary(const Report& report) {
  std::vector<std::string> lines;
  for (const Finding& finding : report.findings) {
    lines.push_back(std::string(to_text(finding.rule)) + " " + to_text(finding.severity) + " " + finding.verdict +
                    " gpu " + std::to_string(finding.gpu.value_or(-1)) + " pid " +
                    std::to_string(finding.pid.value_or(0)) + " " + finding.job);
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

class EachSituation : public testing::TestWithParam<Situation> {};

/// The same situation once from memory, and once through files in /proc and a driver's library in another process.
TEST_P(EachSituation, IsJudgedTheSameThroughFilesAndDriver) {
  const Scenario scenario = Scenario::parse(GetParam().name, GetParam().text);
  EngineOptions options;
  options.window_s = scenario.window();
  if (options.window_s > 0) options.interval_s = std::max(1.0, options.window_s / 60);
  const Thresholds limits = limits_of(scenario, {});
  const auto from_memory = scenario_source(scenario);
  const Report expected = run_inspection(*from_memory, limits, options);
  drover_test::PlayedMachine played(scenario, GetParam().text);
  const Report report = run_inspection(played.source(), limits, options);
  EXPECT_EQ(summary(report), summary(expected)) << report.driver.problem;
  EXPECT_EQ(report.exit_code(), expected.exit_code());
  EXPECT_EQ(report.processes, expected.processes);
  ASSERT_EQ(report.gpus.size(), expected.gpus.size());
  for (std::size_t i = 0; i < report.gpus.size(); ++i) {
    EXPECT_EQ(report.gpus[i].uuid, expected.gpus[i].uuid);
    EXPECT_EQ(report.gpus[i].memory_used.value, expected.gpus[i].memory_used.value);
    EXPECT_EQ(report.gpus[i].processes.size(), expected.gpus[i].processes.size());
  }
}

/// It is above no process on a GPU, so nothing else would make anybody look at it.
TEST(Shell, OfAPersonInTheSameContainerIsSeenThroughFiles) {
  const Scenario scenario = demo_scenario("idle-container-with-shell");
  const auto texts = situations();
  const auto text =
      std::find_if(texts.begin(), texts.end(), [&](const Situation& one) { return one.name == scenario.name(); });
  drover_test::PlayedMachine played(scenario, text->text);
  const Report report =
      run_inspection(played.source(), limits_of(scenario, {}),
                     {.window_s = scenario.window(), .interval_s = scenario.window() / 60, .history = {}});
  ASSERT_FALSE(report.findings.empty());
  ASSERT_FALSE(report.findings.front().action.empty());
  EXPECT_NE(report.findings.front().action.front().find("pid 95 (bash)"), std::string::npos)
      << report.findings.front().action.front();
}

INSTANTIATE_TEST_SUITE_P(Shipped, EachSituation, testing::ValuesIn(situations()), [](const auto& one) {
  std::string name = one.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
