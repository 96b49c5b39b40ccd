// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "drover/cli/inspect_text.h"
#include "drover/cli/watch_screen.h"
#include "drover/health/thresholds.h"

namespace drover::inline v1::cli {
namespace {

using health::bytes_text;
using health::duration_text;
using health::Finding;
using health::GpuReport;
using health::Maybe;
using health::percent_text;
using health::Report;

constexpr std::size_t kLabel = 13;  // width of the first column

/// Labelled, wrapped text.
class Text {
 public:
  explicit Text(std::size_t columns) : columns_(std::max<std::size_t>(columns, kLabel + 12)) {}

  void heading(const std::string& text, Ink ink) { lines_.push_back(Line(" " + text, ink)); }
  void blank() { lines_.emplace_back(); }
  /// `text` is made safe here.
  void row(const std::string& label, const std::string& text) {
    std::string rest = wrapped(ascii(text), columns_ - 1, kLabel);
    Line line;
    line.add(" " + label, Ink::kFaint).to(kLabel);
    for (std::size_t end = rest.find('\n'); end != rest.npos; end = rest.find('\n')) {
      lines_.push_back(line.add(rest.substr(0, end)));
      line = Line();
      rest.erase(0, end + 1);
    }
    lines_.push_back(line.add(rest));
  }
  void rows(const std::string& label, const std::vector<std::string>& texts, bool numbered = false) {
    for (std::size_t i = 0; i < texts.size(); ++i)
      row(i == 0 ? label : "", (numbered ? fmt::format("{}. ", i + 1) : "- ") + texts[i]);
  }
  std::vector<Line> finish() { return std::move(lines_); }

 private:
  const std::size_t columns_;
  std::vector<Line> lines_;
};

std::string size_text(const Maybe<std::uint64_t>& value) {
  return value ? bytes_text(static_cast<double>(*value)) : "not available: " + value.reason;
}
std::string share_text(const Maybe<double>& value) {
  return value ? percent_text(*value) : "not available: " + value.reason;
}
std::string number_text(const Maybe<double>& value, const char* unit) {
  return value ? fmt::format("{:.0f} {}", *value, unit) : "not available: " + value.reason;
}

void add_evidence(Text& text, const Finding& finding) {
  std::string heading =
      fmt::format("{}  {}  ({}", short_word(finding.severity), ascii(finding.verdict), health::to_text(finding.rule));
  if (finding.confidence != health::Confidence::kNone)
    heading += fmt::format(", confidence {}", health::to_text(finding.confidence));
  text.heading(heading + ")", finding.severity == health::Severity::kInfo ? Ink::kBold : ink_of(finding.severity));
  text.blank();
  const std::string who = who_text(finding);
  if (!who.empty()) text.row("who", who);
  if (!finding.command.empty()) text.row("command", finding.command);
  if (finding.held_s) text.row("seen for", duration_text(*finding.held_s));
  text.rows("because", finding.because);
  text.rows("not because", finding.not_because);
  text.rows("do", finding.action, true);
  std::string limits;
  for (const std::string& limit : finding.limits) limits += (limits.empty() ? "" : " ") + limit;
  if (!limits.empty()) text.row("limits", limits + "  (--set moves one)");
}

void add_findings(Text& text, const std::vector<const Finding*>& findings) {
  text.blank();
  if (findings.empty()) text.row("findings", "none");
  for (const Finding* const finding : findings) {
    const std::string why = finding->because.empty() ? "" : ": " + finding->because.front();
    text.row(finding == findings.front() ? "findings" : "",
             std::string(short_word(finding->severity)) + " " + finding->verdict + why);
  }
}

const char* state_text(char state) {
  switch (state) {
    case 'R':
      return "R, runs";
    case 'S':
      return "S, sleeps";
    case 'D':
      return "D, waits without being interruptible";
    case 'Z':
      return "Z, has ended, and its parent has not asked how";
    case 'T':
      return "T, stopped";
    case 't':
      return "t, stopped by a debugger";
    case 'I':
      return "I, idle kernel thread";
    case '-':
      return "/proc shows no such process: it has ended, or is hidden";
    default:
      return nullptr;
  }
}

void add_process(Text& text, const Report& report, const ProcessRow& row) {
  const health::ProcessReport& process = *row.process;
  text.heading(fmt::format("Process {}  {}", process.pid, ascii(process.name)), Ink::kBold);
  text.blank();
  text.row("user", process.user.empty() ? "not known" : process.user);
  text.row("parent", process.parent == 0 ? "none" : std::to_string(process.parent));
  if (process.inner_pid) text.row("inner pid", fmt::format("{} in its container", *process.inner_pid));
  if (const std::string job = job_text(process); !job.empty()) text.row("job", job);
  if (!process.container.empty()) text.row("container", process.container);
  const char* const state = state_text(process.state);
  text.row("state", state != nullptr ? state : std::string(1, process.state));
  text.row("age", process.age_s ? duration_text(*process.age_s) : "not known");
  text.row("CPU", process.cpu_share ? percent_text(*process.cpu_share) + " of a core, with what it started" : "-");
  for (const GpuReport* const gpu : row.gpus) {
    for (const health::GpuProcessReport& on : gpu->processes) {
      if (key_of(on.process) != key_of(process)) continue;
      text.row(fmt::format("GPU {}", gpu->index),
               fmt::format("memory {}; cores {}; uses {}", size_text(on.memory_bytes), share_text(on.cores), on.uses));
    }
  }
  text.row("command", process.command.empty() ? "none: a kernel thread, or it has ended" : process.command);
  std::vector<const Finding*> findings;
  for (const Finding& finding : report.findings)
    if (finding.pid == process.pid) findings.push_back(&finding);
  add_findings(text, findings);
}

void add_gpu(Text& text, const Report& report, const GpuReport& gpu) {
  text.heading(fmt::format("GPU {}  {}", gpu.index, ascii(gpu.name)), Ink::kBold);
  text.blank();
  text.row("UUID", gpu.uuid);
  text.row("bus", gpu.bus.empty() ? "not known" : gpu.bus);
  if (!gpu.problem.empty()) text.row("problem", gpu.problem);
  text.row("memory", fmt::format("{} of {} used", size_text(gpu.memory_used), size_text(gpu.memory_total)));
  text.row("cores", share_text(gpu.cores));
  text.row("mem. busy", share_text(gpu.memory));
  text.row("power", fmt::format("{}, limit {}", number_text(gpu.power_w, "W"), number_text(gpu.power_limit_w, "W")));
  text.row("heat", number_text(gpu.temperature_c, "C"));
  text.row("clocks",
           fmt::format("{}, memory {}", number_text(gpu.clock_mhz, "MHz"), number_text(gpu.clock_memory_mhz, "MHz")));
  std::string slowed;
  for (const std::string& reason : gpu.slowed_by) slowed += (slowed.empty() ? "" : ", ") + reason;
  if (!slowed.empty()) text.row("slowed by", slowed);
  text.row("ECC errors", gpu.ecc_uncorrected ? std::to_string(*gpu.ecc_uncorrected) + " uncorrected"
                                             : "not available: " + gpu.ecc_uncorrected.reason);
  if (gpu.remap_failed.value.value_or(0) != 0) text.row("remapping", "of a memory row failed");
  if (gpu.remap_pending.value.value_or(0) != 0) text.row("remapping", "a memory row waits for it");
  std::string xids;
  for (const std::uint64_t xid : gpu.xids) xids += (xids.empty() ? "" : ", ") + std::to_string(xid);
  if (!xids.empty()) text.row("Xids", xids + " since the watch began");
  if (gpu.mig.value_or(false)) text.row("MIG", "on");
  text.blank();
  for (const health::GpuProcessReport& row : gpu.processes) {
    const std::string name = row.process.command.empty() ? "[" + row.process.name + "]" : row.process.command;
    text.row(
        fmt::format("pid {}", row.process.pid),
        fmt::format("{}, {}: {}", row.process.user.empty() ? "?" : row.process.user,
                    row.memory_bytes ? bytes_text(static_cast<double>(*row.memory_bytes)) : "memory not known", name));
  }
  if (gpu.processes.empty()) text.row("processes", "none that is told");
  std::vector<const Finding*> findings;
  for (const Finding& finding : report.findings)
    if (finding.gpu == gpu.index) findings.push_back(&finding);
  add_findings(text, findings);
}

}  // namespace

std::vector<Line> page_lines(const Report& report, const WatchView& view, std::size_t columns) {
  Text text(columns);
  for (const Finding& finding : report.findings) {
    if (key_of(finding) != view.key()) continue;
    add_evidence(text, finding);
    return text.finish();
  }
  for (const GpuReport& gpu : report.gpus) {
    if (key_of(gpu) != view.key()) continue;
    add_gpu(text, report, gpu);
    return text.finish();
  }
  for (const ProcessRow& row : process_rows(report, Sort::kPid, false)) {
    if (key_of(*row.process) != view.key()) continue;
    add_process(text, report, row);
    return text.finish();
  }
  text.blank();
  text.heading(view.key().starts_with("finding") ? "This is not so any more."
                                                 : "It has ended, or is not among the busiest any more.",
               Ink::kPlain);
  return text.finish();
}

std::vector<Line> help_lines(std::size_t columns) {
  Text text(columns);
  text.heading("Keys", Ink::kBold);
  text.blank();
  text.row("Up, Down", "or k, j: move the selection through the three lists; the list follows it");
  text.row("PageUp", "and PageDown, Home, End: a screen of the list up or down, its first, its last");
  text.row("Tab", "the next list; Shift-Tab the one before");
  text.row("Enter", "evidence of the selected finding; all that is known of the selected process or GPU");
  text.row("Esc", "or Enter, Backspace: back");
  text.row("u m c a p", "sort processes by GPU use, VRAM, CPU, age, pid; the same key again: the other way round");
  text.row("h, ?", "this page");
  text.row("^L", "draws the screen anew");
  text.row("q", "ends; ^Z lets the shell have the terminal, fg comes back");
  text.blank();
  text.heading("What is shown", Ink::kBold);
  text.blank();
  text.row("verdicts", "!! critical, ! warning, ? cannot be judged, i a note, ok");
  text.row("shares", "100% is one whole GPU, or one whole core; what is not known is -");
  text.row("time", "rules that need time come to judge as long as this runs; thresholds: --limits, --set");
  text.blank();
  text.row("", "Nothing is changed and nobody is signalled from here.");
  return text.finish();
}

}  // namespace drover::inline v1::cli
