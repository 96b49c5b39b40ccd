// SPDX-License-Identifier: Apache-2.0
#include "drover/cli/watch_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "drover/health/thresholds.h"

namespace drover::inline v1::cli {
namespace {

using health::bytes_text;
using health::Finding;
using health::GpuReport;
using health::Maybe;
using health::percent_text;
using health::ProcessReport;
using health::Report;
using health::Severity;

std::string percent(const std::optional<double>& share) {
  return share ? fmt::format("{:.0f}%", 100 * *share) : std::string("-");
}
std::string whole(const Maybe<double>& value) { return value ? fmt::format("{:.0f}", *value) : std::string("-"); }
std::string amount(std::uint64_t bytes) { return bytes_text(static_cast<double>(bytes)); }

/// Cells of a bar: more where the window is wide.
std::size_t cells_for(std::size_t columns, std::size_t at_80) {
  if (columns < 80) return std::max<std::size_t>(4, at_80 - std::min(at_80, (80 - columns) / 4));
  return std::min<std::size_t>(at_80 + (columns - 80) / 6, 4 * at_80);
}

Ink fill_ink(double share) { return share >= 0.95 ? Ink::kCritical : share >= 0.85 ? Ink::kWarning : Ink::kBusy; }

const char* glyph(const Finding* finding) {
  if (finding == nullptr) return "ok";
  switch (finding->severity) {
    case Severity::kCritical:
      return "!!";
    case Severity::kWarning:
      return "!";
    case Severity::kUnknown:
      return "?";
    case Severity::kInfo:
      break;
  }
  return "i";
}

/// Where there is no room for all of it, what stands before the comma says enough: "SPINNING".
void add_verdict(Line& line, const Finding* finding, std::size_t columns) {
  line.add(glyph(finding), finding == nullptr ? Ink::kGood : ink_of(finding->severity));
  if (finding == nullptr) return;
  std::string verdict = ascii(finding->verdict);
  if (line.width() + 1 + verdict.size() > columns) verdict = verdict.substr(0, verdict.find(','));
  line.add(" " + verdict, ink_of(finding->severity));
}

std::string users_of(const GpuReport& gpu) {
  std::set<std::string> users;
  for (const health::GpuProcessReport& row : gpu.processes) {
    if (!row.process.user.empty()) users.insert(row.process.user);
  }
  if (users.empty()) return gpu.processes.empty() ? "-" : "?";
  const std::string first = ascii(*users.begin());
  return users.size() == 1 ? first : shortened(first, 6) + fmt::format("+{}", users.size() - 1);
}

/// Where the columns of the table of GPUs begin.
struct GpuColumns {
  explicit GpuColumns(std::size_t columns)
      : cells(cells_for(columns, 10)),
        memory(5 + cells + 2 + 5 + 1),
        watts(memory + cells + 2 + 12 + 1),
        celsius(watts + 4),
        user(celsius + 4),
        name(user + 10),
        verdict(columns >= 130 ? name + 27 : name) {}
  std::size_t cells, memory, watts, celsius, user, name, verdict;
};

Line gpu_heading(std::size_t columns) {
  const GpuColumns at(columns);
  Line line(" GPU cores");
  line.to(at.memory).add("memory");
  line.to(at.watts).add("  W").to(at.celsius).add("  C").to(at.user).add("user");
  if (at.verdict != at.name) line.to(at.name).add("model");
  return line.to(at.verdict).add("verdict");
}

Line gpu_row(const Report& report, const GpuReport& gpu, std::size_t columns) {
  const GpuColumns at(columns);
  Line line(fmt::format("{:>4} ", gpu.index));
  const Finding* const finding = worst_finding(report, gpu);
  if (!gpu.problem.empty()) {
    line.add(shortened(ascii(gpu.problem), at.verdict - 6), Ink::kCritical).to(at.verdict);
    add_verdict(line, finding, columns);
    return line;
  }
  line.add(bar(gpu.cores.value.value_or(0), at.cells), Ink::kGood).add(fmt::format("{:>5}", percent(gpu.cores.value)));
  const double total = static_cast<double>(gpu.memory_total.value.value_or(0));
  const double used = static_cast<double>(gpu.memory_used.value.value_or(0));
  const double share = total > 0 ? used / total : 0;
  line.to(at.memory).add(bar(share, at.cells), fill_ink(share));
  line.add(gpu.memory_used && total > 0 ? fmt::format("{:>6}/{}", short_bytes(used), short_bytes(total)) : "     -");
  line.to(at.watts).add(fmt::format("{:>3}", whole(gpu.power_w)));
  line.to(at.celsius).add(fmt::format("{:>3}", whole(gpu.temperature_c)));
  line.to(at.user).add(shortened(users_of(gpu), 9));
  if (at.verdict != at.name) line.to(at.name).add(shortened(ascii(gpu.name), 26));
  line.to(at.verdict);
  add_verdict(line, finding, columns);
  return line;
}

std::string subject_of(const Finding& finding) {
  std::string text;
  if (finding.gpu) text += fmt::format("GPU {} ", *finding.gpu);
  if (finding.pid) text += fmt::format("pid {} ", *finding.pid);
  return text + ascii(finding.user);
}

Line finding_row(const Finding& finding, std::size_t columns) {
  const std::size_t wide = columns >= 110 ? 1 : 0;
  Line line(" ");
  line.add(short_word(finding.severity), ink_of(finding.severity)).to(6);
  line.add(shortened(ascii(finding.verdict), wide != 0 ? 28 : 22), ink_of(finding.severity)).to(wide != 0 ? 36 : 29);
  line.add(shortened(subject_of(finding), wide != 0 ? 32 : 23)).to(wide != 0 ? 70 : 53);
  if (!finding.because.empty())
    line.add(shortened(ascii(finding.because.front()), columns > line.width() ? columns - line.width() : 0));
  return line;
}

std::string gpus_of(const ProcessRow& row) {
  std::string text;
  for (const GpuReport* const gpu : row.gpus) text += (text.empty() ? "" : ",") + std::to_string(gpu->index);
  return text.empty() ? "-" : text;
}

std::string command_of(const ProcessReport& process) {
  if (process.state == '-') return "(not in /proc)";
  return process.command.empty() ? "[" + ascii(process.name) + "]" : ascii(process.command);
}

/// Widths of the table of processes. Without a GPU there are no columns for it.
struct ProcessColumns {
  ProcessColumns(const Report& report, std::size_t columns)
      : user(columns >= 110 ? 14 : 9), gpus(columns >= 110 ? 16 : 7), has_gpus(!report.gpus.empty()) {}
  std::size_t user, gpus;
  bool has_gpus;
};

Line process_row(const Report& report, const ProcessRow& row, std::size_t columns) {
  const ProcessReport& process = *row.process;
  const ProcessColumns wide(report, columns);
  const Finding* const finding = worst_finding(report, process.pid);
  Line line(fmt::format("{:>8} {:<{}} {} {:>5} ", process.pid, shortened(ascii(process.user), wide.user), wide.user,
                        shortened(ascii(std::string(1, process.state)), 1),
                        process.age_s ? short_time(*process.age_s) : "-"));
  if (wide.has_gpus)
    line.add(fmt::format("{:<{}} {:>6} {:>5} ", shortened(gpus_of(row), wide.gpus), wide.gpus,
                         row.memory ? short_bytes(static_cast<double>(*row.memory)) : "-", percent(row.cores)));
  line.add(fmt::format("{:>6} ", percent(process.cpu_share)));
  const std::size_t mark = line.width();
  if (finding != nullptr) line.add(glyph(finding), ink_of(finding->severity));
  return line.to(mark + 3).add(command_of(process));
}

Line process_heading(const Report& report, const WatchView& view, std::size_t columns) {
  const ProcessColumns wide(report, columns);
  const auto named = [&](Sort sort, const char* text) {  // the column that decides is marked
    return view.sort() == sort ? std::string(view.reversed() ? "^" : "*") + text : std::string(text);
  };
  Line line(
      fmt::format("{:>8} {:<{}} S {:>5} ", named(Sort::kPid, "pid"), "user", wide.user, named(Sort::kAge, "age")));
  if (wide.has_gpus)
    line.add(
        fmt::format("{:<{}} {:>6} {:>5} ", "GPUs", wide.gpus, named(Sort::kMemory, "VRAM"), named(Sort::kGpu, "GPU")));
  return line.add(fmt::format("{:>6}    command", named(Sort::kCpu, "CPU")));
}

}  // namespace

PanelText panel_text(const Report& report, const WatchView& view, Panel panel, std::size_t columns) {
  PanelText text;
  if (panel == Panel::kGpus) {
    text.heading = gpu_heading(columns);
    for (const GpuReport& gpu : report.gpus) text.rows.push_back(gpu_row(report, gpu, columns));
  } else if (panel == Panel::kFindings) {
    text.heading = Line(" Findings, the worst first");
    for (const Finding& finding : report.findings) text.rows.push_back(finding_row(finding, columns));
    if (text.rows.empty()) text.rows.emplace_back(" none", Ink::kGood);
  } else {
    text.heading = process_heading(report, view, columns);
    for (const ProcessRow& row : process_rows(report, view.sort(), view.reversed()))
      text.rows.push_back(process_row(report, row, columns));
    if (text.rows.empty()) text.rows.emplace_back(" nobody is busy", Ink::kFaint);
  }
  return text;
}

Line cpu_line(const health::CpuReport& cpu, std::size_t columns) {
  Line line(" CPU ");
  line.add(bar(cpu.busy.value.value_or(0), cells_for(columns, 20)), Ink::kGood);
  line.add(fmt::format("{:>5}  load {:.2f} on {} cores, {} threads", percent(cpu.busy.value), cpu.load1, cpu.physical,
                       cpu.logical));
  if (cpu.quota) {
    line.add(fmt::format(", quota {:.2f}", *cpu.quota));
  } else if (cpu.allowed != 0 && cpu.allowed < cpu.logical) {
    line.add(fmt::format(", {} allowed", cpu.allowed));
  }
  if (cpu.throttled && *cpu.throttled > 0) line.add(", quota used up " + percent_text(*cpu.throttled), Ink::kWarning);
  if (cpu.iowait && *cpu.iowait >= 0.01) line.add(", disks " + percent_text(*cpu.iowait));
  if (cpu.steal && *cpu.steal >= 0.01) line.add(", stolen " + percent_text(*cpu.steal));
  return line;
}

Line core_line(const health::CpuReport& cpu, std::size_t columns) {
  Line line;
  constexpr std::size_t kBegin = 5;
  if (cpu.each.size() < 2 || columns <= kBegin + 8) return line;
  std::string loads;
  for (const std::optional<double>& load : cpu.each) {
    if (!load) {
      loads += '-';
    } else {
      loads += *load < 0.05    ? '.'
               : *load >= 0.95 ? '#'
                               : static_cast<char>('0' + std::min(9, static_cast<int>(*load * 10 + 0.5)));
    }
  }
  line.to(kBegin).add(" ").add(loads, Ink::kGood);
  if (line.width() + 34 <= columns) line.add("  each thread: . idle, 5 half, # busy", Ink::kFaint);
  return line;
}

Line memory_line(const health::MemoryReport& memory, std::size_t columns) {
  std::uint64_t used = memory.total - std::min(memory.total, memory.available), whole = memory.total;
  const bool limited = memory.limit && *memory.limit < memory.total;
  if (limited) {
    whole = *memory.limit;
    used = memory.limit_used.value_or(0);
  }
  const double share = whole > 0 ? static_cast<double>(used) / static_cast<double>(whole) : 0;
  Line line(" Mem ");
  line.add(bar(share, cells_for(columns, 20)), fill_ink(share));
  line.add(fmt::format("{:>5}  {} of {}", percent(share), amount(used), amount(whole)));
  if (limited) line.add(" (cgroup), machine " + amount(memory.total));
  if (memory.swap_total > 0)
    line.add(fmt::format(", swap {} of {}", amount(memory.swap_total - std::min(memory.swap_total, memory.swap_free)),
                         amount(memory.swap_total)));
  if (memory.pressure && (*memory.pressure).some10 >= 0.01)
    line.add(", waited for " + percent_text((*memory.pressure).some10), Ink::kWarning);
  return line;
}

Line note_line(const Report& report, std::size_t columns) {
  const std::string more =
      report.warnings.size() > 1 ? fmt::format(" (and {} more)", report.warnings.size() - 1) : std::string();
  const std::size_t room = columns > 8 + more.size() ? columns - 8 - more.size() : columns;
  return Line(" Note: " + shortened(ascii(report.warnings.front()), room) + more, Ink::kUnknown);
}

}  // namespace drover::inline v1::cli
