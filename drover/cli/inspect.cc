// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "drover/base/errors.h"
#include "drover/cli/command.h"
#include "drover/cli/inspect_text.h"
#include "drover/health/health.h"
#include "drover/health/report_json.h"
#include "drover/health/report_prometheus.h"
#include "drover/health/thresholds.h"
#include "drover/os/terminal.h"

namespace drover::inline v1::cli {
namespace {

constexpr int kUnknown = 3;  // what a monitor takes for "cannot tell"
constexpr std::size_t kCheckLine = 300;

struct Options {
  std::string window, interval, deadline, demo, history, root;
  std::vector<std::string> set;
  bool once = false, json = false, prometheus = false, check = false, wake = false, limits = false;
};

/// "90s", "2m", "1h" or a number of seconds.
Duration to_duration(const char* option, const std::string& text, double otherwise) {
  if (text.empty()) return Duration(otherwise);
  try {
    return Duration(health::parse_quantity(text, health::LimitUnit::kSeconds));
  } catch (const InvalidArgument& error) {
    throw UsageError(fmt::format("{}: {}", option, error.what()));
  }
}

health::InspectOptions to_inspect(const Options& options) {
  health::InspectOptions inspect;
  inspect.window = options.once ? Duration(0) : to_duration("--window", options.window, 0);
  inspect.interval = to_duration("--interval", options.interval, 0);
  inspect.deadline = to_duration("--deadline", options.deadline, 5);
  inspect.set = options.set;
  inspect.history = options.history;
  inspect.wake = options.wake;
  inspect.demo = options.demo;
  inspect.root = options.root;
  return inspect;
}

int list_demos() {
  for (const health::Demo& demo : health::demos()) {
    fmt::print("{}\n",
               wrapped(fmt::format("{:<30} {}", demo.name, demo.title), os::terminal_width(fileno(stdout)), 31));
  }
  return kOk;
}

int list_limits(const Options& options) {
  health::Thresholds limits;
  for (const std::string& assignment : options.set) limits.set(assignment);
  for (const health::LimitInfo& info : health::Thresholds::table())
    fmt::print("{:<22} {}\n", limits.text(info.limit), info.meaning);
  return kOk;
}

int show(const Options& options, const health::Report& report) {
  if (options.json) {
    fmt::print("{}", health::to_json(report));
  } else if (options.prometheus) {
    fmt::print("{}", health::to_prometheus(report));
  } else if (options.check) {
    fmt::print("{}\n", check_line(report, kCheckLine));
  } else {
    const int out = fileno(stdout);
    fmt::print("{}", inspect_text(report, {.columns = os::terminal_width(out), .colour = os::colour_allowed(out)}));
  }
  return report.exit_code();
}

int run(const Options& options) {
  try {
    if (options.limits) return list_limits(options);
    if (options.demo == "list") return list_demos();
    return show(options, health::inspect(to_inspect(options)));
  } catch (const InvalidArgument& error) {
    throw UsageError(error.what());
  } catch (const Interrupted&) {
    throw;
  } catch (const UsageError&) {
    throw;
  } catch (const std::exception& error) {  // 1 would say "a warning"
    fmt::print(stderr, "drover: {}\n", os::sanitize(error.what()));
    if (options.check) fmt::print("UNKNOWN: {}\n", os::sanitize(error.what()));
    return kUnknown;
  }
}

}  // namespace

void add_inspect(CLI::App& app, Action& action) {
  CLI::App& command = *app.add_subcommand("inspect", "Say who holds CPUs and GPUs, what is stuck, and why");
  const auto options = std::make_shared<Options>();
  auto* const once = command.add_flag("--once", options->once, "A single look (the default)");
  command.add_option("--window", options->window, "Watch for so long: 60s, 10m")->type_name("TIME")->excludes(once);
  command.add_option("--interval", options->interval, "Time between two looks of a window")->type_name("TIME");
  command.add_option("--history", options->history, "Let the looks of repeated runs add up in this file")
      ->type_name("FILE");
  command.add_option("--set", options->set, "Move a threshold, as r8.warn=30m")->type_name("NAME=VALUE")->take_all();
  command.add_flag("--limits", options->limits, "List all thresholds");
  command.add_option("--deadline", options->deadline, "Give the GPU driver so long to answer (default: 5s)")
      ->type_name("TIME");
  command.add_flag("--wake", options->wake, "Look also at GPUs that are powered down");
  auto* const json = command.add_flag("--json", options->json, "Print one JSON object (docs/inspect_schema.md)");
  auto* const prometheus =
      command.add_flag("--prometheus", options->prometheus, "Print metrics for Prometheus' textfile collector")
          ->excludes(json);
  command.add_flag("--check", options->check, "Print one line, for monitors and prologs")
      ->excludes(json)
      ->excludes(prometheus);
  command.add_option("--demo", options->demo, "Play a situation; 'list' names all")->type_name("NAME");
  command.add_option("--root", options->root, "Read /proc and /sys below this folder (tests)")
      ->type_name("DIR")
      ->group("");
  command.footer(
      "Exit codes: 0 nothing above a note, 1 a warning, 2 critical (or a wrong command line), 3 something\n"
      "cannot be judged. Nothing is changed and nobody is signalled.");
  command.callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace drover::inline v1::cli
