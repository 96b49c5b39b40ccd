// SPDX-License-Identifier: Apache-2.0
#include "drover/cli/inspect_output.h"

#include <fmt/format.h>

#include <cstdio>
#include <stdexcept>

#include "drover/base/errors.h"
#include "drover/cli/command.h"
#include "drover/cli/inspect_text.h"
#include "drover/cli/text.h"
#include "drover/health/report_html.h"
#include "drover/health/report_json.h"
#include "drover/health/report_prometheus.h"
#include "drover/os/host_files.h"
#include "drover/os/terminal.h"

namespace drover::inline v1::cli {
namespace {

constexpr int kUnknown = 3;  // what a monitor takes for "cannot tell"
constexpr std::size_t kCheckLine = 300;

/// In one step and for this user's eyes only: it shows what everybody runs. A device or a pipe is not to be replaced.
void write_page(const std::string& path, const std::string& page) {
  if (!os::replace_file(path, page))
    throw std::runtime_error("--html: another run is writing " + path + "; run it again");
}

/// The exit code: a page that could not be written must not hide what is critical.
int write_page_after(const std::string& path, const health::MergedReport& merged, int code) {
  try {
    write_page(path, health::to_html(merged));
    return code;
  } catch (const std::exception& error) {
    complain(error.what());
    return code == 2 ? code : kUnknown;
  }
}

template <class Any>
void print_report(const OutputOptions& options, const Any& report,
                  const std::function<std::string(const TextStyle&)>& text) {
  if (options.json) {
    fmt::print("{}", health::to_json(report));
  } else if (options.prometheus) {
    fmt::print("{}", health::to_prometheus(report));
  } else if (options.check) {
    fmt::print("{}\n", check_line(report.verdict(), kCheckLine));
  } else {
    const int out = fileno(stdout);
    fmt::print("{}", text({.columns = os::terminal_width(out), .colour = os::colour_allowed(out)}));
  }
}

template <class Any>
int show_any(const OutputOptions& options, const Any& report, const health::MergedReport& merged,
             const std::function<std::string(const TextStyle&)>& text) {
  const int code = report.exit_code();
  if (options.html == "-") {
    fmt::print("{}", health::to_html(merged));
    return code;
  }
  print_report(options, report, text);
  return options.html.empty() ? code : write_page_after(options.html, merged, code);
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
  return {json, prometheus, check, html};
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
    if (!options.html.empty() && options.html != "-") os::check_replaceable(options.html);  // before long work
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
