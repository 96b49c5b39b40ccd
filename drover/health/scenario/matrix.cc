// SPDX-License-Identifier: Apache-2.0
#include "drover/health/scenario/matrix.h"

#include <algorithm>

#include "drover/health/engine.h"
#include "drover/health/scenario/scenario_gpu.h"

namespace drover::inline v1::health {
namespace {

bool meets(const Finding& finding, const Expectation& expected) {
  return expected.rule == to_text(finding.rule) && expected.severity == to_text(finding.severity) &&
         (expected.pid == 0 || finding.pid == expected.pid);
}

std::string text_of(const Finding& finding) {
  return std::string(to_text(finding.rule)) + " " + to_text(finding.severity) +
         (finding.pid ? " " + std::to_string(*finding.pid) : "");
}

}  // namespace

Outcome compare(const Scenario& scenario, const Report& report) {
  Outcome outcome{scenario.name(), scenario.title(), false, false, naive_alarm(scenario), {}};
  for (const Expectation& expected : scenario.expectations()) {
    if (expected.rule.empty()) continue;
    outcome.problem = outcome.problem || expected.severity == "warning" || expected.severity == "critical";
    const auto& found = report.findings;
    if (std::none_of(found.begin(), found.end(), [&](const Finding& finding) { return meets(finding, expected); })) {
      outcome.wrong.push_back("expected " + expected.rule + " " + expected.severity +
                              (expected.pid != 0 ? " " + std::to_string(expected.pid) : ""));
    }
  }
  for (const Finding& finding : report.findings) {
    outcome.alarm = outcome.alarm || finding.severity >= Severity::kWarning;
    const auto& all = scenario.expectations();
    const bool expected =
        std::any_of(all.begin(), all.end(), [&](const Expectation& one) { return meets(finding, one); });
    if (finding.severity > Severity::kInfo && !expected) outcome.wrong.push_back("unexpected " + text_of(finding));
  }
  return outcome;
}

bool naive_alarm(const Scenario& scenario) {
  constexpr double kTwoGb = 2e9;
  const World world = scenario.at(scenario.window());
  for (const Thing* const gpu : world.all("gpu")) {
    const GpuSample sample = gpu_of(world, *gpu);
    for (const GpuProcessRow& row : sample.rows) {
      const Thing* const process = world.find("proc", row.pid);
      if (process == nullptr || process->number("ended") != 0 || process->number("hidden") != 0) return true;
      const bool idle = sample[Metric::kUtilCores].value == 0;  // "not available" is 0 to most programs
      const bool holds = row.memory.ok() && static_cast<double>(row.memory.value) > kTwoGb;
      if (idle && holds && process->text("state", "S") == "S") return true;
    }
  }
  return false;
}

std::vector<Outcome> play_all() {
  std::vector<Outcome> outcomes;
  for (const Situation& situation : situations()) {
    const Scenario scenario = Scenario::parse(situation.name, situation.text);
    outcomes.push_back(compare(scenario, play(scenario)));
  }
  return outcomes;
}

}  // namespace drover::inline v1::health
