// SPDX-License-Identifier: Apache-2.0
#include "drover/health/report_prometheus.h"

#include <cmath>
#include <cstdio>
#include <set>
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

  /// Of two series with the same labels the first counts: the format allows none twice.
  void add(const Labels& labels, double value) {
    if (!std::isfinite(value) || !seen_.insert(text_of(labels)).second) return;
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
  std::set<std::string> seen_;
};

/// A report, and the labels that all its series get: none, or its node.
struct Part {
  const Report* report;
  Labels labels;

  Labels with(const Labels& more) const {
    Labels all = labels;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};
using Parts = std::vector<Part>;

/// One value of each report.
template <class Value>
std::string hosts_text(const Parts& parts, const char* name, const char* help, const Value& value) {
  Family family(name, help);
  for (const Part& part : parts) family.add(part.labels, value(*part.report));
  return family.text();
}

std::string host_text(const Parts& parts) {
  using Host = const Report&;
  std::string text;
  const auto add = [&](const char* name, const char* help, const auto& value) {
    text += hosts_text(parts, name, help, value);
  };
  add("drover_inspect_time_seconds", "When this was measured, since 1970", [](Host host) { return host.unix_time; });
  add("drover_inspect_window_seconds", "For how long", [](Host host) { return host.window_s; });
  add("drover_cpu_cores", "Cores", [](Host host) { return static_cast<double>(host.cpu.physical); });
  add("drover_cpu_threads", "Hardware threads that are online",
      [](Host host) { return static_cast<double>(host.cpu.logical); });
  add("drover_cpu_busy_ratio", "Busy share of all CPUs", [](Host host) { return host.cpu.busy; });
  add("drover_cpu_iowait_ratio", "Share of the time spent waiting for disks",
      [](Host host) { return host.cpu.iowait; });
  add("drover_cpu_throttled_ratio", "Share of the periods of the CPU quota in which it was used up",
      [](Host host) { return host.cpu.throttled; });
  add("drover_memory_total_bytes", "Memory of the machine",
      [](Host host) { return static_cast<double>(host.memory.total); });
  add("drover_memory_available_bytes", "Memory that can be had without swapping",
      [](Host host) { return static_cast<double>(host.memory.available); });
  add("drover_processes", "Processes that are seen", [](Host host) { return static_cast<double>(host.processes); });
  return text;
}

/// One value of each GPU.
template <class Value>
std::string gpus_text(const Parts& parts, const char* name, const char* help, const Value& value) {
  Family family(name, help);
  for (const Part& part : parts) {
    for (const GpuReport& gpu : part.report->gpus) {
      family.add(part.with({{"gpu", std::to_string(gpu.index)}, {"uuid", gpu.uuid}, {"name", gpu.name}}), value(gpu));
    }
  }
  return family.text();
}

std::string gpu_text(const Parts& parts) {
  using Gpu = const GpuReport&;
  std::string text;
  const auto add = [&](const char* name, const char* help, const auto& value) {
    text += gpus_text(parts, name, help, value);
  };
  add("drover_gpu_up", "1: the GPU answers", [](Gpu gpu) { return gpu.problem.empty() ? 1.0 : 0.0; });
  add("drover_gpu_memory_total_bytes", "Memory", [](Gpu gpu) { return gpu.memory_total; });
  add("drover_gpu_memory_used_bytes", "Memory in use", [](Gpu gpu) { return gpu.memory_used; });
  add("drover_gpu_busy_ratio", "Busy share of the cores", [](Gpu gpu) { return gpu.cores; });
  add("drover_gpu_memory_busy_ratio", "Busy share of the memory", [](Gpu gpu) { return gpu.memory; });
  add("drover_gpu_power_watts", "Power", [](Gpu gpu) { return gpu.power_w; });
  add("drover_gpu_power_limit_watts", "Limit of the power", [](Gpu gpu) { return gpu.power_limit_w; });
  add("drover_gpu_temperature_celsius", "Temperature", [](Gpu gpu) { return gpu.temperature_c; });
  add("drover_gpu_ecc_uncorrected_errors", "Uncorrected memory errors since the driver was loaded",
      [](Gpu gpu) { return gpu.ecc_uncorrected; });
  add("drover_gpu_processes", "Processes on the GPU",
      [](Gpu gpu) { return static_cast<double>(gpu.processes.size()); });
  return text;
}

Labels labels_of(const Finding& finding, int number, bool with_node) {
  Labels labels;
  if (with_node) labels.emplace_back("node", finding.node);
  labels.insert(labels.end(), {{"number", std::to_string(number)},
                               {"rule", to_text(finding.rule)},
                               {"severity", to_text(finding.severity)},
                               {"confidence", to_text(finding.confidence)},
                               {"verdict", finding.verdict},
                               {"gpu", finding.gpu ? std::to_string(*finding.gpu) : ""},
                               {"pid", finding.pid ? std::to_string(*finding.pid) : ""},
                               {"user", finding.user},
                               {"job", finding.job}});
  return labels;
}

std::string findings_text(const std::vector<Finding>& all, bool with_node) {
  Family counts("drover_findings", "Findings by severity");
  Family findings("drover_finding", "A finding; the value is the time in seconds for which it is known to hold");
  for (const Severity severity : {Severity::kInfo, Severity::kUnknown, Severity::kWarning, Severity::kCritical}) {
    double count = 0;
    for (const Finding& finding : all) count += finding.severity == severity ? 1 : 0;
    counts.add({{"severity", to_text(severity)}}, count);
  }
  int number = 0;
  for (const Finding& finding : all) findings.add(labels_of(finding, number++, with_node), finding.held_s.value_or(0));
  return counts.text() + findings.text();
}

std::string exit_code_text(int code) {
  Family family("drover_inspect_exit_code", "0 ok, 1 warning, 2 critical, 3 unknown");
  family.add({}, code);
  return family.text();
}

}  // namespace

std::string to_prometheus(const Report& report) {
  const Parts parts = {{&report, {}}};
  return exit_code_text(report.exit_code()) + host_text(parts) + gpu_text(parts) +
         findings_text(report.findings, false);
}

std::string to_prometheus(const MergedReport& merged) {
  Parts parts;
  Family up("drover_node_up", "1: there is a report of the node");
  for (const MergedNode& node : merged.nodes) {
    up.add({{"node", node.name}}, node.report ? 1 : 0);
    if (node.report) parts.push_back({&*node.report, {{"node", node.name}}});
  }
  return exit_code_text(merged.exit_code()) + up.text() + host_text(parts) + gpu_text(parts) +
         findings_text(merged.findings, true);
}

}  // namespace drover::inline v1::health
