// SPDX-License-Identifier: Apache-2.0
#include "drover/health/engine.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <optional>

#include "drover/base/errors.h"
#include "drover/health/history.h"
#include "drover/health/rules/rules.h"
#include "drover/health/scenario/scenario_source.h"
#include "drover/os/host_files.h"
#include "drover/os/self.h"

namespace drover::inline v1::health {
namespace {

constexpr double kGlance = 0.2;      // the kernel's clocks count in hundredths of a second
constexpr double kLongestLook = 10;  // seconds
constexpr double kMostSamples = 100'000;

double interval_of(const EngineOptions& options) {
  if (options.interval_s > 0) return options.interval_s;
  return options.window_s > 0 ? std::clamp(options.window_s / 60, std::min(1.0, options.window_s), 10.0) : kGlance;
}

/// Whether it is worth the while to look at all descriptors: something holds memory that nobody accounts for.
bool wants_holders(const Sample& sample, const Tracker& tracker) {
  for (const GpuSample& gpu : sample.driver.gpus) {
    const GpuTrack* const track = tracker.gpu(gpu.uuid);
    if (track != nullptr && (track->unattributed.holds() || !track->outlived.empty())) return true;
    for (const GpuProcessRow& row : gpu.rows) {
      const ProcessBrief* const process = find_process(sample.host, row.pid);
      if (process == nullptr || process->state == 'Z') return true;
    }
  }
  return false;
}

/// Shells in which a person may work beside a process on a GPU, in its container or job: the leaders of their sessions
/// first, as most of those are, where there are more than anybody needs to look at.
void add_shells(const HostSample& host, std::set<int>& pids) {
  constexpr std::size_t kMost = 128;
  std::vector<const ProcessBrief*> shells;
  for (const ProcessBrief& process : host.processes) {
    if (is_terminal(process, nullptr)) shells.push_back(&process);  // by its name alone
  }
  std::stable_partition(shells.begin(), shells.end(), [](const auto* shell) { return shell->session == shell->pid; });
  shells.resize(std::min(shells.size(), kMost));
  for (const ProcessBrief* const shell : shells) pids.insert(shell->pid);
}

/// What else the program of a process on a GPU has started, as a web server that asks it.
void add_brothers(const HostSample& host, const std::set<int>& on_gpus, std::set<int>& pids) {
  constexpr std::size_t kMost = 32;
  constexpr int kLevels = 3;
  std::set<int> programs;
  for (const int pid : on_gpus) {
    const ProcessBrief* const process = find_process(host, pid);
    if (process == nullptr) continue;
    for (const ProcessBrief& above : Ancestors(host, *process, kLevels)) {
      const ProcessDetail* const detail = find_detail(host, above.pid);
      if (above.pid == 1 || is_reaper(host, above.pid, true) || is_launcher(above, detail) ||
          is_terminal(above, detail))
        break;
      programs.insert(above.pid);
    }
  }
  std::size_t left = kMost;
  for (const ProcessBrief& process : host.processes) {
    if (left == 0) break;
    if (programs.count(process.parent) != 0 && on_gpus.count(process.pid) == 0 && pids.insert(process.pid).second)
      --left;
  }
}

/// Who is no ancestor of a process on a GPU, and yet says what that is, or what ends with it.
std::set<int> beside_gpus(const Sample& sample) {
  std::set<int> on_gpus, pids;
  for (const GpuSample& gpu : sample.driver.gpus) {
    for (const GpuProcessRow& row : gpu.rows) on_gpus.insert(row.pid);
  }
  if (on_gpus.empty()) return pids;
  add_shells(sample.host, pids);
  add_brothers(sample.host, on_gpus, pids);
  return pids;
}

/// First what stops most: severity, then the rule, then GPU and pid.
bool before(const Finding& a, const Finding& b) {
  if (a.severity != b.severity) return a.severity > b.severity;
  if (a.confidence != b.confidence) return a.confidence > b.confidence;
  if (a.rule != b.rule) return a.rule < b.rule;
  if (a.gpu != b.gpu) return a.gpu < b.gpu;
  return a.pid < b.pid;
}

void mark_reported(Tracker& tracker, const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    if (finding.severity < Severity::kWarning || !finding.pid) continue;
    for (auto& [key, track] : tracker.processes()) {
      if (key.first != *finding.pid) continue;
      track.stuck.reported = track.stuck.holds();
      track.blocked.reported = track.blocked.holds();
    }
    for (auto& [key, hold] : tracker.holds()) {
      if (key.second.first == *finding.pid) hold.spinning.reported = hold.spinning.holds();
    }
  }
}

void describe_driver(Report& report, const DriverSample& driver) {
  static constexpr const char* kStates[] = {"no_gpu",        "ok",      "no_library", "not_loaded",    "mismatch",
                                            "no_permission", "blocked", "asleep",     "not_answering", "failed",
                                            "gpu_fault"};
  report.driver.state = kStates[static_cast<int>(driver.state)];
  report.driver.version = driver.version;
  if (driver.cuda > 0)
    report.driver.cuda = std::to_string(driver.cuda / 1000) + "." + std::to_string(driver.cuda % 1000 / 10);
  report.driver.problem = driver.problem;
  report.driver.log_problem = driver.log_problem;
  if (!driver.problem.empty()) report.warnings.push_back(driver.problem);
}

}  // namespace

Report conclude(Source& source, const Thresholds& limits, Tracker& tracker, const Looks& looks) {
  Report report;
  Sample& last = looks.last;
  report.once = looks.once;
  report.container = source.container();
  report.unknown_counts = limits[Limit::kUnknownExit] != 0;
  report.samples = looks.count;
  report.window_s = looks.window_s;
  const HolderScan holders = wants_holders(last, tracker) ? looks.holders(last) : HolderScan();

  source.describe(report, looks.first, last, last.at - looks.first.at);
  describe_driver(report, last.driver);
  if (last.host.stuck_left_out > 0)
    report.warnings.push_back(std::to_string(last.host.stuck_left_out) +
                              " more processes are in uninterruptible sleep than are looked at: whether one of them "
                              "is stuck in a driver is not known");
  describe_processes(report, looks.first, last, source, looks.most_busy);
  describe_gpus(report, last, tracker, source);
  source.describe_processes(last, beside_gpus(last));
  const Scene scene{
      last,        tracker,          holders,         limits,
      report.once, report.container, report.window_s, [&](std::uint32_t uid) { return source.user(uid); }};
  report.findings = judge(scene);
  judge_host(report, limits, report.findings);
  std::stable_sort(report.findings.begin(), report.findings.end(), before);
  for (const LimitInfo& info : Thresholds::table()) report.limits.push_back(limits.text(info.limit));
  mark_reported(tracker, report.findings);
  return report;
}

void add_unsaved(Report& report, const std::string& why) {
  Finding finding;
  finding.severity = Severity::kUnknown;
  finding.confidence = Confidence::kHigh;
  finding.verdict = "HISTORY NOT SAVED";
  finding.because = {why, "what needs several looks cannot be judged by the next one"};
  finding.action = {"make room for the history, or give --history a file that can be written"};
  report.findings.push_back(std::move(finding));
  std::stable_sort(report.findings.begin(), report.findings.end(), before);
}

Report run_inspection(Source& source, const Thresholds& limits, const EngineOptions& options) {
  const bool once = options.window_s <= 0;
  const bool container = source.container();
  Tracker tracker(limits);
  std::optional<History> history;
  GpuSeries series;
  if (!options.history.empty()) history.emplace(options.history, source.boot(), tracker, series);

  const double interval = interval_of(options);
  const int count =
      1 + static_cast<int>(std::min(kMostSamples, std::ceil(std::max(options.window_s, interval) / interval - 1e-9)));
  const auto exists = [&](int pid) { return source.exists(pid); };
  std::optional<Sample> first;
  Sample last;
  const double begin = source.now();
  for (int i = 0; i < count; ++i) {
    source.wait(begin + i * interval);
    last = source.sample(tracker.watched(), !once || i + 1 == count);
    tracker.add(last, container, exists);
    add_points(series, last, std::max(1.0, options.window_s / kSeriesPoints));
    if (!first) first = last;
  }
  Report report = conclude(source, limits, tracker,
                           {.first = *first,
                            .last = last,
                            .count = count,
                            .window_s = last.at - first->at,
                            .once = once,
                            .holders = [&](Sample& sample) { return source.holders(sample); }});
  describe_series(report, series, last.at);
  try {
    if (history) history->save(tracker, series, last.at);
  } catch (const std::exception& error) {  // what was found is worth more, but the next look will know less
    add_unsaved(report, error.what());
  }
  return report;
}

Thresholds limits_of(const Scenario& scenario, const std::vector<std::string>& set) {
  Thresholds limits;
  for (const std::string& assignment : scenario.settings()) limits.set(assignment);
  for (const std::string& assignment : set) limits.set(assignment);
  return limits;
}

Report play(const Scenario& scenario, const std::vector<std::string>& set) {
  const auto source = scenario_source(scenario);
  return run_inspection(*source, limits_of(scenario, set),
                        {.window_s = scenario.window(), .interval_s = 0, .history = {}});
}

void check(const InspectOptions& options) {
  const double window = options.window.count(), interval = options.interval.count();
  if (!(window >= 0 && window <= 7 * 86'400)) throw InvalidArgument("inspect: the window must be from 0 s to 7 days");
  if (!(interval >= 0 && interval <= 3600) || (interval > 0 && interval < 0.05)) {
    throw InvalidArgument("inspect: the interval must be from 0.05 s to an hour");
  }
  if (!(options.deadline.count() >= 0.1 && options.deadline.count() <= 25)) {
    throw InvalidArgument("inspect: the deadline of the driver must be from 0.1 s to 25 s");
  }
  for (const std::string& assignment : options.set) {
    if (assignment.substr(0, assignment.find('=')) == "r1.call")
      throw InvalidArgument("inspect: r1.call is the deadline of the driver: give --deadline instead of --set r1.call");
  }
}

void check_inspection(const InspectOptions& options) {
  check(options);
  const double window = options.window.count(), interval = options.interval.count();
  if (window > 0 && interval > window)
    throw InvalidArgument("inspect: the interval (" + duration_text(interval) + ") is longer than the window (" +
                          duration_text(window) + "), so there would be no second look in it; give a shorter one");
  if (window <= 0 && interval > kLongestLook)
    throw InvalidArgument("inspect: without a window the interval is the length of the one look, at most " +
                          duration_text(kLongestLook) + "; to watch for longer give a window (--window)");
}

Thresholds limits_of(const InspectOptions& options) {
  check(options);
  Thresholds limits;
  for (const std::string& assignment : options.set) limits.set(assignment);
  limits.set(Limit::kR1Call, options.deadline.count());
  return limits;
}

Scenario demo_scenario(const std::string& name) {
  for (const Situation& situation : situations()) {
    if (name == situation.name) return Scenario::parse(situation.name, situation.text);
  }
  throw InvalidArgument("there is no situation '" + name + "'; --demo list shows all");
}

Report inspect(const InspectOptions& options) {
  check_inspection(options);
  if (!options.demo.empty()) return play(demo_scenario(options.demo), options.set);
  const Thresholds limits = limits_of(options);
  os::require_descriptors(kDescriptors);
  const auto source = system_source({.root = options.root, .deadline = options.deadline, .wake = options.wake});
  Report report = run_inspection(
      *source, limits,
      {.window_s = options.window.count(), .interval_s = options.interval.count(), .history = options.history});
  describe_own_place(report, os::environment());
  return report;
}

std::vector<Demo> demos() {
  std::vector<Demo> result;
  for (const Situation& situation : situations()) {
    result.push_back({situation.name, Scenario::parse(situation.name, situation.text).title()});
  }
  return result;
}

}  // namespace drover::inline v1::health
