// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "drover/health/rules/rules.h"

namespace drover::inline v1::health {
namespace {

using enum Limit;

Finding warning(const char* verdict, std::string because, std::string limit) {
  Finding finding;
  finding.verdict = verdict;
  finding.severity = Severity::kWarning;
  finding.confidence = Confidence::kHigh;
  finding.because.push_back(std::move(because));
  finding.limits.push_back(std::move(limit));
  return finding;
}

/// What is left of the machine, or of the cgroup's limit, as a share; 1 when it is not known.
double share_left(std::uint64_t left, std::uint64_t whole) {
  return whole == 0 ? 1 : static_cast<double>(left) / static_cast<double>(whole);
}

/// A look finds at least itself, and some memory: where it does not, there is nothing that could be found wrong.
void judge_sight(const Report& report, std::vector<Finding>& findings) {
  if (report.processes > 0 || report.memory.total > 0) return;
  Finding finding;
  finding.rule = Rule::kG0;
  finding.severity = Severity::kUnknown;
  finding.verdict = "CANNOT SEE THE MACHINE";
  finding.because.emplace_back("there is no /proc here, or it may not be read: no process and no memory was found");
  finding.not_because.emplace_back("whether any process is stuck or idle, and whether memory is short, is not known");
  finding.action.emplace_back("mount it (mount -t proc proc /proc), or give --root a folder that has one");
  findings.push_back(std::move(finding));
}

/// A single look sees two periods or so, of which one alone would be half of the time.
void judge_quota(const Report& report, const Thresholds& limits, std::vector<Finding>& findings) {
  if (!report.cpu.throttled || *report.cpu.throttled <= limits[kThrottled]) return;
  Finding finding =
      warning("CPU QUOTA USED UP",
              "this cgroup, or one above it, had used up its CPU quota in " + percent_text(*report.cpu.throttled) +
                  " of the quota's periods, and was held back for the rest of each",
              limits.text(kThrottled));
  if (report.once) {
    finding.severity = Severity::kInfo;
    finding.confidence = Confidence::kLow;
    finding.not_because.emplace_back("not judged: a single look sees few periods; run with --window 10s");
  }
  finding.action.emplace_back("ask for a larger CPU quota, or start fewer threads");
  findings.push_back(std::move(finding));
}

}  // namespace

void judge_host(const Report& report, const Thresholds& limits, std::vector<Finding>& findings) {
  const MemoryReport& memory = report.memory;
  judge_sight(report, findings);
  if (memory.pressure && (*memory.pressure).full60 > limits[kMemoryPressure]) {
    Finding finding =
        warning("MEMORY PRESSURE",
                "all tasks waited for memory in " + percent_text((*memory.pressure).full60) + " of the last minute",
                limits.text(kMemoryPressure));
    finding.action.emplace_back("ask the owners of the largest processes; end or move one of them by its scheduler");
    findings.push_back(std::move(finding));
  }
  if (share_left(memory.available, memory.total) < limits[kMemoryLeft]) {
    Finding finding = warning("MEMORY NEARLY FULL",
                              bytes_text(static_cast<double>(memory.available)) + " of " +
                                  bytes_text(static_cast<double>(memory.total)) + " are available",
                              limits.text(kMemoryLeft));
    finding.action.emplace_back("ask the owners of the largest processes, before the kernel ends one of them");
    findings.push_back(std::move(finding));
  }
  if (memory.limit && memory.limit_used) {
    const std::uint64_t left = *memory.limit - std::min(*memory.limit, *memory.limit_used);
    if (share_left(left, *memory.limit) < limits[kMemoryLeft]) {
      Finding finding = warning("MEMORY LIMIT NEARLY REACHED",
                                "this cgroup uses " + bytes_text(static_cast<double>(*memory.limit_used)) + " of the " +
                                    bytes_text(static_cast<double>(*memory.limit)) + " it may use",
                                limits.text(kMemoryLeft));
      finding.action.emplace_back("ask for a larger limit, or use less: the kernel ends a process when it is reached");
      findings.push_back(std::move(finding));
    }
  }
  judge_quota(report, limits, findings);
}

}  // namespace drover::inline v1::health
