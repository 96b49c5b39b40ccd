// SPDX-License-Identifier: Apache-2.0
#include "drover/cli/inspect_merge.h"

#include <CLI/CLI.hpp>
#include <array>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "drover/cli/inspect_output.h"
#include "drover/health/report_read.h"
#include "drover/os/epoll.h"
#include "drover/os/fd.h"
#include "drover/os/file_system.h"

namespace drover::inline v1::cli {
namespace {

constexpr std::size_t kMostInput = std::size_t{1} << 30U;

struct Options {
  std::vector<std::string> files;
  OutputOptions output;
};

void add_file(const std::string& file, std::vector<health::ReadReport>& reports) {
  const std::string name = file == "-" ? "standard input" : file;
  std::optional<std::string> text;
  std::string problem = "there is no such file, or it may not be read";
  try {
    if (file != "-" && std::filesystem::is_directory(file))
      problem = "it is a folder; name the files in it, as " + (std::filesystem::path(file) / "*.json").string();
    else
      text = file == "-" ? read_input(kMostInput) : os::read_small_file(file, kMostInput);
  } catch (const std::exception& error) {
    problem = error.what();
  }
  if (!text) {
    reports.push_back({.place = name, .report = std::nullopt, .problem = problem, .node = {}});
    return;
  }
  std::vector<health::ReadReport> found = health::read_reports(*text, name);
  std::move(found.begin(), found.end(), std::back_inserter(reports));
}

int run(const Options& options) {
  return reporting(options.output, [&] {
    std::vector<health::ReadReport> reports;
    for (const std::string& file : options.files) add_file(file, reports);
    return show(options.output, health::merge(std::move(reports)));
  });
}

}  // namespace

std::string read_input(std::size_t most) {
  os::Fd input(0);
  std::string text;
  std::array<std::byte, 65'536> buffer;
  try {
    std::optional<os::Epoll> epoll;
    while (text.size() < most) {
      const auto count = input.read_some(buffer);
      if (!count) {  // whoever shares it made it non-blocking; what can be waited for has not ended
        if (!epoll) epoll.emplace().add(input, 0);
        epoll->wait({});
        continue;
      }
      if (*count == 0) break;
      text.append(reinterpret_cast<const char*>(buffer.data()), *count);
    }
  } catch (...) {
    input.release();
    throw;
  }
  input.release();
  return text;
}

void add_inspect_merge(CLI::App& inspect, Action& action) {
  CLI::App& command = *inspect.add_subcommand("merge", "Make one report of the JSON of many nodes");
  const auto options = std::make_shared<Options>();
  command.add_option("files", options->files, "What --json printed; -: standard input")
      ->type_name("FILE...")
      ->required();
  add_output_options(command, options->output);
  command.footer(
      "srun --ntasks-per-node=1 --output=report-%t.json \\\n"
      "  drover inspect --window 10m --json\n"
      "drover inspect merge report-*.json\n"
      "A file for each task, as the lines of tasks that share one may mix; a file may\n"
      "hold several whole reports.\n\n"
      "Exit codes: the worst of all nodes; 3 when a file, or a part of it, is no\n"
      "report, unless a node is critical.");
  command.callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace drover::inline v1::cli
