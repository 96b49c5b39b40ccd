// SPDX-License-Identifier: Apache-2.0
#include "drover/health/merge.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace drover::inline v1::health {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Takes the digits at the start off `text`, without leading zeros.
std::string_view take_digits(std::string_view& text) {
  std::size_t length = 0;
  while (length < text.size() && is_digit(text[length])) ++length;
  std::string_view digits = text.substr(0, length);
  text.remove_prefix(length);
  while (digits.size() > 1 && digits.front() == '0') digits.remove_prefix(1);
  return digits;
}

bool before(const Finding& a, const Finding& b) {
  if (a.severity != b.severity) return a.severity > b.severity;
  const bool a_ranks = a.rule == Rule::kRanks, b_ranks = b.rule == Rule::kRanks;
  if (a_ranks != b_ranks) return a_ranks;  // it names the node among many to begin with
  if (a.confidence != b.confidence) return a.confidence > b.confidence;
  if (a.rule != b.rule) return a.rule < b.rule;
  if (a.node != b.node) return natural_less(a.node, b.node);
  return std::tie(a.gpu, a.pid) < std::tie(b.gpu, b.pid);
}

}  // namespace

bool natural_less(std::string_view a, std::string_view b) noexcept {
  const std::string_view whole_a = a, whole_b = b;
  while (!a.empty() && !b.empty()) {
    if (is_digit(a.front()) && is_digit(b.front())) {
      const std::string_view left = take_digits(a), right = take_digits(b);
      if (left.size() != right.size()) return left.size() < right.size();
      if (left != right) return left < right;
    } else if (a.front() != b.front()) {
      return a.front() < b.front();
    } else {
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  if (a.empty() != b.empty()) return a.empty();
  return whole_a < whole_b;  // equal but for leading zeros
}

std::vector<UserRow> users_of(const std::vector<MergedNode>& nodes) {
  struct Sums {
    UserRow row;
    std::set<std::string> nodes;
    std::map<std::pair<std::string, int>, double> ages;  // of the oldest process on each GPU
    std::set<std::pair<std::string, int>> pids;
    bool ages_known = true;
  };
  std::map<std::string, Sums> users;
  for (const MergedNode& node : nodes) {
    if (!node.report) continue;
    for (const GpuReport& gpu : node.report->gpus) {
      for (const GpuProcessReport& on : gpu.processes) {
        Sums& sums = users[on.process.user];
        sums.nodes.insert(node.name);
        sums.pids.emplace(node.name, on.process.pid);
        sums.row.memory_bytes += static_cast<double>(on.memory_bytes.value.value_or(0));
        sums.row.busy_gpus += on.cores.value.value_or(0);
        double& age = sums.ages[{node.name, gpu.index}];
        age = std::max(age, on.process.age_s.value_or(0));
        sums.ages_known = sums.ages_known && on.process.age_s.has_value();
      }
    }
  }
  std::vector<UserRow> rows;
  for (auto& [user, sums] : users) {
    sums.row.user = user;
    sums.row.nodes = sums.nodes.size();
    sums.row.gpus = sums.ages.size();
    sums.row.processes = sums.pids.size();
    double hours = 0;
    for (const auto& [gpu, age] : sums.ages) hours += age / 3600;
    if (sums.ages_known) sums.row.held_gpu_hours = hours;
    rows.push_back(std::move(sums.row));
  }
  std::stable_sort(rows.begin(), rows.end(), [](const UserRow& a, const UserRow& b) {
    return std::tie(b.gpus, b.memory_bytes) < std::tie(a.gpus, a.memory_bytes);
  });
  return rows;
}

std::size_t MergedReport::missing() const noexcept {
  return static_cast<std::size_t>(
      std::count_if(nodes.begin(), nodes.end(), [](const MergedNode& node) { return !node.report; }));
}

int MergedReport::exit_code() const noexcept {
  bool unknown_counts = false;
  for (const MergedNode& node : nodes)
    unknown_counts = unknown_counts || (node.report && node.report->exit_code() == 3);
  const int code = exit_code_of(findings, unknown_counts);
  return code != 2 && missing() > 0 ? 3 : code;
}

std::string MergedReport::verdict() const {
  if (single && nodes.front().report) return nodes.front().report->verdict();
  const int code = exit_code();
  std::string text;
  if (const std::size_t absent = missing(); absent > 0) {
    const auto first = std::find_if(nodes.begin(), nodes.end(), [](const MergedNode& node) { return !node.report; });
    text = std::to_string(absent) + " of " + std::to_string(nodes.size()) +
           (absent == 1 ? " nodes has no report (" : " nodes have no report (first ") + first->name + ": " +
           first->problem + ")";
    if (code == 3) return "UNKNOWN: " + text + (findings.empty() ? "" : "; and " + verdict_of(findings, 3).substr(9));
    text = "; " + text;
  }
  if (code != 0) return verdict_of(findings, code) + text;
  text = "OK: nothing is wrong that can be seen on " + std::to_string(nodes.size()) +
         (nodes.size() == 1 ? " node" : " nodes");
  if (!findings.empty()) text += "; " + std::to_string(findings.size()) + (findings.size() == 1 ? " note" : " notes");
  return text;
}

MergedReport merge(std::vector<ReadReport> reports) {
  MergedReport merged;
  merged.nodes = nodes_of(std::move(reports));
  for (const MergedNode& node : merged.nodes) {
    if (!node.report) continue;
    merged.unix_time = std::max(merged.unix_time, node.report->unix_time);
    for (const Finding& finding : node.report->findings) merged.findings.emplace_back(finding).node = node.name;
  }
  merged.users = users_of(merged.nodes);
  merged.jobs = jobs_of(merged.nodes);
  for (JobRow& job : merged.jobs) {
    if (auto finding = odd_rank_out(job, merged.missing() == 0)) merged.findings.push_back(std::move(*finding));
  }
  std::stable_sort(merged.findings.begin(), merged.findings.end(), before);
  return merged;
}

}  // namespace drover::inline v1::health
