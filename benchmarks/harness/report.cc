// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/harness/report.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "benchmarks/harness/measure.h"

namespace bench {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json to_json(const Machine& machine) {
  return {{"cpu", machine.cpu},
          {"cores", machine.cores},
          {"kernel", machine.kernel},
          {"compiler", machine.compiler},
          {"load", machine.load}};
}

Json to_json(const Entry& entry) {
  Json json{{"name", entry.name},
            {"value", or_null(entry.value)},
            {"unit", entry.unit},
            {"peer", or_null(entry.peer)},
            {"peer_value", or_null(entry.peer_value)},
            {"ratio", or_null(entry.ratio)},
            {"min", or_null(entry.min)},
            {"max", or_null(entry.max)},
            {"goal", entry.goal.kind == Goal::Kind::kShown ? Json(nullptr) : Json(entry.goal.limit)},
            {"met", or_null(entry.met)}};
  if (!entry.reason.empty()) json["reason"] = entry.reason;
  return json;
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

/// Four digits, whatever the size.
std::string digits(const std::optional<double>& value) {
  if (!value) return "-";
  const double size = *value < 0 ? -*value : *value;
  if (size >= 99'999.5) return fmt::format("{:.3g}", *value);
  return fmt::format("{:.{}f}", *value, size < 10 ? 2 : size < 1000 ? 1 : 0);
}

std::string goal_text(const Goal& goal) {
  switch (goal.kind) {
    case Goal::Kind::kRatioAtMost:
      return fmt::format("<={:g}x", goal.limit);
    case Goal::Kind::kRatioAtLeast:
      return fmt::format(">={:g}x", goal.limit);
    case Goal::Kind::kValueAtMost:
      return fmt::format("<={:g}", goal.limit);
    case Goal::Kind::kShown:
      break;
  }
  return "-";
}

std::string table_row(const Entry& entry) {
  const std::string spread = entry.min ? fmt::format("{}-{}", digits(entry.min), digits(entry.max)) : "-";
  std::string row = fmt::format("  {:<28} {:>7} {:>7} {:>6} {:>12} {:>7} {:>4}\n", entry.peer.value_or("(no peer)"),
                                digits(entry.value), digits(entry.peer_value), digits(entry.ratio), spread,
                                goal_text(entry.goal), entry.met ? (*entry.met ? "yes" : "NO") : "-");
  if (!entry.reason.empty()) row += fmt::format("    not measured: {}\n", entry.reason);
  return row;
}

}  // namespace

Machine this_machine() {
  utsname system{};
  uname(&system);
  Machine machine{cpu_model(), std::string(system.sysname) + " " + system.release, "", allowed_cpus().size(), 0};
#if defined(__clang__)
  machine.compiler = __VERSION__;
#else
  machine.compiler = "g++ " __VERSION__;
#endif
  std::ifstream("/proc/loadavg") >> machine.load;
  return machine;
}

std::string to_json(const std::string& area, const Machine& machine, const std::vector<Entry>& entries) {
  Json report{{"area", area}, {"machine", to_json(machine)}, {"figures", Json::array()}};
  for (const Entry& entry : entries) report["figures"].push_back(to_json(entry));
  return report.dump(2) + "\n";
}

std::string to_table(const std::string& area, const Machine& machine, const std::vector<Entry>& entries) {
  std::string text = fmt::format("{}: {}, {} cores allowed, load {:.1f}\n  {}, {}\n\n", area, machine.cpu,
                                 machine.cores, machine.load, machine.kernel, machine.compiler);
  text += fmt::format("{:<30} {:>7} {:>7} {:>6} {:>12} {:>7} {:>4}\n", "figure, unit, against", "drover", "peer",
                      "ratio", "min-max", "goal", "met");
  std::string heading;
  for (const Entry& entry : entries) {
    const std::string next = entry.name + ", " + entry.unit;
    if (next != heading) text += next + "\n";
    heading = next;
    text += table_row(entry);
  }
  return text;
}

}  // namespace bench
