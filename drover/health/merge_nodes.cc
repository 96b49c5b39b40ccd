// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "drover/health/merge.h"

namespace drover::inline v1::health {
namespace {

constexpr double kLaunchApart = 60;  // seconds between the looks of ranks of one launch: a driver may keep some waiting

/// All that was read about one node.
using Reports = std::vector<ReadReport>;

std::string name_of(const Report& report) {
  if (!report.node.empty()) return report.node;
  return report.host.empty() ? "(no name)" : report.host;
}

std::set<std::string> gpus_of(const Report& report) {
  std::set<std::string> uuids;
  for (const GpuReport& gpu : report.gpus)
    if (!gpu.uuid.empty()) uuids.insert(gpu.uuid);
  return uuids;
}

bool other_cpus(const Report& a, const Report& b) {
  return a.cpu.model != b.cpu.model || a.cpu.logical != b.cpu.logical;
}

/// Two ranks of one mpirun or srun, which looked at the same machine.
bool same_launch(const Report& a, const Report& b) {
  return a.rank && b.rank && a.rank != b.rank && a.world_size == b.world_size && a.job == b.job && a.host == b.host &&
         a.kernel == b.kernel && !other_cpus(a, b) && std::abs(a.unix_time - b.unix_time) <= kLaunchApart;
}

bool other_machine(const Report& a, const Report& b) {
  if (other_cpus(a, b)) return true;
  const std::set<std::string> left = gpus_of(a), right = gpus_of(b);
  return !left.empty() && !right.empty() &&
         std::none_of(left.begin(), left.end(), [&](const std::string& uuid) { return right.count(uuid) > 0; });
}

/// Of two ranks of a launch the one to take: it sees more, or worse things, or looked later.
bool tells_less(const ReadReport& a, const ReadReport& b) {
  static constexpr int kWorse[] = {0, 2, 3, 1};  // by exit code
  const auto worth = [](const Report& report) {
    const auto answering =
        std::count_if(report.gpus.begin(), report.gpus.end(), [](const GpuReport& gpu) { return gpu.problem.empty(); });
    return std::tuple(gpus_of(report).size(), kWorse[report.exit_code() & 3], answering, report.unix_time);
  };
  return worth(*a.report) < worth(*b.report);
}

MergedNode without_report(std::string name, const ReadReport& read, const std::string& problem) {
  return {.name = std::move(name),
          .place = read.place,
          .report = std::nullopt,
          .problem = read.place + ": " + problem,
          .note = {}};
}

/// Moves those for which `leaves` is true out of `reports`.
template <class Leaves>
Reports take_out(Reports& reports, const Leaves& leaves) {
  const auto middle = std::stable_partition(reports.begin(), reports.end(),
                                            [&](const ReadReport& read) { return !leaves(*read.report); });
  Reports taken(std::make_move_iterator(middle), std::make_move_iterator(reports.end()));
  reports.erase(middle, reports.end());
  return taken;
}

/// Which reports were left out for `taken`: of other ranks of its launch, and older ones.
std::string note_of(const ReadReport& taken, const Reports& ranks, const Reports& older) {
  std::string note;
  if (!ranks.empty())
    note = std::to_string(ranks.size() + 1) + " ranks of one launch looked at this node; taken is the report of rank " +
           std::to_string(*taken.report->rank);
  if (!older.empty())
    note += (note.empty() ? "" : "; ") + std::string("left out is what is older: ") + older.front().place +
            (older.size() > 1 ? " and others" : "");
  return note;
}

/// One row for the node; beside it a row for each report of what that one cannot speak for.
void add_node(const std::string& name, Reports reports, std::vector<MergedNode>& nodes) {
  const auto newest = std::max_element(reports.begin(), reports.end(), [](const ReadReport& a, const ReadReport& b) {
    return a.report->unix_time < b.report->unix_time;
  });
  ReadReport taken = std::move(*newest);
  reports.erase(newest);
  Reports ranks = take_out(reports, [&](const Report& report) { return same_launch(*taken.report, report); });
  const Reports strangers =
      take_out(reports, [&](const Report& report) { return other_machine(*taken.report, report); });
  const auto best = std::max_element(ranks.begin(), ranks.end(), tells_less);
  if (best != ranks.end() && tells_less(taken, *best)) std::swap(taken, *best);

  const std::set<std::string> seen = gpus_of(*taken.report);
  const Reports others = take_out(ranks, [&](const Report& report) {
    const std::set<std::string> uuids = gpus_of(report);
    return !std::includes(seen.begin(), seen.end(), uuids.begin(), uuids.end());
  });
  nodes.push_back(
      {.name = name, .place = taken.place, .report = {}, .problem = {}, .note = note_of(taken, ranks, reports)});
  nodes.back().report = std::move(taken.report);
  for (const ReadReport& read : strangers)
    nodes.push_back(without_report(name, read,
                                   "a second report under this name, of another machine (its CPUs or GPUs are others), "
                                   "is left out; the newest is in " +
                                       taken.place));
  for (const ReadReport& read : others)
    nodes.push_back(without_report(
        name, read,
        "a second report of this node, left out, with GPUs that the one in " + taken.place +
            " may not see; run one task on each node that may use all of its GPUs (--ntasks-per-node=1)"));
}

}  // namespace

std::vector<MergedNode> nodes_of(std::vector<ReadReport> reports) {
  std::vector<MergedNode> nodes;
  std::map<std::string, Reports> by_name;
  for (ReadReport& read : reports) {
    if (read.report) {
      std::string name = read.node.empty() ? name_of(*read.report) : read.node;
      by_name[std::move(name)].push_back(std::move(read));
      continue;
    }
    const std::string name = read.node.empty() ? read.place : read.node;
    MergedNode& node = nodes.emplace_back(without_report(name, read, read.problem));
    if (read.place == name) node.problem = read.problem;
  }
  for (auto& [name, of_node] : by_name) add_node(name, std::move(of_node), nodes);
  std::stable_sort(nodes.begin(), nodes.end(),
                   [](const MergedNode& a, const MergedNode& b) { return natural_less(a.name, b.name); });
  return nodes;
}

MergedReport merge_one(Report report) {
  MergedReport merged;
  merged.single = true;
  merged.unix_time = report.unix_time;
  merged.findings = report.findings;
  const std::string name = name_of(report);
  merged.nodes.push_back({.name = name, .place = {}, .report = std::move(report), .problem = {}, .note = {}});
  merged.users = users_of(merged.nodes);
  return merged;
}

}  // namespace drover::inline v1::health
