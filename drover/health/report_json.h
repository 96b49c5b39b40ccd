// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "drover/health/report.h"

namespace drover::inline v1::health {

/// The version of the format that docs/inspect_schema.md describes. It grows when something is renamed, removed or
/// changes its meaning; new members may come at any time.
inline constexpr int kReportVersion = 1;

/// The report as one JSON object, indented, in ASCII. What is not known is null, and NAME_reason says why. Text that is
/// no UTF-8 has its bytes replaced. Pure.
std::string to_json(const Report& report);

}  // namespace drover::inline v1::health
