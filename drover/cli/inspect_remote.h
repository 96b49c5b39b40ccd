// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "drover/base/duration.h"
#include "drover/health/report_read.h"

namespace drover::inline v1::cli {

/// The same command on many hosts, by a remote shell.
struct RemoteRequest {
  std::vector<std::string> shell;  ///< the remote shell and its words; then come the host and `command`
  std::vector<std::string> hosts;
  std::string command;    ///< for the shell of the host
  Duration deadline{60};  ///< for each host
  std::size_t at_once = 32;
};

/// Runs the command on all hosts and reads the report that each prints: one entry for each host, in order; without a
/// report it says why, with the last words of the remote shell. A host that is late, or prints without end, is told to
/// end (SIGTERM) and killed half a second later, with all that its remote shell started in its process group. Throws
/// Interrupted when SIGINT or SIGTERM comes, and nothing is left running then. When this process is killed, so is each
/// remote shell. The main thread, after drover::init.
std::vector<health::ReadReport> inspect_remotely(const RemoteRequest& request);

/// A word that any POSIX shell takes as it is. Pure.
std::string shell_quoted(std::string_view word);

/// The words of a command line, at blanks that are not in single or double quotes. Throws UsageError. Pure.
std::vector<std::string> split_words(std::string_view line);

/// The program that a shell would start: a path as it is, a name looked up in PATH. Throws UsageError.
std::string find_program(const std::string& name);

/// The name of a host in a report: without user and scheme. Pure.
std::string host_name_of(const std::string& host);

}  // namespace drover::inline v1::cli
