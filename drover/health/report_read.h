// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drover/health/report.h"

namespace drover::inline v1::health {

// What is read comes from other machines, so each of these is checked before anything is kept.
inline constexpr std::size_t kMostReportBytes = 8U << 20U;
inline constexpr int kMostDepth = 32;
inline constexpr std::size_t kMostReports = 10'000;

/// What was found at one place of a text: a report, or why there is none.
struct ReadReport {
  std::string place;  ///< "all.json, line 120"
  std::optional<Report> report;
  std::string problem;  ///< with the member or the line and column; empty when there is a report
  std::string node;     ///< without a report: the node that it is about, as far as that is known
};

/// Reads the outputs of `drover inspect --json` that stand one after the other in `text`. What is no report, is
/// truncated, of another version or beyond the limits above gives an entry with a problem, and reading goes on at the
/// next line that begins with a brace. At least one entry, for an empty text one with a problem. Any bytes are an
/// answer, never an exception but std::bad_alloc. `name`: of the file, for places. Pure.
std::vector<ReadReport> read_reports(std::string_view text, const std::string& name);

/// One report that fills `text` alone. Throws InvalidArgument with the member that is wrong. Pure.
Report read_report(std::string_view text);

}  // namespace drover::inline v1::health
