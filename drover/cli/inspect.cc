// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "drover/base/errors.h"
#include "drover/cli/command.h"
#include "drover/cli/inspect_hosts.h"
#include "drover/cli/inspect_merge.h"
#include "drover/cli/inspect_output.h"
#include "drover/cli/inspect_text.h"
#include "drover/cli/text.h"
#include "drover/cli/validators.h"
#include "drover/cli/watch.h"
#include "drover/health/engine.h"
#include "drover/health/health.h"
#include "drover/health/thresholds.h"
#include "drover/os/terminal.h"

namespace drover::inline v1::cli {
namespace {

struct Options {
  std::string window, interval, deadline, demo, history, root;
  std::vector<std::string> set;
  bool once = false, wake = false, limits = false, watch = false;
  OutputOptions output;
  HostsOptions hosts;
};

Duration to_duration(const char* option, const std::string& text, double otherwise) {
  return Duration(text.empty() ? otherwise : seconds_of(option, text));
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
  std::string text;
  for (const health::Demo& demo : health::demos())
    text += fmt::format("{:<30} {}\n", demo.name, wrapped(demo.title, os::terminal_width(fileno(stdout)), 31));
  print_whole(text);
  return kOk;
}

int list_limits(const Options& options) {
  const health::Thresholds limits = health::limits_of(to_inspect(options));
  std::string text;
  for (const health::LimitInfo& info : health::Thresholds::table())
    text += fmt::format("{:<22} {}\n", limits.text(info.limit), info.meaning);
  print_whole(text);
  return kOk;
}

/// The options that are for each host.
std::vector<std::string> arguments_of(const Options& options) {
  std::vector<std::string> arguments;
  const auto add = [&](const char* option, const std::string& value) {
    if (value.empty()) return;
    arguments.emplace_back(option);
    arguments.push_back(value);
  };
  add("--window", options.window);
  add("--interval", options.interval);
  add("--deadline", options.deadline);
  add("--history", options.history);
  add("--demo", options.demo);
  add("--root", options.root);
  for (const std::string& assignment : options.set) add("--set", assignment);
  if (options.wake) arguments.emplace_back("--wake");
  return arguments;
}

int run_on_hosts(const Options& options) {
  const health::InspectOptions inspect = to_inspect(options);
  return inspect_hosts(options.hosts, arguments_of(options), inspect.window + inspect.deadline, options.output);
}

/// A situation has its own times and its own machine.
void check_demo(const Options& options) {
  if (options.demo.empty()) return;
  if (!options.root.empty()) throw UsageError("--demo plays a situation on a machine of its own, not below --root");
  if (!options.interval.empty() && !options.watch)
    throw UsageError("--demo plays a situation over its own window; --interval is for --demo with --watch");
  if (options.demo == "list" && (options.output.any() || options.watch || !options.hosts.file.empty()))
    throw UsageError("--demo list prints a list alone; name a situation to see it in another way");
}

int run(const Options& options) {
  check_demo(options);
  return reporting(options.output, [&] {
    if (options.limits) return list_limits(options);
    if (options.demo == "list") return list_demos();
    if (!options.hosts.file.empty()) return run_on_hosts(options);
    if (options.watch) return watch(to_inspect(options));
    return show(options.output, health::inspect(to_inspect(options)));
  });
}

/// An unset variable of a script is no wish for the default.
void refuse_empty_values(const CLI::App& command) {
  for (const CLI::Option* const option : command.get_options()) {
    for (const std::string& value : option->results()) {
      if (value.empty()) throw UsageError(option->get_name() + " is empty");
    }
  }
}

/// What excludes other options: said by the command line, not ignored in silence.
struct Modes {
  CLI::Option *watch, *limits;
};

Modes add_look_options(CLI::App& command, Options& options) {
  auto* const once = command.add_flag("--once", options.once, "A single look (the default)");
  auto* const window =
      command.add_option("--window", options.window, "Watch for so long: 60s, 10m")->type_name("TIME")->excludes(once);
  auto* const watch_flag = command.add_flag("--watch", options.watch, "Show it live on the terminal, until q")
                               ->excludes(once)
                               ->excludes(window);
  auto* const interval =
      command.add_option("--interval", options.interval, "Time between two looks of --window or --watch")
          ->type_name("TIME");
  auto* const history =
      command.add_option("--history", options.history, "Let the looks of repeated runs add up in this file")
          ->type_name("FILE");
  command.add_option("--set", options.set, "Move a threshold, as r8.warn=30m")->type_name("NAME=VALUE")->take_all();
  auto* const limits = command.add_flag("--limits", options.limits, "List all thresholds");
  auto* const deadline =
      command.add_option("--deadline", options.deadline, "Time for the GPU driver to answer (default: 5s)")
          ->type_name("TIME");
  auto* const wake = command.add_flag("--wake", options.wake, "Look also at GPUs that are powered down");
  auto* const demo =
      command.add_option("--demo", options.demo, "Play a situation; 'list' names all")->type_name("NAME");
  command.add_option("--root", options.root, "Read /proc and /sys below this folder (tests)")
      ->type_name("DIR")
      ->group("");
  for (CLI::Option* const other : {once, window, history, deadline, wake}) demo->excludes(other);
  for (CLI::Option* const other : {once, window, watch_flag, interval, history, wake, demo}) limits->excludes(other);
  return {watch_flag, limits};
}

}  // namespace

void add_inspect(CLI::App& app, Action& action) {
  CLI::App& command = *app.add_subcommand("inspect", "Say who holds CPUs and GPUs, what is stuck, and why");
  const auto options = std::make_shared<Options>();
  const Modes modes = add_look_options(command, *options);
  for (CLI::Option* const output : add_output_options(command, options->output)) {
    output->excludes(modes.watch);
    output->excludes(modes.limits);
  }
  add_hosts_options(command, options->hosts)->excludes(modes.watch)->excludes(modes.limits);
  command.footer(
      "Exit codes: 0 nothing above a note, 1 a warning, 2 critical (or a wrong command\n"
      "line), 3 something cannot be judged. Nothing is changed, nobody is signalled.");
  add_inspect_merge(command, action);
  command.callback([options, &command, &action] {
    refuse_empty_values(command);
    if (command.get_subcommands().empty()) {
      action = [options] { return run(*options); };
      return;
    }
    for (const CLI::Option* const option : command.get_options()) {
      if (option->count() > 0) throw UsageError(option->get_name() + " must stand behind merge");
    }
  });
}

}  // namespace drover::inline v1::cli
