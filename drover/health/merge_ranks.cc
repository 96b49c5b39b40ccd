// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <set>

#include "drover/health/merge.h"
#include "drover/health/rules/rules.h"
#include "drover/health/thresholds.h"

namespace drover::inline v1::health {
namespace {

constexpr double kApart = 60;          // seconds between looks that can still be compared
constexpr std::size_t kFewest = 3;     // ranks
constexpr std::size_t kMostNamed = 8;  // odd ranks that are named one by one
constexpr std::size_t kDoes = 5;

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
    const std::size_t here = job.ranks.size() + (job.first_is_parent ? 1 : 0);
    absent = world > here ? world - here : 0;
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
bool lasts(const JobRank* rank) {
  static const double enough = Thresholds()[Limit::kR6Medium];
  return rank->held || rank->window_s >= enough;
}
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
  if (job.first_is_parent) seen.insert(0);
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

}  // namespace

const char* to_text(RankDoes does) noexcept {
  static constexpr std::array<const char*, kDoes> kTexts = {"unknown", "idle", "works", "spins", "faulty"};
  return kTexts[static_cast<std::size_t>(does)];
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
