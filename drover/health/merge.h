// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drover/health/report.h"
#include "drover/health/report_read.h"

/// One report over many nodes. Values and pure functions.
namespace drover::inline v1::health {

/// A node, or a place of the input in which there was no report.
struct MergedNode {
  std::string name;
  std::string place;  ///< where its report was read
  std::optional<Report> report;
  std::string problem;  ///< why there is no report
  std::string note;     ///< which other reports of it were left out
};

/// What one user has on all GPUs.
struct UserRow {
  std::string user;  ///< empty: not known
  std::size_t nodes = 0, gpus = 0, processes = 0;
  double memory_bytes = 0;
  double busy_gpus = 0;                  ///< sum of the shares of GPUs that its processes use
  std::optional<double> held_gpu_hours;  ///< sum over its GPUs of the age of its oldest process there
};

/// What a rank was seen doing: by a rule's verdict, else by what its GPU shows. kFaulty: a rule says that it, or its
/// GPU, is broken or stuck.
enum class RankDoes { kUnknown, kIdle, kWorks, kSpins, kFaulty };
const char* to_text(RankDoes does) noexcept;

struct JobRank {
  int rank = 0;
  std::string node;
  int pid = 0;
  std::optional<int> gpu;
  RankDoes does = RankDoes::kUnknown;
  RankDoes use = RankDoes::kUnknown;  ///< what its GPU shows alone, never kFaulty
  std::string verdict;                ///< of a rule, if one spoke
  bool held = false;                  ///< that verdict is a warning or worse: it held for its time
  std::optional<double> cores, power_w, cpu_share;
  double seen_at = 0, window_s = 0;
};

/// The ranks of one job, ascending.
struct JobRow {
  std::string label, user;  ///< label: "slurm 4711", or what else tells the job from others
  std::optional<int> world_size;
  std::vector<JobRank> ranks;
  std::size_t unread = 0;  ///< processes of its user on GPUs of its nodes that may be ranks: nobody could read that
  bool first_is_parent = false;  ///< rank 0 is on a GPU without its number: as Lightning's, which started the others
  std::string not_compared;      ///< why nothing may be said about it; empty: it was compared
};

/// Nodes are in natural order of their names (n2 before n10), findings the worst first, users by the GPUs they hold.
struct MergedReport {
  bool single = false;   ///< made of one report by merge_one
  double unix_time = 0;  ///< of the newest report
  std::vector<MergedNode> nodes;
  std::vector<Finding> findings;  ///< each with its node
  std::vector<UserRow> users;
  std::vector<JobRow> jobs;

  std::size_t missing() const noexcept;  ///< nodes without a report
  /// The worst of all: 2 critical, 3 a node without a report, 1 a warning, 3 something could not be judged, 0.
  int exit_code() const noexcept;
  std::string verdict() const;
};

/// Puts reports together. A node counts once, see nodes_of().
MergedReport merge(std::vector<ReadReport> reports);
/// A report alone, in the same form.
MergedReport merge_one(Report report);

/// The nodes, each once, and what is no report. Of several reports of a node: among the ranks of one launch (another
/// rank of the same job and world, the same host and kernel, at the same time within a minute) the one that sees most
/// is taken, else the newest; its note says so. One that it cannot speak for, as it is of another machine (CPUs or
/// GPUs) or of a rank that may see other GPUs, becomes a row with a problem.
std::vector<MergedNode> nodes_of(std::vector<ReadReport> reports);
/// Fills in the users.
std::vector<UserRow> users_of(const std::vector<MergedNode>& nodes);
/// The ranked processes on GPUs, by job. A job in which a rank is twice on a node is not compared.
std::vector<JobRow> jobs_of(const std::vector<MergedNode>& nodes);
/// The minority rule: when most ranks of a job do one thing and few do another, these are where to look first. Says
/// nothing without a clear majority (two thirds of all ranks that are seen, at least 3 ranks), or when looks are too
/// far apart in time, or when the job is not compared already; the reason is in `job.not_compared`. `all_nodes`: no
/// node is missing from the merge.
std::optional<Finding> odd_rank_out(JobRow& job, bool all_nodes);

/// Whether `a` comes before `b` when numbers in names count by their value.
bool natural_less(std::string_view a, std::string_view b) noexcept;

}  // namespace drover::inline v1::health
