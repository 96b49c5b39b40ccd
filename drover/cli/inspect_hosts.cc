// SPDX-License-Identifier: Apache-2.0
#include "drover/cli/inspect_hosts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "drover/base/errors.h"
#include "drover/cli/command.h"
#include "drover/cli/inspect_merge.h"
#include "drover/cli/inspect_remote.h"
#include "drover/cli/validators.h"
#include "drover/health/engine.h"
#include "drover/health/merge_hostlist.h"
#include "drover/health/thresholds.h"
#include "drover/os/file_system.h"

namespace drover::inline v1::cli {
namespace {

constexpr std::size_t kMostList = 4U << 20U;
constexpr double kReserve = 30;  // seconds for the connection and the start, beside the window
constexpr double kLongestConnect = 10;

std::vector<std::string> read_hosts(const std::string& file) {
  const std::optional<std::string> text = file == "-" ? read_input(kMostList) : os::read_small_file(file, kMostList);
  if (!text) throw UsageError("--hosts: " + file + " cannot be read");
  std::vector<std::string> hosts;
  try {
    hosts = health::parse_hosts(*text);
  } catch (const InvalidArgument& error) {
    throw UsageError("--hosts: " + file + ", " + error.what());
  }
  if (hosts.empty()) throw UsageError("--hosts: there is no host in " + file);
  return hosts;
}

std::string without_area(std::string_view what) {
  return std::string(what.substr(what.substr(0, 9) == "inspect: " ? 9 : 0));
}

/// A mistake in what each host is given is told once, here, with the option; then what several options make together.
void check_for_hosts(const std::vector<std::string>& arguments) {
  health::InspectOptions all;
  for (std::size_t i = 0; i + 1 < arguments.size(); ++i) {
    const std::string& option = arguments[i];
    if (option == "--wake") continue;  // the only one without a value
    const std::string& value = arguments[++i];
    health::InspectOptions one;
    if (option == "--window") all.window = one.window = Duration(seconds_of(option, value));
    if (option == "--interval") all.interval = one.interval = Duration(seconds_of(option, value));
    if (option == "--deadline") one.deadline = Duration(seconds_of(option, value));
    if (option == "--set") one.set = {value};
    try {
      health::limits_of(one);
      if (option == "--demo") health::demo_scenario(value);
    } catch (const InvalidArgument& error) {
      throw UsageError(option + ": " + without_area(error.what()));
    }
  }
  health::check_inspection(all);
}

Duration deadline_of(const HostsOptions& options, Duration least) {
  if (options.deadline.empty()) return least + Duration(kReserve);
  const double seconds = seconds_of("--host-deadline", options.deadline);
  if (!(seconds >= 0.1 && seconds <= 8 * 86'400.0)) throw UsageError("--host-deadline must be from 0.1s to 8d");
  return Duration(seconds);
}

bool may_be_started(const std::filesystem::path& path) {
  using std::filesystem::perms;
  std::error_code unknown;
  const std::filesystem::file_status status = std::filesystem::status(path, unknown);
  constexpr perms kExecutable = perms::owner_exec | perms::group_exec | perms::others_exec;
  return std::filesystem::is_regular_file(status) && (status.permissions() & kExecutable) != perms::none;
}

}  // namespace

std::string shell_quoted(std::string_view word) {
  std::string result = "'";
  for (const char c : word) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::vector<std::string> split_words(std::string_view line) {
  std::vector<std::string> words;
  std::optional<std::string> word;
  char quote = 0;
  for (const char c : line) {
    if (quote != 0 ? c == quote : c == '\'' || c == '"') {
      quote = quote != 0 ? '\0' : c;
      if (!word) word.emplace();
    } else if (quote == 0 && (c == ' ' || c == '\t')) {
      if (word) words.push_back(*std::exchange(word, std::nullopt));
    } else {
      if (!word) word.emplace();
      *word += c;
    }
  }
  if (quote != 0) throw UsageError("--ssh: a quote is not closed");
  if (word) words.push_back(*word);
  if (words.empty() || words.front().empty()) throw UsageError("--ssh: there is no command");
  return words;
}

std::string find_program(const std::string& name) {
  if (name.find('/') != name.npos) {
    if (!may_be_started(name)) throw UsageError("--ssh: there is no program " + name);
    return name;
  }
  const char* const variable = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): no other thread runs
  std::string_view path = variable != nullptr ? variable : "/usr/local/bin:/usr/bin:/bin";
  while (!path.empty()) {
    const std::size_t colon = path.find(':');
    const std::filesystem::path candidate = std::filesystem::path(path.substr(0, colon)) / name;
    if (may_be_started(candidate)) return candidate.string();
    path.remove_prefix(colon == path.npos ? path.size() : colon + 1);
  }
  throw UsageError("there is no program '" + name + "' in PATH; install it (openssh-client), or name another: --ssh");
}

std::string host_name_of(const std::string& host) {
  std::string name = host;
  if (name.substr(0, 6) == "ssh://") name.erase(0, 6);
  if (const std::size_t at = name.rfind('@'); at != name.npos) name.erase(0, at + 1);
  return name;
}

CLI::Option* add_hosts_options(CLI::App& command, HostsOptions& options) {
  auto* const hosts =
      command.add_option("--hosts", options.file, "Inspect these hosts over ssh; -: standard input")->type_name("FILE");
  command.add_option("--ssh", options.shell, "The command that reaches a host (default: ssh)")
      ->type_name("COMMAND")
      ->needs(hosts);
  command.add_option("--remote", options.remote, "What starts drover there (default: drover)")
      ->type_name("COMMAND")
      ->needs(hosts);
  command.add_option("--host-deadline", options.deadline, "Time for each (default: window + deadline + 30s)")
      ->type_name("TIME")
      ->needs(hosts);
  return hosts;
}

int inspect_hosts(const HostsOptions& options, const std::vector<std::string>& arguments, Duration least,
                  const OutputOptions& output) {
  check_for_hosts(arguments);
  RemoteRequest request;
  request.hosts = read_hosts(options.file);
  request.deadline = deadline_of(options, least);
  request.shell = split_words(options.shell);
  request.shell.front() = find_program(request.shell.front());
  const double connect = std::clamp(std::ceil(request.deadline.count() / 2), 1.0, kLongestConnect);
  for (const std::string& option : {std::string("BatchMode=yes"), fmt::format("ConnectTimeout={:.0f}", connect)}) {
    request.shell.emplace_back("-o");
    request.shell.push_back(option);
  }
  request.command = options.remote + " inspect --json";
  for (const std::string& argument : arguments) request.command += " " + shell_quoted(argument);
  return show(output, health::merge(inspect_remotely(request)));
}

}  // namespace drover::inline v1::cli
