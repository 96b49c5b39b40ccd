// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "fault/family.h"
#include "harness/subprocess.h"

namespace drover_test {

/// tests/fault/scenario.cc, built beside the tests.
inline const std::string kScenario = DROVER_SCENARIO;

/// The command for one of its scenarios: name, then arguments.
inline Command scenario(std::vector<std::string> arguments, const Family& family) {
  return {.program = kScenario, .arguments = std::move(arguments), .environment = {family.variable()}};
}

}  // namespace drover_test
