// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "drover/health/merge.h"

/// Reports of the nodes of a job, as they are merged.
namespace drover_test {

using namespace drover::health;

/// What one rank is seen doing.
struct Seen {
  double cores = 1, power = 90;
  Rule rule = Rule::kR6;  ///< kG0: no rule speaks
  Severity severity = Severity::kWarning;
};
inline constexpr Seen kSpins, kBlocked{0, 60, Rule::kR7}, kWorks{0.9, 350, Rule::kG0}, kSpinsOnce{1, 90, Rule::kG0},
    kIdleOnce{0, 60, Rule::kG0};

inline Finding finding_of(const Seen& seen, int gpu, int pid) {
  Finding finding;
  finding.rule = seen.rule;
  finding.severity = seen.severity;
  finding.verdict = seen.rule == Rule::kR6 ? "SPINNING, NO PROGRESS" : "BLOCKED JOB";
  finding.gpu = gpu;
  finding.pid = pid;
  return finding;
}

/// A node with one rank on each GPU, from `first` on.
inline Report node(const std::string& name, int first, int world, const std::vector<Seen>& ranks) {
  Report report;
  report.node = report.host = name;
  report.unix_time = 1e9;
  report.window_s = 600;
  report.once = false;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    GpuReport gpu;
    gpu.index = static_cast<int>(i);
    gpu.cores.value = ranks[i].cores;
    gpu.memory.value = 0.01;
    gpu.power_w.value = ranks[i].power;
    gpu.power_limit_w.value = 400;
    GpuProcessReport on;
    on.process.pid = 4000 + static_cast<int>(i);
    on.process.parent = 100;
    on.process.user = "maria";
    on.process.state = 'S';
    on.process.age_s = 7200;
    on.process.job = "slurm 77";
    on.process.job_group = "slurm 77.0";
    on.process.rank = first + static_cast<int>(i);
    on.process.world_size = world;
    on.memory_bytes.value = std::uint64_t{30} << 30U;
    on.cores.value = ranks[i].cores;
    if (ranks[i].rule != Rule::kG0) report.findings.push_back(finding_of(ranks[i], gpu.index, on.process.pid));
    gpu.processes.push_back(on);
    report.gpus.push_back(gpu);
  }
  return report;
}

inline ReadReport read(Report report) {
  return {.place = report.node + ".json", .report = std::move(report), .problem = {}, .node = {}};
}

/// Eight nodes of four ranks that all do `most`, but rank 13 (on n4, GPU 1), which does `odd`.
inline std::vector<ReadReport> job(const Seen& most, const Seen& odd) {
  std::vector<ReadReport> reports;
  for (int i = 0; i < 8; ++i) {
    std::vector<Seen> ranks(4, most);
    if (i == 3) ranks[1] = odd;
    reports.push_back(read(node("n" + std::to_string(i + 1), 4 * i, 32, ranks)));
  }
  return reports;
}

inline std::optional<Finding> odd(const MergedReport& merged) {
  for (const Finding& finding : merged.findings) {
    if (finding.rule == Rule::kRanks) return finding;
  }
  return std::nullopt;
}

}  // namespace drover_test
