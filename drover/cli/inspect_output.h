// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "drover/health/merge.h"

namespace drover::inline v1::cli {

/// How a report is shown; the same for one machine and for many. Beside a page, the rest is printed as well.
struct OutputOptions {
  bool json = false, prometheus = false, check = false;
  std::string html;  ///< a file, or "-": the page is printed instead; empty: none
  std::string file;  ///< what would be printed is written there in one step; %t in it: the rank; empty: it is printed

  bool any() const { return json || prometheus || check || !html.empty() || !file.empty(); }
};

/// Adds the options to a command; the result is all of them.
std::vector<CLI::Option*> add_output_options(CLI::App& command, OutputOptions& options);

/// Shows a report and returns its exit code; 3 when the page could not be written and nothing is critical, with the
/// reason on stderr and, by --check, as the line. Throws std::system_error when the output cannot be written.
int show(const OutputOptions& options, const health::Report& report);
int show(const OutputOptions& options, const health::MergedReport& merged);

/// Runs `make`, which shows a report: an invalid argument is a wrong command line, every other error, also that stdout
/// cannot be written, is told once on stderr and gives the exit code 3, for 1 would say "a warning".
int reporting(const OutputOptions& options, const std::function<int()>& make);

/// The report over many nodes for people, sanitized. Pure.
std::string merged_text(const health::MergedReport& merged, std::size_t columns, bool colour);

}  // namespace drover::inline v1::cli
