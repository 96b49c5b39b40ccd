// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>

#include "benchmarks/harness/measure.h"
#include "benchmarks/harness/report.h"
#include "benchmarks/health/watch_cost.h"
#include "drover/health/health.h"
#include "drover/health/scenario/matrix.h"
#include "tests/health/fixture.h"

namespace {

using namespace bench;
namespace health = drover::health;

struct Options {
  bool json = false;
  bool longer = false;
  std::string only;
};

constexpr double kInterval = 0.2, kDeadline = 0.5;  // seconds

/// Milliseconds that one look takes beyond its interval.
double beyond_interval_ms(const health::InspectOptions& options) {
  health::Report report;
  const double ns = time_ns([&] { report = health::inspect(options); });
  if (report.cpu.logical == 0) throw std::runtime_error("the report knows no CPU");
  return ns * 1e-6 - 1e3 * kInterval;
}

/// 8 GPUs with 32 processes on them, among `processes` in all.
class BusyNode {
 public:
  explicit BusyNode(int processes) {
    std::string gpus, table;
    for (int gpu = 0; gpu < 8; ++gpu) gpus += fmt::format("gpu {} power=300 pcie=100\n", gpu);
    for (int pid = 1000; pid < 1000 + processes; ++pid) {
      table +=
          fmt::format("proc {} ppid={} name=task cmd=\"task --number {}\" state=S\n", pid, pid < 1064 ? 1 : 1000, pid);
      if (pid < 1032) gpus += fmt::format("on {} {} vram=2 sm=20 mem=10\n", pid % 8, pid);
    }
    machine_.write_host(false);
    machine_.write_world(health::Scenario::parse("bench", gpus + table).at(0));
    machine_.use_driver(gpus);
  }
  double look_ms() {
    health::InspectOptions options;
    options.root = machine_.root();
    const health::Report report = health::inspect(options);
    if (report.gpus.size() != 8 || report.gpus[0].processes.size() != 4)
      throw std::runtime_error("the GPUs are not seen: " + report.driver.problem);
    return beyond_interval_ms(options);
  }
  const std::string& root() const { return machine_.root(); }

 private:
  drover_test::Machine machine_;
};

/// What a script with psutil needs for less: its own time, without starting Python.
double psutil_ms() {
  std::FILE* const answer = popen(("python3 '" + std::string(PSUTIL_PEER) + "' 2>/dev/null").c_str(), "r");
  double ms = -1;
  const bool told = answer != nullptr && std::fscanf(answer, "%lf", &ms) == 1;
  if (answer != nullptr) pclose(answer);
  if (!told) throw Unavailable("python3 has no psutil here");
  return ms;
}

Figure inspect_once() {
  return {.name = "inspect_once",
          .unit = "ms beyond the interval",
          .drover = [] { return beyond_interval_ms({}); },
          .peers = {{"psutil script", psutil_ms, ratio_at_most(1)}},
          .goal = {},
          .rounds = 5};
}

Figure look_at(const char* name, int processes, double goal) {
  const auto node = std::make_shared<BusyNode>(processes);
  return {.name = name,
          .unit = "ms beyond the interval",
          .drover = [node] { return node->look_ms(); },
          .peers = {},
          .goal = value_at_most(goal),
          .rounds = 5};
}

Figure inspect_idle_goal() {
  return {.name = "inspect_once_goal",
          .unit = "ms beyond the interval",
          .drover = [] { return beyond_interval_ms({}); },
          .peers = {},
          .goal = value_at_most(5),
          .rounds = 7};
}

Figure driver_hangs() {
  const auto machine = std::make_shared<drover_test::Machine>();
  machine->write_host(false);
  return {.name = "driver_hangs",
          .unit = "ms beyond the deadline",
          .drover =
              [machine] {
                machine->write_world(health::Scenario::parse("bench", "gpu 0\ngpu 1\n").at(0));
                machine->use_driver("gpu 0\ngpu 1 stuck=nvmlDeviceGetPowerUsage\n");
                health::InspectOptions options;
                options.root = machine->root();
                options.deadline = drover::Duration(kDeadline);
                health::Report report;
                const double ns = time_ns([&] { report = health::inspect(options); });
                if (report.gpus.size() != 2 || report.gpus[1].problem.empty())
                  throw std::runtime_error("the hang is not reported");
                return ns * 1e-6 - 1e3 * std::max(kDeadline, kInterval);
              },
          .peers = {},
          .goal = value_at_most(100),
          .rounds = 3};
}

Entry counted(const char* name, int count, double goal) {
  return {name, "situations", {}, static_cast<double>(count), {}, {}, {}, {}, value_at_most(goal), count <= goal, {}};
}

Entry taken(const char* name, const char* unit, double value, Goal goal) {
  Entry entry{name, unit, {}, value, {}, {}, {}, {}, goal, {}, {}};
  if (goal.kind == Goal::Kind::kValueAtMost) entry.met = value <= 1.05 * goal.limit;
  return entry;
}

/// The live view over 1,000 processes and 8 GPUs, at one look a second. Sizes are of both processes together.
std::vector<Entry> watch(bool longer) {
  const BusyNode node(1000);
  const WatchCost cost = watch_cost(node.root(), longer ? 60 : 15);
  return {taken("watch_cpu", "% of a core", cost.cpu_percent, value_at_most(1)),
          taken("watch_pss", "MiB", cost.pss_mib, value_at_most(10)), taken("watch_rss", "MiB", cost.rss_mib, shown()),
          taken("watch_drawn", "bytes/s", cost.bytes_a_second, shown())};
}

/// The confusion matrix, ours and that of the naive rule, with what each of them gets wrong.
std::string matrix(std::vector<Entry>& entries) {
  health::Confusion ours, naive;
  std::string wrong;
  for (const health::Outcome& outcome : health::play_all()) {
    ours.add(outcome.problem, outcome.alarm);
    naive.add(outcome.problem, outcome.naive);
    for (const std::string& text : outcome.wrong) wrong += fmt::format("  {}: {}\n", outcome.name, text);
  }
  const auto row = [](const char* name, const health::Confusion& one) {
    return fmt::format("  {:<12} {:>9} {:>8} {:>14} {:>12}\n", name, one.hits, one.misses, one.false_alarms, one.rests);
  };
  entries.push_back(counted("matrix_misses", ours.misses, 0));
  entries.push_back(counted("matrix_false_alarms", ours.false_alarms, 0));
  return fmt::format("\nsituations: {} with a problem, {} without\n  {:<12} {:>9} {:>8} {:>14} {:>12}\n",
                     ours.hits + ours.misses, ours.false_alarms + ours.rests, "rule", "found", "missed", "false alarms",
                     "rightly none") +
         row("drover", ours) + row("naive", naive) + wrong;
}

int run_all(const Options& options) {
  const bench::Machine machine = this_machine();
  const std::pair<const char*, std::function<Figure()>> figures[] = {
      {"inspect_once_goal", inspect_idle_goal},
      {"inspect_once", inspect_once},
      {"inspect_1000", [] { return look_at("inspect_1000", 1000, 20); }},
      {"inspect_20000", [] { return look_at("inspect_20000", 20'000, 300); }},
      {"driver_hangs", driver_hangs}};
  std::vector<Entry> entries;
  bool good = true;
  for (const auto& [name, make] : figures) {
    if (!options.only.empty() && options.only != name) continue;
    try {
      Figure figure = make();
      if (options.longer) figure.rounds *= 3;
      for (Entry& entry : run(figure)) entries.push_back(std::move(entry));
    } catch (const std::exception& error) {
      entries.push_back(Entry{name, "", {}, {}, {}, {}, {}, {}, {}, {}, error.what()});
      good = false;
    }
  }
  if (options.only.empty() || options.only == "watch") {
    try {
      for (Entry& entry : watch(options.longer)) entries.push_back(std::move(entry));
    } catch (const std::exception& error) {
      entries.push_back(Entry{"watch", "", {}, {}, {}, {}, {}, {}, {}, {}, error.what()});
      good = false;
    }
  }
  const std::string table = options.only.empty() || options.only == "matrix" ? matrix(entries) : "";
  if (entries.empty() && table.empty()) {
    fmt::print(stderr, "drover bench health: there is no figure '{}'\n", options.only);
    return 2;
  }
  fmt::print("{}", options.json ? to_json("health", machine, entries) : to_table("health", machine, entries) + table);
  return good ? 0 : 1;
}

}  // namespace

/// Exit status: 0 everything was measured, 1 a figure failed, 2 there is no such figure, else CLI11's for wrong
/// arguments.
int main(int argc, char** argv) {
  CLI::App app("Measures the inspector, and its verdicts against a naive rule's.", "drover bench health");
  Options options;
  app.add_flag("--json", options.json, "Print the report as JSON");
  app.add_option("--only", options.only, "Run this one figure, or watch or matrix");
  app.add_flag("--long", options.longer, "More rounds");
  CLI11_PARSE(app, argc, argv);
  return run_all(options);
}
