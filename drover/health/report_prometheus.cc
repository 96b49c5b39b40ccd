// SPDX-License-Identifier: Apache-2.0
#include "drover/health/report_prometheus.h"

#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

#include "drover/os/terminal.h"

namespace drover::inline v1::health {
namespace {

using Labels = std::vector<std::pair<const char*, std::string>>;

/// As the format wants it: a backslash before \ and ", and no line ends, which sanitize() has taken out.
std::string quoted(const std::string& value) {
  std::string result;
  for (const char c : os::sanitize(value)) {
    if (c == '\\' || c == '"') result += '\\';
    result += c;
  }
  return result;
}

std::string text_of(const Labels& labels) {
  std::string text;
  for (const auto& [name, value] : labels) {
    text += text.empty() ? "{" : ",";
    text.append(name).append("=\"").append(quoted(value)).append("\"");
  }
  return text.empty() ? text : text + "}";
}

/// One metric with all its series: the format wants them together, behind their description.
class Family {
 public:
  Family(const char* name, const char* help) : name_(name), help_(help) {}

  void add(const Labels& labels, double value) {
    if (!std::isfinite(value)) return;
    char number[40];
    std::snprintf(number, sizeof number, " %.15g\n", value);
    series_.append(name_).append(text_of(labels)).append(number);
  }
  template <class T>
  void add(const Labels& labels, const Maybe<T>& value) {
    if (value) add(labels, static_cast<double>(*value));
  }
  std::string text() const {
    if (series_.empty()) return {};
    return std::string("# HELP ") + name_ + " " + help_ + "\n# TYPE " + name_ + " gauge\n" + series_;
  }

 private:
  const char *name_, *help_;
  std::string series_;
};

std::string single(const char* name, const char* help, double value) {
  Family family(name, help);
  family.add({}, value);
  return family.text();
}
template <class T>
std::string single(const char* name, const char* help, const Maybe<T>& value) {
  return value ? single(name, help, static_cast<double>(*value)) : std::string();
}

std::string host_text(const Report& report) {
  const CpuReport& cpu = report.cpu;
  const MemoryReport& memory = report.memory;
  std::string text;
  text += single("drover_cpu_cores", "Cores", static_cast<double>(cpu.physical));
  text += single("drover_cpu_threads", "Hardware threads that are online", static_cast<double>(cpu.logical));
  text += single("drover_cpu_busy_ratio", "Busy share of all CPUs", cpu.busy);
  text += single("drover_cpu_iowait_ratio", "Share of the time spent waiting for disks", cpu.iowait);
  text += single("drover_cpu_throttled_ratio", "Share of the time in which the quota was used up", cpu.throttled);
  text += single("drover_memory_total_bytes", "Memory of the machine", static_cast<double>(memory.total));
  text += single("drover_memory_available_bytes", "Memory that can be had without swapping",
                 static_cast<double>(memory.available));
  return text + single("drover_processes", "Processes that are seen", static_cast<double>(report.processes));
}

Labels labels_of(const GpuReport& gpu) {
  return {{"gpu", std::to_string(gpu.index)}, {"uuid", gpu.uuid}, {"name", gpu.name}};
}

/// One value of each GPU.
template <class Value>
std::string gpus_text(const Report& report, const char* name, const char* help, const Value& value) {
  Family family(name, help);
  for (const GpuReport& gpu : report.gpus) family.add(labels_of(gpu), value(gpu));
  return family.text();
}

std::string gpu_text(const Report& report) {
  using Gpu = const GpuReport&;
  std::string text;
  text +=
      gpus_text(report, "drover_gpu_up", "1: the GPU answers", [](Gpu gpu) { return gpu.problem.empty() ? 1.0 : 0.0; });
  text += gpus_text(report, "drover_gpu_memory_total_bytes", "Memory", [](Gpu gpu) { return gpu.memory_total; });
  text += gpus_text(report, "drover_gpu_memory_used_bytes", "Memory in use", [](Gpu gpu) { return gpu.memory_used; });
  text += gpus_text(report, "drover_gpu_busy_ratio", "Busy share of the cores", [](Gpu gpu) { return gpu.cores; });
  text +=
      gpus_text(report, "drover_gpu_memory_busy_ratio", "Busy share of the memory", [](Gpu gpu) { return gpu.memory; });
  text += gpus_text(report, "drover_gpu_power_watts", "Power", [](Gpu gpu) { return gpu.power_w; });
  text += gpus_text(report, "drover_gpu_power_limit_watts", "Limit of the power",
                    [](Gpu gpu) { return gpu.power_limit_w; });
  text += gpus_text(report, "drover_gpu_temperature_celsius", "Temperature", [](Gpu gpu) { return gpu.temperature_c; });
  text +=
      gpus_text(report, "drover_gpu_ecc_uncorrected_errors", "Uncorrected memory errors since the driver was loaded",
                [](Gpu gpu) { return gpu.ecc_uncorrected; });
  return text + gpus_text(report, "drover_gpu_processes", "Processes on the GPU",
                          [](Gpu gpu) { return static_cast<double>(gpu.processes.size()); });
}

std::string findings_text(const Report& report) {
  Family counts("drover_findings", "Findings by severity");
  Family findings("drover_finding", "A finding; the value is the time in seconds for which it is known to hold");
  for (const Severity severity : {Severity::kInfo, Severity::kUnknown, Severity::kWarning, Severity::kCritical}) {
    double count = 0;
    for (const Finding& finding : report.findings) count += finding.severity == severity ? 1 : 0;
    counts.add({{"severity", to_text(severity)}}, count);
  }
  int number = 0;
  for (const Finding& finding : report.findings) {
    findings.add({{"number", std::to_string(number++)},
                  {"rule", to_text(finding.rule)},
                  {"severity", to_text(finding.severity)},
                  {"confidence", to_text(finding.confidence)},
                  {"verdict", finding.verdict},
                  {"gpu", finding.gpu ? std::to_string(*finding.gpu) : ""},
                  {"pid", finding.pid ? std::to_string(*finding.pid) : ""},
                  {"user", finding.user},
                  {"job", finding.job}},
                 finding.held_s.value_or(0));
  }
  return counts.text() + findings.text();
}

}  // namespace

std::string to_prometheus(const Report& report) {
  return single("drover_inspect_exit_code", "0 ok, 1 warning, 2 critical, 3 unknown", report.exit_code()) +
         single("drover_inspect_time_seconds", "When this was measured, since 1970", report.unix_time) +
         single("drover_inspect_window_seconds", "For how long", report.window_s) + host_text(report) +
         gpu_text(report) + findings_text(report);
}

}  // namespace drover::inline v1::health
