// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "drover/health/merge.h"
#include "drover/health/rules/rules.h"
#include "drover/health/thresholds.h"

namespace drover::inline v1::health {
namespace {

constexpr double kIdleShare = 0.05;  // of a GPU or a core, up to which nothing runs

const Thresholds& defaults() {
  static const Thresholds limits;
  return limits;
}

/// By what its GPU shows. The limits are R6's.
RankDoes by_use(const GpuReport& gpu, const JobRank& rank) {
  const Thresholds& limits = defaults();
  if (!rank.cores) return RankDoes::kUnknown;
  if (*rank.cores <= kIdleShare) return RankDoes::kIdle;
  const bool little_power =
      gpu.power_w && gpu.power_limit_w && *gpu.power_w < limits[Limit::kR6PowerOfLimit] * *gpu.power_limit_w;
  const bool little_memory = gpu.memory && *gpu.memory <= limits[Limit::kR6Memory];
  return *rank.cores >= limits[Limit::kR6Cores] && little_power && little_memory ? RankDoes::kSpins : RankDoes::kWorks;
}

/// What a finding says about a rank; kUnknown: nothing. A GPU that is only worn (a remap that waits for its reset, an
/// Xid of the last hour) works as the others do.
RankDoes by_rule(const Finding& finding) {
  switch (finding.rule) {
    case Rule::kR6:
      return RankDoes::kSpins;
    case Rule::kR7:
    case Rule::kR8:
      return RankDoes::kIdle;
    case Rule::kR1:
      return finding.severity >= Severity::kCritical ? RankDoes::kFaulty : RankDoes::kUnknown;
    case Rule::kR2:
    case Rule::kR3:
    case Rule::kR5:
      return finding.severity >= Severity::kWarning ? RankDoes::kFaulty : RankDoes::kUnknown;
    default:
      return RankDoes::kUnknown;
  }
}

/// Takes over the verdicts of the rules about this process, or about its GPU.
void apply_rules(const Report& report, JobRank& rank) {
  for (const Finding& finding : report.findings) {
    const bool about_it = finding.pid ? *finding.pid == rank.pid : finding.gpu && finding.gpu == rank.gpu;
    const RankDoes does = about_it ? by_rule(finding) : RankDoes::kUnknown;
    if (does == RankDoes::kUnknown || (rank.does == RankDoes::kFaulty && !rank.verdict.empty())) continue;
    rank.does = does;
    rank.verdict = finding.verdict;
    rank.held = finding.severity >= Severity::kWarning;
  }
}

/// What tells the job from others. Without anything that other nodes know too, it is the parent on this node.
std::string key_of(const MergedNode& node, const ProcessReport& process) {
  const std::string size = std::to_string(process.world_size.value_or(0));
  if (!process.job_group.empty()) return "+" + process.job_group + " of " + size;
  return "-" + node.name + " " + std::to_string(process.parent) + " of " + size;
}

JobRank rank_of(const MergedNode& node, const GpuReport& gpu, const GpuProcessReport& on) {
  JobRank rank;
  rank.rank = on.process.rank.value_or(0);
  rank.node = node.name;
  rank.pid = on.process.pid;
  rank.gpu = gpu.index;
  rank.cores = on.cores.value;
  // The only one on its GPU does what the GPU does, also where the driver tells no use of processes.
  if (!rank.cores && gpu.processes.size() == 1 && !gpu.mig.value_or(false)) rank.cores = gpu.cores.value;
  rank.power_w = gpu.power_w.value;
  rank.cpu_share = on.process.cpu_share;
  rank.seen_at = node.report->unix_time;
  rank.window_s = node.report->window_s;
  rank.does = rank.use = by_use(gpu, rank);
  return rank;
}

struct Gathered {
  JobRow row;
  std::map<std::pair<int, std::string>, JobRank> ranks;               ///< by rank and node
  std::map<std::pair<int, std::string>, std::map<int, int>> parents;  ///< of all its processes, by pid

  /// A rank that stands for processes which do not descend from one of them: two jobs look like one.
  std::string rank_twice() const {
    for (const auto& [which, processes] : parents) {
      const std::map<int, int>& family = processes;
      const auto is_head = [&](const auto& process) { return family.count(process.second) == 0; };
      if (std::count_if(family.begin(), family.end(), is_head) > 1)
        return "rank " + std::to_string(which.first) + " is twice on " + which.second;
    }
    return {};
  }
};

/// Whether what started all ranks that one of its nodes shows is itself on a GPU there, and no numbered rank: as the
/// first one of PyTorch Lightning's own launcher, which shows no number.
bool is_started_by_first(const Gathered& job, const std::map<std::string, const Report*>& reports) {
  std::map<std::string, std::set<int>> starters;
  for (const auto& [which, family] : job.parents) {
    if (which.first == 0) return false;
    for (const auto& [pid, parent] : family) {
      if (family.count(parent) == 0) starters[which.second].insert(parent);
    }
  }
  return std::any_of(starters.begin(), starters.end(), [&](const auto& node) {
    const auto is_starter = [&](const GpuProcessReport& on) { return on.process.pid == *node.second.begin(); };
    const std::vector<GpuReport>& gpus = reports.at(node.first)->gpus;
    return node.second.size() == 1 && std::any_of(gpus.begin(), gpus.end(), [&](const GpuReport& gpu) {
             return std::any_of(gpu.processes.begin(), gpu.processes.end(), is_starter);
           });
  });
}

/// A rank may be on several GPUs, and its children inherit its number: the busiest counts.
void add_rank(Gathered& job, JobRank rank) {
  const auto [at, is_new] = job.ranks.try_emplace({rank.rank, rank.node}, rank);
  if (!is_new && rank.cores.value_or(-1) > at->second.cores.value_or(-1)) at->second = std::move(rank);
}

void add_node(const MergedNode& node, std::map<std::string, Gathered>& jobs) {
  for (const GpuReport& gpu : node.report->gpus) {
    for (const GpuProcessReport& on : gpu.processes) {
      if (!on.process.rank) continue;
      Gathered& gathered = jobs[key_of(node, on.process)];
      JobRow& job = gathered.row;
      if (job.label.empty()) job.label = on.process.job.empty() ? on.process.job_group : on.process.job;
      if (job.user.empty()) job.user = on.process.user;
      if (!job.world_size) job.world_size = on.process.world_size;
      gathered.parents[{*on.process.rank, node.name}][on.process.pid] = on.process.parent;
      add_rank(gathered, rank_of(node, gpu, on));
    }
  }
}

/// Processes on GPUs of the job's nodes that may be ranks of it, too: of its user, and with an environment that nobody
/// could read.
std::size_t count_unread(const JobRow& job, const std::map<std::string, const Report*>& reports) {
  std::set<std::string> names;
  for (const JobRank& rank : job.ranks) names.insert(rank.node);
  std::set<std::pair<std::string, int>> found;
  for (const std::string& name : names) {
    for (const GpuReport& gpu : reports.at(name)->gpus) {
      for (const GpuProcessReport& on : gpu.processes) {
        if (on.process.environment_unread && on.process.user == job.user) found.insert({name, on.process.pid});
      }
    }
  }
  return found.size();
}

}  // namespace

std::vector<JobRow> jobs_of(const std::vector<MergedNode>& nodes) {
  std::map<std::string, Gathered> jobs;
  for (const MergedNode& node : nodes) {
    if (node.report) add_node(node, jobs);
  }
  std::map<std::string, const Report*> reports;
  for (const MergedNode& node : nodes) {
    if (node.report) reports[node.name] = &*node.report;
  }
  std::vector<JobRow> rows;
  for (auto& [key, gathered] : jobs) {
    JobRow& job = gathered.row;
    for (auto& [which, rank] : gathered.ranks) {
      apply_rules(*reports.at(rank.node), rank);
      job.ranks.push_back(std::move(rank));
    }
    job.unread = count_unread(job, reports);
    job.first_is_parent = is_started_by_first(gathered, reports);
    job.not_compared = gathered.rank_twice();
    if (job.label.empty()) job.label = "ranks on " + job.ranks.front().node;
    rows.push_back(std::move(job));
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const JobRow& a, const JobRow& b) { return a.ranks.size() > b.ranks.size(); });
  return rows;
}

}  // namespace drover::inline v1::health
