// SPDX-License-Identifier: Apache-2.0
#include "drover/cli/inspect_output.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "drover/base/errors.h"
#include "drover/cli/command.h"
#include "drover/cli/inspect_text.h"
#include "drover/cli/text.h"
#include "drover/health/report_html.h"
#include "drover/health/report_json.h"
#include "drover/health/report_prometheus.h"
#include "drover/os/file_system.h"
#include "drover/os/host_files.h"
#include "drover/os/self.h"
#include "drover/os/terminal.h"

namespace drover::inline v1::cli {
namespace {

constexpr int kUnknown = 3;  // what a monitor takes for "cannot tell"
constexpr std::size_t kCheckLine = 300;

/// In one step and for this user's eyes only: it shows what everybody runs. A device or a pipe is not to be replaced.
void write_file(const char* option, const std::string& path, const std::string& text) {
  if (!os::replace_file(path, text))
    throw std::runtime_error(std::string(option) + ": another run is writing " + path + "; run it again");
}

/// Why the page could not be written; empty: it is, or none is wanted.
std::string write_page(const OutputOptions& options, const health::MergedReport& merged) {
  if (options.html.empty() || options.html == "-") return {};
  try {
    write_file("--html", options.html, health::to_html(merged));
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

/// The number of this task under srun or mpirun; also that of the only one, which is no rank for the rules.
std::optional<std::uint64_t> own_task() {
  const std::vector<std::string> environment = os::environment();
  for (const std::string_view name : {"RANK=", "OMPI_COMM_WORLD_RANK=", "PMI_RANK=", "SLURM_PROCID="}) {
    for (const std::string& variable : environment) {
      if (!variable.starts_with(name)) continue;
      if (const auto number = os::parse_number(std::string_view(variable).substr(name.size()))) return number;
    }
  }
  return std::nullopt;
}

/// `--output` with the rank of this task put in. Empty without the option, and for "-", which is standard output.
std::string file_of(const OutputOptions& options) {
  std::string path = options.file == "-" ? std::string() : options.file;
  std::size_t mark = path.find("%t");
  if (mark == path.npos) return path;
  const auto task = own_task();
  if (!task)
    throw UsageError("--output: %t is the rank of this task, and no variable of srun or mpirun tells one; name a file");
  const std::string rank = std::to_string(*task);
  for (; mark != path.npos; mark = path.find("%t", mark + rank.size())) path.replace(mark, 2, rank);
  return path;
}

template <class Any>
std::string text_of(const OutputOptions& options, const Any& report, const health::MergedReport& merged,
                    const std::function<std::string(const TextStyle&)>& text) {
  if (options.html == "-") return health::to_html(merged);
  if (options.json) return health::to_json(report);
  if (options.prometheus) return health::to_prometheus(report);
  if (options.check) return check_line(report.verdict(), kCheckLine) + "\n";
  if (!file_of(options).empty()) return text({});
  const int out = fileno(stdout);
  return text({.columns = os::terminal_width(out), .colour = os::colour_allowed(out)});
}

/// A page that could not be written must not hide what is critical, nor pass for a good result.
template <class Any>
int show_any(const OutputOptions& options, const Any& report, const health::MergedReport& merged,
             const std::function<std::string(const TextStyle&)>& text) {
  const std::string problem = write_page(options, merged);
  const int code = problem.empty() || report.exit_code() == 2 ? report.exit_code() : kUnknown;
  if (!problem.empty()) complain(problem);
  const bool instead = !problem.empty() && options.check && code == kUnknown;
  const std::string whole =
      instead ? check_line("UNKNOWN: " + problem, kCheckLine) + "\n" : text_of(options, report, merged, text);
  const std::string file = file_of(options);
  if (file.empty()) {
    print_whole(whole);
  } else {
    write_file("--output", file, whole);
  }
  return code;
}

/// Before long work: what cannot be shown so, or written there.
void check_outputs(const OutputOptions& options) {
  if (options.html == "-" && (options.json || options.prometheus || options.check))
    throw UsageError("--html - prints the page, so there is no place for another output; give --html a file");
  if (!options.html.empty() && options.html != "-") os::check_replaceable(options.html);
  const std::string file = file_of(options);
  if (file.empty()) return;
  if (file == options.html) throw UsageError("--html and --output name the same file, " + file + ": give each its own");
  os::check_replaceable(file);
}

}  // namespace

std::vector<CLI::Option*> add_output_options(CLI::App& command, OutputOptions& options) {
  auto* const json = command.add_flag("--json", options.json, "Print one JSON object (docs/inspect_schema.md)");
  auto* const prometheus =
      command.add_flag("--prometheus", options.prometheus, "Print metrics for Prometheus' textfile collector")
          ->excludes(json);
  auto* const check = command.add_flag("--check", options.check, "Print one line, for monitors and prologs")
                          ->excludes(json)
                          ->excludes(prometheus);
  auto* const html =
      command.add_option("--html", options.html, "Write one page for a browser; -: print it")->type_name("FILE");
  auto* const file =
      command
          .add_option("--output", options.file, "Print into this file; %t: the rank under srun, mpirun; -: print it")
          ->type_name("FILE");
  return {json, prometheus, check, html, file};
}

int show(const OutputOptions& options, const health::Report& report) {
  const health::MergedReport merged = options.html.empty() ? health::MergedReport() : health::merge_one(report);
  return show_any(options, report, merged, [&](const TextStyle& style) { return inspect_text(report, style); });
}

int show(const OutputOptions& options, const health::MergedReport& merged) {
  return show_any(options, merged, merged,
                  [&](const TextStyle& style) { return merged_text(merged, style.columns, style.colour); });
}

int reporting(const OutputOptions& options, const std::function<int()>& make) {
  try {
    check_outputs(options);
    const int code = make();
    flush_output();
    return code;
  } catch (const InvalidArgument& error) {
    throw UsageError(error.what());
  } catch (const Interrupted&) {
    throw;
  } catch (const UsageError&) {
    throw;
  } catch (const std::exception& error) {
    complain(error.what());
    if (options.check) std::fputs(("UNKNOWN: " + os::sanitize(error.what()) + "\n").c_str(), stdout);
    return kUnknown;
  }
}

}  // namespace drover::inline v1::cli
