// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "drover/base/duration.h"
#include "drover/cli/inspect_output.h"

namespace drover::inline v1::cli {

struct HostsOptions {
  std::string file, shell = "ssh", remote = "drover", deadline;
};

/// Adds the options to a command; the result is the first, --hosts.
CLI::Option* add_hosts_options(CLI::App& command, HostsOptions& options);

/// `drover inspect` on all hosts of the file, and one report over them. `arguments`: the options for each host, which
/// are quoted here; `least`: how long a host takes at least. Throws UsageError, Interrupted.
int inspect_hosts(const HostsOptions& options, const std::vector<std::string>& arguments, Duration least,
                  const OutputOptions& output);

}  // namespace drover::inline v1::cli
