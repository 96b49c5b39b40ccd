// SPDX-License-Identifier: Apache-2.0
#include "drover/health/report.h"

#include <algorithm>

namespace drover::inline v1::health {
namespace {

std::size_t count(const Report& report, Severity severity) {
  return static_cast<std::size_t>(std::count_if(report.findings.begin(), report.findings.end(),
                                                [&](const Finding& finding) { return finding.severity == severity; }));
}

std::string headline(const Finding& finding) {
  std::string text = finding.verdict;
  if (finding.gpu) text = "GPU " + std::to_string(*finding.gpu) + " " + text;
  if (finding.pid) text += ", pid " + std::to_string(*finding.pid);
  if (!finding.because.empty()) text += ": " + finding.because.front();
  return text;
}

std::string plural(std::size_t number, const char* noun) {
  return std::to_string(number) + " " + noun + (number == 1 ? "" : "s");
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
  static constexpr const char* kTexts[] = {"G0", "R1", "R2", "R3", "R4", "R5", "R6", "R7", "R8", "R9", "host"};
  return kTexts[static_cast<int>(rule)];
}

int Report::exit_code() const noexcept {
  if (count(*this, Severity::kCritical) > 0) return 2;
  if (count(*this, Severity::kWarning) > 0) return 1;
  return unknown_counts && count(*this, Severity::kUnknown) > 0 ? 3 : 0;
}

std::string Report::verdict() const {
  static constexpr const char* kWords[] = {"OK", "WARNING", "CRITICAL", "UNKNOWN"};
  const int code = exit_code();
  std::string text = kWords[code];
  if (code == 0) {
    text += gpus.empty() ? ": nothing is wrong that can be seen here; no GPU" : ": nothing is wrong that can be seen";
    if (const std::size_t notes = findings.size()) text += "; " + plural(notes, "note");
    return text;
  }
  text += ": " + headline(findings.front());
  if (findings.size() == 1) return text;
  std::string others;
  for (const Severity severity : {Severity::kCritical, Severity::kWarning, Severity::kUnknown, Severity::kInfo}) {
    static constexpr const char* kNouns[] = {"note", "unknown", "warning", "critical"};
    std::size_t number = count(*this, severity);
    if (findings.front().severity == severity) --number;
    if (number > 0) others += (others.empty() ? "" : ", ") + plural(number, kNouns[static_cast<int>(severity)]);
  }
  return text + " (and " + others + ")";
}

}  // namespace drover::inline v1::health
