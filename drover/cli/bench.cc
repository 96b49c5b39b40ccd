// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "drover/cli/command.h"
#include "drover/os/program.h"

namespace drover::inline v1::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string area, only;
  bool json = false, long_run = false;
};

/// Where the benchmark programs may be, the best first: beside an installed bin folder, and in the build tree.
std::vector<fs::path> folders() {
  const fs::path base = os::program_path().parent_path().parent_path();
  return {base / "libexec/drover", base / "benchmarks"};
}

bool can_run(const fs::directory_entry& entry) {
  std::error_code error;
  return entry.is_regular_file(error) && (entry.status(error).permissions() & fs::perms::owner_exec) != fs::perms::none;
}

/// The programs bench-AREA by area. A folder that cannot be read has none.
std::map<std::string, fs::path> find_areas() {
  const std::string prefix = "bench-";
  std::map<std::string, fs::path> areas;
  for (const fs::path& folder : folders()) {
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with(prefix) && can_run(entry)) areas.emplace(name.substr(prefix.size()), entry.path());
    }
  }
  return areas;
}

std::string areas_text() {
  std::string text;
  for (const auto& [area, path] : find_areas()) text += (text.empty() ? "areas: " : ", ") + area;
  if (text.empty()) text = "no benchmark program is installed";
  text += " (looked for bench-AREA in ";
  const auto looked_in = folders();
  for (std::size_t i = 0; i < looked_in.size(); ++i) text += (i == 0 ? "" : " and ") + looked_in[i].string();
  return text + ")";
}

std::vector<std::string> arguments(const Options& options) {
  std::vector<std::string> args;
  if (options.json) args.emplace_back("--json");
  if (!options.only.empty()) args.insert(args.end(), {"--only", options.only});
  if (options.long_run) args.emplace_back("--long");
  return args;
}

int run(const Options& options) {
  if (options.area.empty()) throw UsageError("which area? " + areas_text());
  const auto areas = find_areas();
  const auto found = areas.find(options.area);
  if (found == areas.end()) throw UsageError("there is no area '" + options.area + "'; " + areas_text());
  std::fflush(nullptr);
  os::exec_program(found->second, arguments(options));
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  CLI::App& bench = *app.add_subcommand("bench", "Measure one area against its floors and peers");
  const auto options = std::make_shared<Options>();
  bench.add_option("AREA", options->area, "What to measure");
  bench.add_flag("--json", options->json, "Print one JSON object");
  bench.add_option("--only", options->only, "Run this one figure")->type_name("NAME");
  bench.add_flag("--long", options->long_run, "Take more than a minute, for steadier figures");
  bench.footer(areas_text);
  bench.callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace drover::inline v1::cli
