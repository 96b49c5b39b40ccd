// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <string_view>

#include "drover/cli/command.h"
#include "drover/cli/text.h"
#include "drover/drover.h"

namespace drover::inline v1::cli {
namespace {

/// The command that the command line has got to so far: the program itself, or a subcommand at any depth.
CLI::App& chosen(CLI::App& app) {
  const auto commands = app.get_subcommands();
  return commands.empty() ? app : chosen(*commands.back());
}

std::string full_name(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent == nullptr ? app.get_name() : full_name(*parent) + " " + app.get_name();
}

int usage_error(const CLI::App& command, std::string_view text) {
  complain(text);
  std::fputs(("Try '" + full_name(command) + " --help'.\n").c_str(), stderr);
  return kUsage;
}

/// What parsing ended with: a question that is answered on stdout, or a mistake.
int answer(CLI::App& app, const CLI::ParseError& end) {
  CLI::App& command = chosen(app);
  if (end.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app.exit(end);
  if (end.get_name() != "RequiredError" || command.get_require_subcommand_min() == 0) {
    return usage_error(command, end.what());
  }
  const auto unknown = command.remaining();
  if (!unknown.empty()) return usage_error(command, "unknown command or option '" + unknown.front() + "'");
  std::fputs(app.help().c_str(), stderr);  // of the chosen command
  return kUsage;
}

int run(int argc, char** argv) {
  CLI::App app{"Drives a herd of processes and GPUs as one program", "drover"};
  app.set_version_flag("--version", "drover " DROVER_VERSION);
  app.require_subcommand(1);
  Action action = [] { return kOk; };
  add_demo(app, action);
  add_bench(app, action);
  add_inspect(app, action);
  add_status(app, action);
  int code = kOk;
  try {
    app.parse(argc, argv);
    code = action();
  } catch (const CLI::ParseError& end) {
    code = answer(app, end);
  } catch (const UsageError& error) {
    code = usage_error(chosen(app), error.what());
  }
  flush_output();
  return code;
}

}  // namespace
}  // namespace drover::inline v1::cli

int main(int argc, char** argv) {
  try {
    drover::init(argc, argv);
    return drover::cli::run(argc, argv);
  } catch (const drover::Interrupted&) {
    throw;  // all is cleaned up; init's terminate handler ends the program by the signal
  } catch (const std::exception& error) {
    drover::cli::complain(error.what());
    return drover::cli::kFailed;
  }
}
