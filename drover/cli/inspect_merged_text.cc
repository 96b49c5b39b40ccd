// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "drover/cli/inspect_output.h"
#include "drover/cli/inspect_text.h"
#include "drover/health/thresholds.h"
#include "drover/os/terminal.h"

namespace drover::inline v1::cli {
namespace {

using health::bytes_text;
using health::Finding;
using health::MergedNode;
using health::MergedReport;
using health::Severity;

constexpr std::size_t kMostFindings = 50;  // in full; the others are in the JSON and on the page
constexpr std::size_t kMostAlike = 20;

/// Of all GPUs of a node.
struct Use {
  std::size_t gpus = 0, known = 0;
  double busy = 0, used = 0;

  explicit Use(const MergedNode& node) {
    if (!node.report) return;
    gpus = node.report->gpus.size();
    for (const health::GpuReport& gpu : node.report->gpus) {
      if (gpu.cores) ++known;
      busy += gpu.cores.value.value_or(0);
      used += static_cast<double>(gpu.memory_used.value.value_or(0));
    }
  }
  std::string busy_text() const { return known == 0 ? "-" : health::percent_text(busy / static_cast<double>(known)); }
};

/// Fitted to a column of that width, blanks added on the right.
std::string fit(const std::string& text, std::size_t width) {
  return fmt::format("{:<{}}", cut(os::sanitize(text), width), width);
}

/// What stands right in a column of that width; a value that does not fit there was made up.
std::string right(const std::string& text, std::size_t width) {
  return fmt::format("{:>{}}", text.size() > width ? "?" : text, width);
}

/// Names in a column: as they are, else without the domain that all have, else cut in the middle, for the number of a
/// node stands at either end. No two are the same.
class NodeNames {
 public:
  NodeNames(const std::vector<MergedNode>& nodes, std::size_t most) {
    std::size_t domain = std::string::npos;
    for (const MergedNode& node : nodes) {
      names_.push_back(os::sanitize(node.name));
      domain = std::min(domain, shared_domain(names_.back()));
      longest_ = std::max(longest_, names_.back().size());
    }
    if (longest_ > most && domain > 0 && names_.size() > 1) {
      longest_ -= domain;
      for (std::string& name : names_) name.resize(name.size() - domain);
    }
    if (longest_ <= most) return;
    longest_ = most;
    std::map<std::string, std::size_t> seen;
    for (std::string& name : names_) {
      std::string shorter = middle_cut(name, most);
      if (const std::size_t before = seen[shorter]++; before > 0) {
        const std::string mark = fmt::format("~{}", before + 1);
        shorter = middle_cut(name, most - std::min(most - 1, mark.size())) + mark;
      }
      name = std::move(shorter);
    }
  }
  std::size_t width() const { return longest_; }
  const std::string& operator[](std::size_t index) const { return names_[index]; }

 private:
  /// How much at the end of the name, from a dot on, the first name has as well; none of an address.
  std::size_t shared_domain(const std::string& name) const {
    const std::string& first = names_.front();
    std::size_t domain = 0;
    bool letters = false;
    for (std::size_t same = 1; same < std::min(name.size(), first.size()); ++same) {
      const char c = name[name.size() - same];
      if (c != first[first.size() - same]) break;
      letters = letters || (c >= 'a' && c <= 'z');
      if (c == '.' && letters) domain = same;
    }
    return domain;
  }
  static std::string middle_cut(const std::string& name, std::size_t most) {
    if (name.size() <= most || most < 5) return name.substr(0, most);
    const auto inside = [&](std::size_t at) { return (static_cast<unsigned char>(name[at]) & 0xC0U) == 0x80U; };
    std::size_t head = (most - 2) / 2, tail = name.size() - (most - 2 - head);
    while (head > 0 && inside(head)) --head;
    while (tail < name.size() && inside(tail)) ++tail;
    return name.substr(0, head) + ".." + name.substr(tail);
  }

  std::vector<std::string> names_;
  std::size_t longest_ = 4;
};

std::string nodes_text(const MergedReport& merged, const TextStyle& style) {
  constexpr std::size_t kNumbers = 23;  // what stands between the name and the verdict
  const std::size_t half = style.columns / 2;
  const NodeNames names(merged.nodes, half > kNumbers + 8 ? half - kNumbers : 8);
  const std::size_t indent = names.width() + kNumbers;
  std::string text =
      fmt::format("{:<{}} {:>4} {:>5} {:>9}  verdict\n", "node", names.width(), "GPUs", "busy", "memory");
  for (std::size_t i = 0; i < merged.nodes.size(); ++i) {
    const MergedNode& node = merged.nodes[i];
    const Use use(node);
    const std::string verdict = node.report ? node.report->verdict() : "no report: " + node.problem;
    text += fmt::format("{:<{}} {} {} {}  {}\n", names[i], names.width(),
                        right(node.report ? std::to_string(use.gpus) : "-", 4), right(use.busy_text(), 5),
                        right(use.gpus > 0 ? bytes_text(use.used) : "-", 9),
                        wrapped(os::sanitize(verdict), style.columns, indent));
  }
  for (const MergedNode& node : merged.nodes) {
    if (!node.note.empty())
      text += wrapped(os::sanitize("note: " + node.name + ": " + node.note), style.columns, 6) + "\n";
  }
  return text;
}

std::string users_text(const MergedReport& merged, const TextStyle& style) {
  if (merged.users.empty()) return {};
  const std::size_t width = std::clamp<std::size_t>(style.columns - 48, 8, 20);
  std::string text = fmt::format("\n{:<{}} {:>5} {:>5} {:>9} {:>9} {:>6} {:>8}\n", "user", width, "GPUs", "nodes",
                                 "processes", "memory", "in use", "held");
  for (const health::UserRow& user : merged.users) {
    text += fmt::format("{} {:>5} {:>5} {:>9} {} {} {}\n", fit(user.user.empty() ? "-" : user.user, width), user.gpus,
                        user.nodes, user.processes, right(bytes_text(user.memory_bytes), 9),
                        right(fmt::format("{:.1f}", user.busy_gpus), 6),
                        right(user.held_gpu_hours ? fmt::format("{:.1f} h", *user.held_gpu_hours) : "-", 8));
  }
  return text;
}

std::string jobs_text(const MergedReport& merged, const TextStyle& style) {
  std::string text;
  for (const health::JobRow& job : merged.jobs) {
    std::string line = fmt::format("job {}: {} ranks seen", job.label, job.ranks.size());
    if (job.world_size) line += fmt::format(" of {}", *job.world_size);
    if (!job.not_compared.empty()) line += ", not compared: " + job.not_compared;
    text += wrapped(os::sanitize(line), style.columns, 2) + "\n";
  }
  return text.empty() ? text : "\n" + text;
}

/// Who else has the same, in short.
std::string others_text(const std::vector<const Finding*>& alike, const TextStyle& style) {
  std::string text;
  for (std::size_t i = 1; i < alike.size() && i <= kMostAlike; ++i) {
    const Finding& finding = *alike[i];
    text += (text.empty() ? "" : "; ") + finding.node;
    if (finding.gpu) text += fmt::format(" GPU {}", *finding.gpu);
    if (finding.pid) text += fmt::format(" pid {}", *finding.pid);
  }
  if (alike.size() > kMostAlike + 1) text += fmt::format("; and {} more", alike.size() - kMostAlike - 1);
  return text.empty() ? text : "  also   " + wrapped(os::sanitize(text), style.columns, 9) + "\n";
}

/// Of findings that say the same the first in full, and who else has it.
std::string findings_text(const MergedReport& merged, const TextStyle& style) {
  using Kind = std::tuple<Severity, health::Rule, std::string>;
  std::map<Kind, std::vector<const Finding*>> kinds;
  std::vector<Kind> order;
  for (const Finding& finding : merged.findings) {
    Kind kind{finding.severity, finding.rule, finding.verdict};
    std::vector<const Finding*>& alike = kinds[kind];
    const bool apart = finding.rule == health::Rule::kRanks;  // each is about another job
    if (apart) std::get<2>(kind) += " " + finding.job;
    if (apart || alike.empty()) order.push_back(kind);
    (apart ? kinds[kind] : alike).push_back(&finding);
  }
  std::string text;
  for (std::size_t i = 0; i < order.size() && i < kMostFindings; ++i) {
    const std::vector<const Finding*>& alike = kinds[order[i]];
    text += "\n" + finding_text(*alike.front(), style) + others_text(alike, style);
  }
  if (order.size() > kMostFindings)
    text += fmt::format("\nand {} more kinds of findings: see --json or --html\n", order.size() - kMostFindings);
  return text;
}

}  // namespace

std::string merged_text(const MergedReport& merged, std::size_t columns, bool colour) {
  const TextStyle style{.columns = std::max<std::size_t>(columns, 40), .colour = colour};
  return nodes_text(merged, style) + users_text(merged, style) + jobs_text(merged, style) +
         findings_text(merged, style) + "\n" +
         heading_text(merged.verdict(), severity_of_code(merged.exit_code()), style);
}

}  // namespace drover::inline v1::cli
