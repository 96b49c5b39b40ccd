// SPDX-License-Identifier: Apache-2.0
#include "drover/health/report.h"

#include <algorithm>

#include "drover/health/thresholds.h"

namespace drover::inline v1::health {
namespace {

std::size_t count(const std::vector<Finding>& findings, Severity severity) {
  return static_cast<std::size_t>(std::count_if(findings.begin(), findings.end(),
                                                [&](const Finding& finding) { return finding.severity == severity; }));
}

std::string headline(const Finding& finding) {
  std::string text = finding.verdict;
  if (finding.gpu) text = "GPU " + std::to_string(*finding.gpu) + " " + text;
  if (!finding.node.empty()) text = finding.node + " " + text;
  if (finding.pid) text += ", pid " + std::to_string(*finding.pid);
  if (!finding.because.empty()) text += ": " + finding.because.front();
  return text;
}

}  // namespace

const char* to_text(Severity severity) noexcept {
  static constexpr const char* kTexts[] = {"info", "unknown", "warning", "critical"};
  return kTexts[static_cast<int>(severity)];
}

const char* to_text(Confidence confidence) noexcept {
  static constexpr const char* kTexts[] = {"none", "low", "medium", "high"};
  return kTexts[static_cast<int>(confidence)];
}

const char* to_text(Rule rule) noexcept {
  static constexpr const char* kTexts[] = {"G0", "R1", "R2", "R3", "R4", "R5", "R6", "R7", "R8", "R9", "host", "ranks"};
  return kTexts[static_cast<int>(rule)];
}

std::string job_text(const ProcessReport& process) {
  if (!process.rank) return process.job;
  return process.job + (process.job.empty() ? "rank " : ", rank ") + std::to_string(*process.rank);
}

int exit_code_of(const std::vector<Finding>& findings, bool unknown_counts) noexcept {
  if (count(findings, Severity::kCritical) > 0) return 2;
  if (count(findings, Severity::kWarning) > 0) return 1;
  return unknown_counts && count(findings, Severity::kUnknown) > 0 ? 3 : 0;
}

std::string verdict_of(const std::vector<Finding>& findings, int code) {
  static constexpr const char* kWords[] = {"OK", "WARNING", "CRITICAL", "UNKNOWN"};
  std::string text = std::string(kWords[code]) + ": " + headline(findings.front());
  if (findings.size() == 1) return text;
  std::string others;
  for (const Severity severity : {Severity::kCritical, Severity::kWarning, Severity::kUnknown, Severity::kInfo}) {
    static constexpr const char* kNouns[] = {"note", "unknown", "warning", "critical"};
    std::size_t number = count(findings, severity);
    if (findings.front().severity == severity) --number;
    if (number > 0) others += (others.empty() ? "" : ", ") + plural(number, kNouns[static_cast<int>(severity)]);
  }
  return text + " (and " + others + ")";
}

int Report::exit_code() const noexcept { return exit_code_of(findings, unknown_counts); }

std::string Report::verdict() const {
  if (const int code = exit_code(); code != 0) return verdict_of(findings, code);
  std::string text =
      gpus.empty() ? "OK: nothing is wrong that can be seen here; no GPU" : "OK: nothing is wrong that can be seen";
  if (const std::size_t notes = findings.size()) text += "; " + plural(notes, "note");
  return text;
}

}  // namespace drover::inline v1::health
