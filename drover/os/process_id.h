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
  std::uint64_t start_time = 0;     ///< clock ticks since the machine started
  std::uint64_t pid_namespace = 0;  ///< inode of the namespace in which `pid` is meant

  /// The calling process; right after fork() too. Throws std::system_error when /proc cannot be read.
  static ProcessId current();
  bool operator==(const ProcessId&) const = default;
};
static_assert(sizeof(ProcessId) == 24);

/// Clock ticks since the machine started; nullopt when there is no such process, or it is a zombie.
std::optional<std::uint64_t> process_start_time(int pid);

/// Whether the process still runs: kUnknown for one of another PID namespace. A zombie is dead.
Liveness liveness(const ProcessId& process);

}  // namespace drover::inline v1::os
