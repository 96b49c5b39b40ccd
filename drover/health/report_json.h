// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "drover/health/merge.h"
#include "drover/health/report.h"

namespace drover::inline v1::health {

/// The versions of the formats that docs/inspect_schema.md describes. They grow when something is renamed, removed or
/// changes its meaning; new members may come at any time.
inline constexpr int kReportVersion = 1;
inline constexpr int kMergedVersion = 1;

/// The report as one JSON object, in ASCII. What is not known is null, and NAME_reason says why. Text that is
/// no UTF-8 has its bytes replaced. `indent`: blanks of each level, -1 for all in one line. Pure.
std::string to_json(const Report& report, int indent = 2);
std::string to_json(const MergedReport& merged, int indent = 2);

}  // namespace drover::inline v1::health
