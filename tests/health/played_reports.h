// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "drover/health/engine.h"
#include "drover/health/scenario/scenario_source.h"

/// Situations that are played, and what a report says of them.
namespace drover_test {

inline std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += part + "\n";
  return text;
}

/// The first finding of a rule; an empty one when there is none.
inline drover::health::Finding first(const drover::health::Report& report, drover::health::Rule rule) {
  const auto at = std::find_if(report.findings.begin(), report.findings.end(),
                               [&](const drover::health::Finding& finding) { return finding.rule == rule; });
  return at == report.findings.end() ? drover::health::Finding() : *at;
}

/// Of a situation that is shipped.
inline drover::health::Finding shipped(const char* name, drover::health::Rule rule) {
  return first(drover::health::play(drover::health::demo_scenario(name)), rule);
}

inline drover::health::Report play_text(const std::string& text) {
  return drover::health::play(drover::health::Scenario::parse("s", text));
}

}  // namespace drover_test
