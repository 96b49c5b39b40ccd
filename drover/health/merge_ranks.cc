// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "drover/health/merge.h"
#include "drover/health/rules/rules.h"
#include "drover/health/thresholds.h"

namespace drover::inline v1::health {
namespace {

constexpr double kApart = 60;          // seconds between looks that can still be compared
constexpr double kIdleShare = 0.05;    // of a GPU or a core, up to which nothing runs
constexpr std::size_t kFewest = 3;     // ranks
constexpr std::size_t kMostNamed = 8;  // odd ranks that are named one by one
constexpr std::size_t kDoes = 5;

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

/// Whether the looks can be compared at all; empty: they can.
std::string why_not(const JobRow& job) {
  if (job.ranks.size() < kFewest) return "fewer than 3 ranks are seen";
  double first = job.ranks.front().seen_at, last = first, window = job.ranks.front().window_s;
  for (const JobRank& rank : job.ranks) {
    first = std::min(first, rank.seen_at);
    last = std::max(last, rank.seen_at);
    window = std::min(window, rank.window_s);
  }
  for (std::size_t i = 1; i < job.ranks.size(); ++i) {
    if (job.ranks[i].rank == job.ranks[i - 1].rank)
      return "rank " + std::to_string(job.ranks[i].rank) + " is on " + job.ranks[i - 1].node + " and on " +
             job.ranks[i].node + ": these are two jobs that cannot be told apart";
  }
  if (last - first <= std::max(kApart, window / 2)) return {};
  return "its nodes were looked at " + duration_text(last - first) + " apart: look at all of them at one time";
}

std::string doing_text(RankDoes does) {
  static constexpr std::array<const char*, kDoes> kTexts = {"cannot be judged", "rest", "work", "spin", "are stuck"};
  return kTexts[static_cast<std::size_t>(does)];
}

std::string place_text(const JobRank& rank) {
  return "rank " + std::to_string(rank.rank) + " (" + rank.node +
         (rank.gpu ? ", GPU " + std::to_string(*rank.gpu) : "") + ", pid " + std::to_string(rank.pid) + ")";
}

std::string use_text(const JobRank& rank) {
  std::string text = rank.cores ? " is at " + percent_text(*rank.cores) : " tells no use of its GPU";
  if (rank.power_w) text += ", " + watts_text(*rank.power_w);
  return text + (rank.verdict.empty() ? "" : ": " + rank.verdict);
}

/// The job split into those that do the same and those that do something else.
struct Split {
  RankDoes most = RankDoes::kUnknown;
  std::vector<const JobRank*> majority, minority;
  std::size_t unknown = 0;
  std::size_t absent = 0;  ///< ranks of the world that are not seen

  explicit Split(const JobRow& job) {
    std::array<std::size_t, kDoes> counts{};
    for (const JobRank& rank : job.ranks) ++counts[static_cast<std::size_t>(rank.does)];
    const auto top = std::max_element(counts.begin() + 1, counts.end());
    most = static_cast<RankDoes>(top - counts.begin());
    for (const JobRank& rank : job.ranks) {
      if (rank.does == most) majority.push_back(&rank);
    }
    const bool sure = held();
    for (const JobRank& rank : job.ranks) {
      // What is broken is odd only if it does something else, or if the others wait for something.
      const RankDoes does = rank.does == RankDoes::kFaulty && !sure ? differs_by_use(rank) : rank.does;
      if (does == RankDoes::kUnknown) ++unknown;
      if (does == most && rank.does != most) majority.push_back(&rank);
      if (does != most && does != RankDoes::kUnknown) minority.push_back(&rank);
    }
    const auto world = static_cast<std::size_t>(job.world_size.value_or(0));
    absent = world > job.ranks.size() ? world - job.ranks.size() : 0;
  }
  bool clear(const JobRow& job) const { return majority.size() * 3 >= job.ranks.size() * 2; }
  bool held() const {
    return std::all_of(majority.begin(), majority.end(), [](const JobRank* rank) { return rank->held; });
  }
  bool all_of_minority(RankDoes does) const {
    return std::all_of(minority.begin(), minority.end(), [&](const JobRank* rank) { return rank->does == does; });
  }
  bool any_faulty() const {
    return std::any_of(minority.begin(), minority.end(),
                       [](const JobRank* rank) { return rank->does == RankDoes::kFaulty; });
  }
  bool waits() const { return most == RankDoes::kSpins || most == RankDoes::kIdle; }

 private:
  RankDoes differs_by_use(const JobRank& rank) const {
    return rank.use == most || rank.use == RankDoes::kUnknown ? rank.use : rank.does;
  }
};

/// Seen for so long that its use can be believed.
bool lasts(const JobRank* rank) { return rank->held || rank->window_s >= defaults()[Limit::kR6Medium]; }
bool rests_or_held(const JobRank* rank) { return rank->held || (rank->use == RankDoes::kIdle && lasts(rank)); }

std::string majority_text(const Split& split) {
  double cores = 0, power = 0;
  std::size_t with_cores = 0, with_power = 0;
  std::set<std::string> nodes;
  for (const JobRank* const rank : split.majority) {
    if (rank->cores) ++with_cores;
    cores += rank->cores.value_or(0);
    if (rank->power_w) ++with_power;
    power += rank->power_w.value_or(0);
    nodes.insert(rank->node);
  }
  std::string text = std::to_string(split.majority.size()) + " others " + doing_text(split.most);
  if (with_cores > 0) text += " at " + percent_text(cores / static_cast<double>(with_cores));
  if (with_power > 0) text += ", " + watts_text(power / static_cast<double>(with_power));
  return text + ", on " + std::to_string(nodes.size()) + (nodes.size() == 1 ? " node" : " nodes");
}

std::string numbers_text(const JobRow& job) {
  std::set<int> seen;
  for (const JobRank& rank : job.ranks) seen.insert(rank.rank);
  std::string text;
  std::size_t named = 0;
  for (int i = 0; i < job.world_size.value_or(0) && named <= kMostNamed; ++i) {
    if (seen.count(i) > 0) continue;
    text += (text.empty() ? "" : ", ") + (named == kMostNamed ? std::string("...") : std::to_string(i));
    ++named;
  }
  return text;
}

void advise(const JobRow& job, const Split& split, Finding& finding) {
  const JobRank& like = *split.majority.front();
  if (!finding.node.empty()) {
    finding.action.push_back("look at " + finding.node + " first: drover inspect --window 10m there, and dmesg");
  } else {
    finding.action.emplace_back("find the nodes of the job that are not in this report, and inspect them");
  }
  Job scheduler;
  if (job.label.substr(0, 6) == "slurm ") {
    scheduler.scheduler = "slurm";
    scheduler.id = job.label.substr(6);
  }
  advise_asking(finding, scheduler);
  if (finding.pid) {
    finding.action.push_back("keep evidence: py-spy dump --pid " + std::to_string(*finding.pid) + " on " +
                             finding.node + "; to compare: py-spy dump --pid " + std::to_string(like.pid) + " on " +
                             like.node + " (rank " + std::to_string(like.rank) + ")");
  }
  finding.action.emplace_back("end the job by its scheduler or launcher, not rank by rank");
}

/// Whether it is more than a note: all of it held for its time, and no healthy job looks so.
bool alarms(const JobRow& job, const Split& split) {
  if (!split.waits()) return false;
  // Those that spin wait for somebody; those that rest may be done.
  if (split.minority.empty()) return split.held() && split.most == RankDoes::kSpins && job.unread == 0;
  // One rank that works while the others wait is what an evaluation or a checkpoint looks like.
  if (split.all_of_minority(RankDoes::kWorks)) return false;
  if (!std::all_of(split.minority.begin(), split.minority.end(), rests_or_held)) return false;
  const bool all_faulty = split.all_of_minority(RankDoes::kFaulty);
  return split.held() || (all_faulty && std::all_of(split.majority.begin(), split.majority.end(), lasts));
}

void grade_odd(const JobRow& job, const Split& split, Finding& finding) {
  if (alarms(job, split)) {
    finding.severity = Severity::kWarning;
    const bool whole = split.absent == 0 && split.unknown == 0 && job.ranks.size() >= 8;
    finding.confidence = whole && split.held() ? Confidence::kHigh : Confidence::kMedium;
    return;
  }
  finding.severity = Severity::kInfo;
  finding.confidence = Confidence::kLow;
  const bool works = !split.waits() || (!split.minority.empty() && split.all_of_minority(RankDoes::kWorks));
  if (split.waits() && !works && !(split.minority.empty() && split.held())) {
    finding.not_because.emplace_back("judged: it did not hold for its time; run with --window 12m on all nodes");
  } else if (split.any_faulty()) {
    finding.not_because.emplace_back("a job that hangs: the other ranks work");
  } else if (works) {
    finding.not_because.emplace_back(
        "a fault: an evaluation, a checkpoint or a pipeline bubble on some ranks looks the same");
  }
}

Finding describe_odd(const Split& split) {
  const JobRank& first = *split.minority.front();
  Finding finding;
  finding.rule = Rule::kRanks;
  finding.verdict = split.minority.size() == 1 ? "ODD RANK OUT" : "ODD RANKS OUT";
  finding.node = first.node;
  finding.gpu = first.gpu;
  finding.pid = first.pid;
  for (std::size_t i = 0; i < std::min(split.minority.size(), kMostNamed); ++i)
    finding.because.push_back(place_text(*split.minority[i]) + use_text(*split.minority[i]));
  if (split.minority.size() > kMostNamed)
    finding.because.push_back("and " + std::to_string(split.minority.size() - kMostNamed) + " more");
  const auto elsewhere = [&](const JobRank* rank) { return rank->node != first.node; };
  if (split.minority.size() > 1 && std::none_of(split.minority.begin(), split.minority.end(), elsewhere))
    finding.because.push_back("all of them are on " + first.node);
  return finding;
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

const char* to_text(RankDoes does) noexcept {
  static constexpr std::array<const char*, kDoes> kTexts = {"unknown", "idle", "works", "spins", "faulty"};
  return kTexts[static_cast<std::size_t>(does)];
}

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
    job.not_compared = gathered.rank_twice();
    if (job.label.empty()) job.label = "ranks on " + job.ranks.front().node;
    rows.push_back(std::move(job));
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const JobRow& a, const JobRow& b) { return a.ranks.size() > b.ranks.size(); });
  return rows;
}

std::optional<Finding> odd_rank_out(JobRow& job, bool all_nodes) {
  if (job.not_compared.empty()) job.not_compared = why_not(job);
  if (!job.not_compared.empty()) return std::nullopt;
  const Split split(job);
  if (!split.clear(job)) {
    job.not_compared = "no two thirds of its ranks do the same";
    return std::nullopt;
  }
  const bool few_absent = split.absent > 0 && split.absent * 2 <= split.majority.size();
  Finding finding;
  if (!split.minority.empty() && split.most != RankDoes::kFaulty) {
    finding = describe_odd(split);
  } else if (split.minority.empty() && few_absent && split.waits() && all_nodes) {
    finding.rule = Rule::kRanks;
    finding.verdict = split.absent == 1 ? "RANK MISSING" : "RANKS MISSING";
    finding.because.push_back("of " + std::to_string(*job.world_size) +
                              " ranks these are on no GPU here: " + numbers_text(job));
    finding.not_because.emplace_back("on a node that is missing here, or on no GPU by design: cannot be ruled out");
    if (job.unread > 0)
      finding.not_because.push_back(std::to_string(job.unread) +
                                    " processes on GPUs here may be these ranks: their environment was not read");
  } else {
    return std::nullopt;
  }
  finding.because.push_back(majority_text(split));
  finding.user = job.user;
  finding.job = job.label;
  if (split.absent > 0 && !split.minority.empty())
    finding.not_because.push_back(std::to_string(split.absent) + " ranks of the job are not seen");
  if (split.unknown > 0) finding.not_because.push_back(std::to_string(split.unknown) + " ranks tell no use");
  grade_odd(job, split, finding);
  advise(job, split, finding);
  return finding;
}

}  // namespace drover::inline v1::health
