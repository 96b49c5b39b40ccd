// SPDX-License-Identifier: Apache-2.0
#include "drover/health/probe/program_reader.h"

#include <algorithm>
#include <string_view>

#include "drover/health/probe/proc_text.h"
#include "drover/health/sample.h"

namespace drover::inline v1::health {

namespace {

/// A program that gives itself a title writes it over its arguments, and then over its environment, of which nothing is
/// left: "NAME=" is where it begins, and no entry is empty. A title may have a '='; what it did not need it fills with
/// zeros.
bool is_environment(std::string_view text) {
  const std::string_view name = text.substr(0, std::min(text.find('='), text.size()));
  const auto fits = [](char c) { return c > ' ' && c <= '~' && c != ':'; };
  if (text.find(std::string_view("\0\0", 2)) != text.npos) return false;
  return text.empty() || (!name.empty() && name.size() < text.size() && std::all_of(name.begin(), name.end(), fits));
}

}  // namespace

Program read_program(const std::shared_ptr<const os::HostFolder>& folder) {
  Program program;
  program.command = parse_cmdline(folder->text("cmdline").value_or(std::string()));
  program.cgroup = parse_process_cgroup(folder->text("cgroup").value_or(std::string()));
  const auto environment = folder->text("environ", 1U << 20U);
  program.environment_known = environment && is_environment(*environment);
  if (program.environment_known) program.environment = parse_environ(*environment, job_variables());
  return program;
}

}  // namespace drover::inline v1::health
