// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "drover/os/thread_id.h"

/// What /proc says of threads and processes: read, and judged, in one place. Private to process_id.cc and thread_id.cc.
/// No call allocates: they run while locks are held, and in the middle of whatever the user's program does.
namespace drover::inline v1::os {

/// What /proc/N/stat says of a thread.
struct ProcessStat {
  int number = 0;
  char state = '?';
  std::uint64_t threads = 0;  ///< of its process
  std::uint64_t start = 0;    ///< clock ticks since the machine started, as the time namespace has it
};

/// nullopt when the file cannot be read; errno says why.
std::optional<ProcessStat> read_process_stat(const char* path) noexcept;

struct Sighting {
  Liveness state = Liveness::kUnknown;
  std::uint64_t start = 0;  ///< of one that is alive
};

/// Looks at the thread, or the process, that has the number in the namespaces of the caller. kDead only when it is
/// certain: that /proc does not show it is no proof.
Sighting look_at_number(int number, bool whole_process) noexcept;

struct Namespaces {
  std::uint64_t pid = 0;   ///< inode of the PID namespace; 0: not known
  std::uint64_t time = 0;  ///< of the time namespace, which start times depend on; 0: not known, or before Linux 5.6
};
/// Of the calling thread: the first thread of a process may have ended.
Namespaces own_namespaces() noexcept;

}  // namespace drover::inline v1::os
