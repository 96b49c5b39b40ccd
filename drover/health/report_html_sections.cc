// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <tuple>

#include "drover/health/report_html.h"
#include "drover/health/report_html_parts.h"
#include "drover/health/thresholds.h"

namespace drover::inline v1::health::html {
namespace {

constexpr std::size_t kMostAlike = 4;  // findings of one kind that are shown one by one

std::string list(const char* tag, const std::vector<std::string>& items) {
  std::string text = std::string("<") + tag + ">";
  for (const std::string& item : items) text += "<li>" + html_text(item) + "</li>";
  return text + "</" + tag + ">";
}

void add_term(std::string& text, const char* term, const char* tag, const std::vector<std::string>& items) {
  if (!items.empty()) text += std::string("<dt>") + term + "</dt><dd>" + list(tag, items) + "</dd>\n";
}

std::string who_text(const Finding& finding) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : " \xC2\xB7 ") + part; };
  if (!finding.node.empty()) add(finding.node);
  if (finding.gpu) add("GPU " + std::to_string(*finding.gpu));
  if (finding.pid) add("pid " + std::to_string(*finding.pid));
  if (!finding.user.empty()) add(finding.user);
  if (!finding.job.empty()) add(finding.job);
  if (finding.memory_bytes) add(bytes_text(static_cast<double>(*finding.memory_bytes)));
  return text;
}

std::string finding_html(const Finding& finding, bool open) {
  std::string text = "<details class=\"finding " + css_of(finding.severity) + "\"" + (open ? " open" : "") +
                     "><summary>" + badge(finding.severity) + " <strong>" + html_text(finding.verdict) +
                     "</strong> <span class=\"who\">" + html_text(who_text(finding)) + "</span></summary>\n<dl>";
  if (!finding.command.empty()) text += "<dt>command</dt><dd><code>" + html_text(finding.command) + "</code></dd>\n";
  add_term(text, "because", "ul", finding.because);
  add_term(text, "not because", "ul", finding.not_because);
  add_term(text, "do", "ol", finding.action);
  std::vector<std::string> facts = {std::string("rule ") + to_text(finding.rule)};
  if (finding.confidence != Confidence::kNone)
    facts.push_back(std::string("confidence ") + to_text(finding.confidence));
  if (finding.age_s) facts.push_back("process age " + duration_text(*finding.age_s));
  if (finding.held_s) facts.push_back("held for " + duration_text(*finding.held_s));
  facts.insert(facts.end(), finding.limits.begin(), finding.limits.end());
  std::string judged;
  for (const std::string& fact : facts) judged += (judged.empty() ? "" : " \xC2\xB7 ") + fact;
  return text + "<dt>judged by</dt><dd>" + html_text(judged) + "</dd></dl></details>\n";
}

/// The worst finding about each GPU.
std::map<std::pair<std::string, int>, const Finding*> worst_by_gpu(const MergedReport& merged) {
  std::map<std::pair<std::string, int>, const Finding*> worst;
  for (const Finding& finding : merged.findings) {  // the worst come first
    if (!finding.gpu || finding.severity < Severity::kWarning) continue;
    worst.try_emplace({merged.single ? merged.nodes.front().name : finding.node, *finding.gpu}, &finding);
  }
  return worst;
}

std::string decimal(double value, const char* format) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

std::string memory_text(const GpuReport& gpu) {
  if (!gpu.memory_used || !gpu.memory_total || *gpu.memory_total == 0) return "memory n/a";
  constexpr double kGib = 1U << 30U;
  const auto gib = [](std::uint64_t bytes) { return decimal(static_cast<double>(bytes) / kGib, "%.0f"); };
  return gib(*gpu.memory_used) + "/" + gib(*gpu.memory_total) + " GiB";
}

/// Shade by how busy; never the only sign, for the share stands in the cell.
std::string cell_html(const GpuReport& gpu, const Finding* worst) {
  std::string css = "hx";
  if (gpu.cores && gpu.problem.empty())
    css = "h" + std::to_string(static_cast<int>(std::clamp(*gpu.cores, 0.0, 1.0) * 5 + 0.5));
  std::string text = "<li class=\"cell " + css + (worst != nullptr ? " flagged" : "") + "\"><span class=\"gpu\">GPU " +
                     std::to_string(gpu.index) + "</span>";
  if (!gpu.problem.empty()) {
    text += "<b>no answer</b><span>" + html_text(gpu.problem) + "</span>";
  } else {
    text += "<b>" + (gpu.cores ? percent_text(*gpu.cores) : std::string("n/a")) + "</b><span>" +
            html_text(memory_text(gpu)) + "</span>";
  }
  if (worst != nullptr) text += badge(worst->severity) + "<span>" + html_text(worst->verdict) + "</span>";
  return text + "</li>";
}

std::optional<double> cores_of(const GpuPoint& point) { return point.cores; }
std::optional<double> memory_of(const GpuPoint& point) {
  return point.memory_used ? std::optional(static_cast<double>(*point.memory_used)) : std::nullopt;
}
std::optional<double> power_of(const GpuPoint& point) { return point.power_w; }

/// A value, and its line below it.
void value_cell(Table& table, const std::optional<double>& value, const std::string& shown, const std::string& line) {
  if (line.empty()) {
    table.number(value, shown);
  } else {
    table.html((value ? html_text(shown) : "n/a") + "<br>" + line, "n line", value);
  }
}

template <class T>
std::optional<double> real(const Maybe<T>& value) {
  return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
}
std::string shown(const std::optional<double>& value, std::string (*text)(double)) {
  return value ? text(*value) : std::string();
}

std::string remarks_of(const GpuReport& gpu) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (gpu.mig.value_or(false)) add("MIG, " + plural(gpu.instances.size(), "instance"));
  for (const std::string& reason : gpu.slowed_by) add("slowed by " + reason);
  for (const std::uint64_t xid : gpu.xids) add("Xid " + std::to_string(xid));
  for (const LoggedXidReport& xid : gpu.logged_xids)
    add("Xid " + std::to_string(xid.xid) + " " + duration_text(xid.age_s) + " ago");
  if (gpu.ecc_uncorrected && *gpu.ecc_uncorrected > 0)
    add(std::to_string(*gpu.ecc_uncorrected) + " uncorrected memory errors");
  if (gpu.remap_failed.value.value_or(0) != 0) add("remapping a memory row failed");
  if (gpu.remap_pending.value.value_or(0) != 0) add("a memory row waits for its remap");
  return text;
}

void gpu_row(Table& table, const MergedNode& node, const GpuReport& gpu, bool single) {
  table.row();
  if (!single) table.text(node.name);
  table.number(gpu.index, std::to_string(gpu.index));
  table.text(gpu.problem.empty() ? gpu.name : gpu.problem);
  const auto cores = real(gpu.cores), memory = real(gpu.memory_used), power = real(gpu.power_w);
  value_cell(table, cores, shown(cores, percent_text), sparkline("busy", gpu.series, cores_of, 1, percent_text));
  value_cell(table, memory, memory_text(gpu),
             sparkline("memory", gpu.series, memory_of, real(gpu.memory_total).value_or(0), bytes_text));
  value_cell(table, power, shown(power, watts_text),
             sparkline("power", gpu.series, power_of, real(gpu.power_limit_w).value_or(0), watts_text));
  const auto heat = real(gpu.temperature_c);
  table.number(heat, heat ? decimal(*heat, "%.0f \xC2\xB0") + "C" : "");
  table.text(remarks_of(gpu));
}

void process_row(Table& table, const MergedNode& node, const GpuReport& gpu, const GpuProcessReport& on, bool single) {
  const ProcessReport& process = on.process;
  table.row();
  if (!single) table.text(node.name);
  table.number(gpu.index, std::to_string(gpu.index));
  table.number(process.pid, std::to_string(process.pid));
  table.text(process.user);
  table.text(process.state == '-' ? "gone" : std::string(1, process.state));
  table.number(process.age_s, shown(process.age_s, duration_text));
  const auto memory = real(on.memory_bytes), cores = real(on.cores);
  table.number(memory, shown(memory, bytes_text));
  table.number(cores, shown(cores, percent_text));
  table.number(process.cpu_share, shown(process.cpu_share, percent_text));
  table.text(job_text(process));
  table.text(process.command.empty() ? process.name : process.command, "command");
}

void host_row(Table& table, const MergedNode& node) {
  const CpuReport& cpu = node.report->cpu;
  const MemoryReport& memory = node.report->memory;
  const auto count = [&](std::size_t number) { table.number(static_cast<double>(number), std::to_string(number)); };
  table.row();
  table.text(node.name);
  table.text(cpu.model);
  count(cpu.physical);
  count(cpu.logical);
  table.number(real(cpu.busy), shown(real(cpu.busy), percent_text));
  table.number(cpu.load1, decimal(cpu.load1, "%.2f"));
  table.number(cpu.quota, decimal(cpu.quota.value_or(0), "%.2f CPUs"));
  const auto used = static_cast<double>(memory.total - std::min(memory.total, memory.available));
  table.number(used, bytes_text(used));
  table.number(static_cast<double>(memory.total), bytes_text(static_cast<double>(memory.total)));
}

std::vector<std::string> with_node(bool single, std::vector<std::string> headings) {
  if (!single) headings.insert(headings.begin(), "Node");
  return headings;
}

}  // namespace

std::string findings_section(const MergedReport& merged) {
  if (merged.findings.empty())
    return section("findings", "Findings", "<p>None: nothing is wrong that can be seen.</p>\n");
  // Those that say the same are put together behind the first of them.
  std::map<std::tuple<Severity, Rule, std::string>, std::vector<const Finding*>> kinds;
  for (const Finding& finding : merged.findings)
    kinds[{finding.severity, finding.rule, finding.verdict}].push_back(&finding);
  std::string content;
  for (const Finding& finding : merged.findings) {
    const auto& alike = kinds[{finding.severity, finding.rule, finding.verdict}];
    const bool many = alike.size() > kMostAlike;
    if (many && &finding != alike.front()) continue;
    content += finding_html(finding, &finding == &merged.findings.front() && finding.severity >= Severity::kWarning);
    if (!many) continue;
    content += "<details class=\"more\"><summary>and " + std::to_string(alike.size() - 1) +
               " more: " + html_text(finding.verdict) + "</summary>\n";
    for (std::size_t i = 1; i < alike.size(); ++i) content += finding_html(*alike[i], false);
    content += "</details>\n";
  }
  return section("findings", "Findings (" + std::to_string(merged.findings.size()) + ")", content);
}

std::string map_section(const MergedReport& merged) {
  const auto worst = worst_by_gpu(merged);
  std::string content;
  bool any = false;
  for (const MergedNode& node : merged.nodes) {
    if (node.report && node.report->gpus.empty() && merged.single) continue;
    any = true;
    content += "<div class=\"node\"><h3>" + html_text(node.name) + " " +
               (node.report ? code_badge(node.report->exit_code()) : badge(Severity::kUnknown)) + "</h3>";
    if (!node.note.empty()) content += "<p class=\"hint\">" + html_text(node.note) + "</p>";
    if (!node.report) {
      content += "<p class=\"problem\">No report: " + html_text(node.problem) + "</p></div>\n";
      continue;
    }
    content += node.report->gpus.empty() ? "<p class=\"none\">no GPU</p>" : "<ul class=\"cells\">";
    for (const GpuReport& gpu : node.report->gpus) {
      const auto found = worst.find({node.name, gpu.index});
      content += cell_html(gpu, found == worst.end() ? nullptr : found->second);
    }
    content += node.report->gpus.empty() ? "</div>\n" : "</ul></div>\n";
  }
  if (!any) return {};
  return section(
      "map", "GPUs at a glance",
      "<p class=\"hint\">Busy share of the cores, a stronger colour for more; memory in use below it.</p>\n" + content);
}

std::string gpus_section(const MergedReport& merged) {
  Table table("GPUs", with_node(merged.single, {"GPU", "Model", "Busy", "Memory", "Power", "Heat", "Remarks"}));
  for (const MergedNode& node : merged.nodes) {
    if (!node.report) continue;
    for (const GpuReport& gpu : node.report->gpus) gpu_row(table, node, gpu, merged.single);
  }
  return section("gpus", "GPUs over time", table.finish());
}

std::string jobs_section(const MergedReport& merged) {
  Table table("Jobs with ranks", {"Job", "User", "Ranks seen", "Of", "They", "Remark"});
  for (const JobRow& job : merged.jobs) {
    std::map<RankDoes, std::size_t> counts;
    for (const JobRank& rank : job.ranks) ++counts[rank.does];
    std::string they;
    for (const auto& [does, count] : counts)
      they += (they.empty() ? "" : ", ") + std::to_string(count) + " " + to_text(does);
    table.row();
    table.text(job.label);
    table.text(job.user);
    table.number(static_cast<double>(job.ranks.size()), std::to_string(job.ranks.size()));
    table.number(job.world_size, std::to_string(job.world_size.value_or(0)));
    table.text(they);
    table.text(job.not_compared.empty() ? "" : "not compared: " + job.not_compared);
  }
  return section("jobs", "Jobs", table.finish());
}

std::string users_section(const MergedReport& merged) {
  Table table("Users", {"User", "GPUs", "Nodes", "Processes", "Memory", "In use", "GPU hours held"});
  for (const UserRow& user : merged.users) {
    table.row();
    table.text(user.user.empty() ? "(not known)" : user.user);
    table.number(static_cast<double>(user.gpus), std::to_string(user.gpus));
    table.number(static_cast<double>(user.nodes), std::to_string(user.nodes));
    table.number(static_cast<double>(user.processes), std::to_string(user.processes));
    table.number(user.memory_bytes, bytes_text(user.memory_bytes));
    table.number(user.busy_gpus, decimal(user.busy_gpus, "%.1f GPUs"));
    table.number(user.held_gpu_hours, decimal(user.held_gpu_hours.value_or(0), "%.1f"));
  }
  return section("users", "Users of GPUs", table.finish());
}

std::string processes_section(const MergedReport& merged) {
  Table table("Processes on GPUs", with_node(merged.single, {"GPU", "Pid", "User", "State", "Age", "Memory", "GPU use",
                                                             "CPU use", "Job", "Command"}));
  for (const MergedNode& node : merged.nodes) {
    if (!node.report) continue;
    for (const GpuReport& gpu : node.report->gpus) {
      for (const GpuProcessReport& on : gpu.processes) process_row(table, node, gpu, on, merged.single);
    }
  }
  return section("processes", "Processes on GPUs", table.finish());
}

std::string hosts_section(const MergedReport& merged) {
  Table hosts("CPUs and memory", {"Node", "CPU", "Cores", "Threads", "Busy", "Load", "Quota", "Memory used", "Memory"});
  Table busiest("Processes that use most CPU", with_node(merged.single, {"Pid", "User", "CPU use", "Command"}));
  std::string notes;
  for (const MergedNode& node : merged.nodes) {
    if (!node.report) continue;
    host_row(hosts, node);
    for (const ProcessReport& process : node.report->busiest) {
      busiest.row();
      if (!merged.single) busiest.text(node.name);
      busiest.number(process.pid, std::to_string(process.pid));
      busiest.text(process.user);
      busiest.number(process.cpu_share, shown(process.cpu_share, percent_text));
      busiest.text(process.command.empty() ? process.name : process.command, "command");
    }
    for (const std::string& warning : node.report->warnings)
      notes += "<li>" + html_text((merged.single ? "" : node.name + ": ") + warning) + "</li>";
  }
  std::string content = hosts.finish();
  if (!busiest.empty()) content += "<h3>Busiest processes</h3>\n" + busiest.finish();
  if (!notes.empty()) content += "<h3>Notes</h3>\n<ul>" + notes + "</ul>\n";
  return section("hosts", "CPUs and memory", content);
}

std::string limits_section(const MergedReport& merged) {
  std::map<std::vector<std::string>, std::vector<std::string>> groups;
  for (const MergedNode& node : merged.nodes) {
    if (node.report && !node.report->limits.empty()) groups[node.report->limits].push_back(node.name);
  }
  std::string content;
  for (const auto& [limits, nodes] : groups) {
    content += "<details><summary>" + plural(limits.size(), "threshold") + " in force" +
               (groups.size() > 1 ? " on " + html_text(nodes.front()) +
                                        (nodes.size() > 1 ? " and " + plural(nodes.size() - 1, "other node") : "")
                                  : "") +
               "</summary>" + "<ul class=\"limits\">";
    for (const std::string& limit : limits) content += "<li><code>" + html_text(limit) + "</code></li>";
    content += "</ul></details>\n";
  }
  return section("limits", "Thresholds", content);
}

}  // namespace drover::inline v1::health::html
