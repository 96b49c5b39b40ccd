// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "drover/os/thread_id.h"

namespace drover::inline v1::os {

/// A process of this machine that cannot be mistaken for a later one of the same number. Plain data: lies in files.
struct ProcessId {
  std::int32_t pid = 0;
  std::uint32_t user = 0;
  std::uint64_t start_time = 0;  ///< clock ticks since the machine started
  /// In which both are meant: the inode of the PID namespace ^ that of the time namespace << 32. 0: not known.
  std::uint64_t namespaces = 0;

  /// The calling process; right after fork() too. Throws std::system_error when /proc cannot be read.
  static ProcessId current();
  bool operator==(const ProcessId&) const = default;
};
static_assert(sizeof(ProcessId) == 24);

/// Clock ticks since the machine started; nullopt when there is no such process, it is a zombie, or it cannot be seen.
std::optional<std::uint64_t> process_start_time(int pid) noexcept;

/// Whether the process still runs, be it without its first thread. kUnknown for one of another PID or time namespace,
/// and when /proc does not show it (hidepid). A zombie is dead.
Liveness liveness(const ProcessId& process);
/// The same of whichever process has the number in this PID namespace.
Liveness liveness_of_number(int pid) noexcept;

/// Whether its number means that process here.
bool in_our_namespaces(const ProcessId& process);

}  // namespace drover::inline v1::os
