// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "drover/base/duration.h"

namespace drover::inline v1 {

/// One worker of a pool, as seen at one moment.
struct WorkerStats {
  int pid = 0;                          ///< 0 while it is being started
  bool ready = false;                   ///< it has finished its start and takes tasks
  std::uint64_t tasks = 0;              ///< finished, by the processes it replaced too
  Duration busy = Duration(0);          ///< time not spent waiting, since this process became ready
  std::size_t queue_depth = 0;          ///< tasks of what it has claimed and is running: a chunk, or one
  std::size_t restarts = 0;             ///< processes that were started in its place after a death
  std::uint64_t memory_bytes = 0;       ///< resident, shared pages included; 0: unknown
  std::uint64_t peak_memory_bytes = 0;  ///< the most it ever was
};

struct PoolStats {
  std::vector<WorkerStats> workers;
  std::size_t queued = 0;  ///< tasks, and items of maps, that are offered and not claimed yet
};

}  // namespace drover::inline v1
