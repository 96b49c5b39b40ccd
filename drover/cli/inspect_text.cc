// SPDX-License-Identifier: Apache-2.0
#include "drover/cli/inspect_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "drover/health/thresholds.h"
#include "drover/os/terminal.h"

namespace drover::inline v1::cli {
namespace {

using health::bytes_text;
using health::duration_text;
using health::Finding;
using health::Maybe;
using health::percent_text;
using health::plural;
using health::Report;
using health::Severity;
using health::upper;

constexpr std::size_t kLabel = 9;  // width of the first column

bool inside_character(std::string_view text, std::size_t at) {
  return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U;
}

std::string number(const Maybe<double>& value, const char* format, double factor = 1) {
  return value ? fmt::format(fmt::runtime(format), *value * factor) : "n/a";
}
std::string percent(const Maybe<double>& value) { return value ? percent_text(*value) : "n/a"; }
std::string size(const Maybe<std::uint64_t>& value) { return value ? bytes_text(static_cast<double>(*value)) : "n/a"; }
std::string size(std::uint64_t bytes) { return bytes_text(static_cast<double>(bytes)); }

/// Writes labelled lines in the given width.
class Page {
 public:
  explicit Page(const TextStyle& style) : style_(style), width_(std::max<std::size_t>(style.columns, 40)) {}

  void line(std::string_view label, const std::string& text) {
    text_ += fmt::format("{:<{}}", label, kLabel) + wrapped(text, width_, kLabel) + "\n";
  }
  void plain(const std::string& text) { text_ += wrapped(text, width_, 0) + "\n"; }
  void row(const std::string& text) { text_ += cut(text, width_) + "\n"; }
  void blank() { text_ += "\n"; }
  void heading(const std::string& text, Severity severity) {
    const std::string line = wrapped(text, width_, 2);
    text_ += (style_.colour ? colour(severity) + line + "\x1b[0m" : line) + "\n";
  }
  std::size_t width() const { return width_; }
  std::string finish() { return std::move(text_); }

 private:
  static std::string colour(Severity severity) {
    switch (severity) {
      case Severity::kCritical:
        return "\x1b[1;31m";
      case Severity::kWarning:
        return "\x1b[1;33m";
      case Severity::kUnknown:
        return "\x1b[1;35m";
      case Severity::kInfo:
        break;
    }
    return "\x1b[1m";
  }

  const TextStyle style_;
  const std::size_t width_;
  std::string text_;
};

void add_cpu(Page& page, const health::CpuReport& cpu) {
  std::string text = cpu.model.empty() ? "" : os::sanitize(cpu.model) + ": ";
  text += plural(cpu.sockets, "socket") + ", " + plural(cpu.physical, "core");
  if (cpu.performance_cores > 0) text += fmt::format(" ({} P + {} E)", cpu.performance_cores, cpu.efficiency_cores);
  text += ", " + plural(cpu.logical, "thread") + ", " + plural(cpu.numa_nodes, "NUMA node");
  page.line("CPU", text);
  text = "busy " + percent(cpu.busy);
  if (cpu.iowait && *cpu.iowait >= 0.005) text += ", waiting for disks " + percent(cpu.iowait);
  if (cpu.steal && *cpu.steal >= 0.005) text += ", stolen " + percent(cpu.steal);
  text += fmt::format(", load {:.2f}", cpu.load1);
  text += "; may use " + plural(cpu.allowed, "thread");
  if (cpu.quota) text += fmt::format(", cgroup quota {:.2f} CPUs", *cpu.quota);
  if (cpu.cgroup_busy) text += ", of which " + percent(cpu.cgroup_busy) + " in use";
  if (cpu.throttled && *cpu.throttled > 0) text += ", used up in " + percent(cpu.throttled) + " of its periods";
  page.line("", text);
}

void add_memory(Page& page, const health::MemoryReport& memory) {
  const std::uint64_t used = memory.total - std::min(memory.total, memory.available);
  std::string text = fmt::format("{} of {} used, {} available", size(used), size(memory.total), size(memory.available));
  if (memory.swap_total > 0)
    text += fmt::format("; swap {} of {} used", size(memory.swap_total - std::min(memory.swap_total, memory.swap_free)),
                        size(memory.swap_total));
  if (memory.limit)
    text += fmt::format("; cgroup limit {}, {} used", size(*memory.limit), size(memory.limit_used.value_or(0)));
  if (memory.pressure && (*memory.pressure).some60 >= 0.005)
    text += "; tasks waited for memory " + percent_text((*memory.pressure).some60) + " of the last minute";
  if (memory.oom_kills.value_or(0) > 0) text += fmt::format("; {} killed for memory in this cgroup", *memory.oom_kills);
  page.line("Memory", text);
}

void add_processes(Page& page, const Report& report) {
  std::string text = plural(report.processes, "process");
  if (report.processes != 1) text = fmt::format("{} processes", report.processes);
  std::string states;
  for (const auto& [state, count] : report.states)
    states += fmt::format("{}{} {}", states.empty() ? "" : ", ", count, os::sanitize(std::string(1, state)));
  page.line("Tasks", text + (states.empty() ? "" : " (" + states + ")"));
  for (const health::ProcessReport& process : report.busiest) {
    const std::string name = process.command.empty() ? "[" + process.name + "]" : process.command;
    page.row(fmt::format("{:<{}}{:>8} {:<10} {:>6} CPU  {}", &process == &report.busiest.front() ? "Busiest" : "",
                         kLabel, process.pid, cut(os::sanitize(process.user), 10),
                         process.cpu_share ? percent_text(*process.cpu_share) : "n/a", os::sanitize(name)));
  }
}

std::string gpu_numbers(const health::GpuReport& gpu) {
  std::string text = fmt::format("memory {} of {}, cores {}, memory busy {}, {} of {} W", size(gpu.memory_used),
                                 size(gpu.memory_total), percent(gpu.cores), percent(gpu.memory),
                                 number(gpu.power_w, "{:.0f}"), number(gpu.power_limit_w, "{:.0f}"));
  text += fmt::format(", {} C, {} MHz", number(gpu.temperature_c, "{:.0f}"), number(gpu.clock_mhz, "{:.0f}"));
  if (gpu.mig.value_or(false)) text += ", MIG";
  if (gpu.ecc_uncorrected && *gpu.ecc_uncorrected > 0)
    text += fmt::format(", {} uncorrected memory errors", *gpu.ecc_uncorrected);
  if (gpu.remap_failed.value.value_or(0) != 0) text += ", remapping a memory row failed";
  if (gpu.remap_pending.value.value_or(0) != 0) text += ", a memory row waits for its remap";
  for (const std::string& reason : gpu.slowed_by) text += ", slowed by " + reason;
  for (const std::uint64_t xid : gpu.xids) text += fmt::format(", Xid {}", xid);
  return text;
}

void add_gpu(Page& page, const health::GpuReport& gpu) {
  page.line(fmt::format("GPU {}", gpu.index), os::sanitize(gpu.name.empty() ? gpu.bus : gpu.name) +
                                                  (gpu.uuid.empty() ? "" : "  " + os::sanitize(gpu.uuid)));
  if (!gpu.problem.empty()) {
    page.line("", os::sanitize(gpu.problem));
    return;
  }
  page.line("", gpu_numbers(gpu));
  for (const health::GpuInstanceReport& part : gpu.instances) {
    page.line("", fmt::format("part {}/{}: memory {} of {}, cores {}", part.gpu_instance, part.compute_instance,
                              size(part.memory_used), size(part.memory_total), percent(part.cores)));
  }
  if (!gpu.processes.empty())
    page.row(fmt::format("{:>{}}{:>8} {:<9} S {:>9} {:>9} {:>5} {:>6}  {}", "", 2, "pid", "user", "age", "memory",
                         "GPU", "CPU", "command"));
  for (const health::GpuProcessReport& row : gpu.processes) {
    const health::ProcessReport& process = row.process;
    std::string name = process.command.empty() ? "[" + process.name + "]" : process.command;
    if (process.state == '-') name = "(not in /proc)";  // ended, or hidden: a finding says which
    page.row(fmt::format("{:>{}}{:>8} {:<9} {} {:>9} {:>9} {:>5} {:>6}  {}", "", 2, process.pid,
                         cut(os::sanitize(process.user), 9), os::sanitize(std::string(1, process.state)),
                         process.age_s ? duration_text(*process.age_s) : "-", size(row.memory_bytes),
                         percent(row.cores), process.cpu_share ? percent_text(*process.cpu_share) : "-",
                         os::sanitize(name)));
    const std::string job = job_text(process);
    if (!job.empty())
      page.row(fmt::format("{:>{}}{}{}", "", kLabel + 2, process.job.empty() ? "" : "job ", os::sanitize(job)));
  }
}

void add_finding(Page& page, const Finding& finding) {
  std::string heading = upper(health::to_text(finding.severity)) + "  " + os::sanitize(finding.verdict) + " (" +
                        health::to_text(finding.rule);
  if (finding.confidence != health::Confidence::kNone)
    heading += fmt::format(", confidence {}", health::to_text(finding.confidence));
  page.heading(heading + ")", finding.severity);
  const std::string who = who_text(finding) + (finding.command.empty() ? "" : ": " + finding.command);
  if (!who.empty()) page.line("  who", cut(os::sanitize(who), 3 * (page.width() - kLabel)));
  for (const std::string& text : finding.because)
    page.line(&text == &finding.because.front() ? "  because" : "", fmt::format(" {}", os::sanitize(text)));
  for (const std::string& text : finding.not_because)
    page.line(&text == &finding.not_because.front() ? "  not" : "", os::sanitize(text));
  for (std::size_t i = 0; i < finding.action.size(); ++i)
    page.line(i == 0 ? "  do" : "", fmt::format("{}. {}", i + 1, os::sanitize(finding.action[i])));
  std::string limits;
  for (const std::string& limit : finding.limits) limits += (limits.empty() ? "" : " ") + os::sanitize(limit);
  if (!limits.empty()) page.line("  limits", limits);
}

}  // namespace

std::string who_text(const Finding& finding) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (!finding.node.empty()) add(finding.node);
  if (finding.gpu) add(fmt::format("GPU {}", *finding.gpu));
  if (finding.pid) add(fmt::format("pid {}", *finding.pid));
  if (!finding.user.empty()) add("user " + finding.user);
  if (!finding.job.empty()) add(finding.job);
  if (finding.age_s) add("age " + duration_text(*finding.age_s));
  if (finding.memory_bytes) add(size(*finding.memory_bytes));
  return text;
}

std::string cut(std::string text, std::size_t most) {
  if (text.size() <= most) return text;
  std::size_t length = most > 3 ? most - 3 : most;
  while (length > 0 && inside_character(text, length)) --length;
  text.resize(length);
  return most > 3 ? text + "..." : text;
}

std::string wrapped(std::string_view text, std::size_t width, std::size_t indent) {
  const std::size_t room = std::max<std::size_t>(width > indent ? width - indent : 0, 8);
  std::string result;
  while (text.size() > room) {
    std::size_t end = text.rfind(' ', room);
    std::size_t next = end + 1;
    if (end == text.npos || end == 0) {
      end = room;
      while (end > 1 && inside_character(text, end)) --end;
      next = end;
    }
    result.append(text.substr(0, end)).append("\n").append(indent, ' ');
    text.remove_prefix(next);
  }
  return result.append(text);
}

std::string inspect_text(const Report& report, const TextStyle& style) {
  Page page(style);
  const std::string how = report.once ? "one look of " + duration_text(report.window_s)
                                      : fmt::format("{} looks over {}", report.samples, duration_text(report.window_s));
  page.plain(fmt::format("{}{}, {}{}", report.demo.empty() ? "" : "DEMO " + report.demo + ": ",
                         os::sanitize(report.host.empty() ? "this machine" : report.host), how,
                         report.container ? ", in a container" : ""));
  add_cpu(page, report.cpu);
  add_memory(page, report.memory);
  add_processes(page, report);
  for (const health::GpuReport& gpu : report.gpus) add_gpu(page, gpu);
  if (report.gpus.empty() && report.warnings.empty()) page.line("GPU", "none");
  for (const std::string& text : report.warnings) page.line("Note", os::sanitize(text));
  for (const Finding& finding : report.findings) {
    page.blank();
    add_finding(page, finding);
  }
  page.blank();
  page.heading(os::sanitize(report.verdict()), severity_of_code(report.exit_code()));
  return page.finish();
}

std::string finding_text(const Finding& finding, const TextStyle& style) {
  Page page(style);
  add_finding(page, finding);
  return page.finish();
}

std::string heading_text(const std::string& text, Severity severity, const TextStyle& style) {
  Page page(style);
  page.heading(os::sanitize(text), severity);
  return page.finish();
}

Severity severity_of_code(int code) noexcept {
  static constexpr Severity kSeverities[] = {Severity::kInfo, Severity::kWarning, Severity::kCritical,
                                             Severity::kUnknown};
  return kSeverities[code & 3];
}

std::string check_line(const std::string& verdict, std::size_t columns) { return cut(os::sanitize(verdict), columns); }

}  // namespace drover::inline v1::cli
