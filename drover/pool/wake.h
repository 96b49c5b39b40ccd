// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "drover/pool/layout.h"

namespace drover::inline v1::detail {

/// Wakes one worker. Its bit must have been taken, or it does not matter that it wakes for nothing.
inline void wake_worker(PoolHeader& header, std::size_t worker) noexcept {
  os::fault_point();
  header.workers[worker].wake.fetch_add(1, std::memory_order_release);
  os::futex_wake(header.workers[worker].wake);
}

/// Sees to it that up to `tasks` more workers look for work; call it after the arming. Spinning workers come first:
/// they need no system call. Any process that maps the header.
inline void wake_workers(PoolHeader& header, std::size_t workers, std::size_t tasks) noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the fence of a worker that is about to sleep
  for (; tasks > 0; --tasks) {
    if (header.spinning.take_any(workers) != shm::WorkerMask::kMaxWorkers) continue;
    const std::size_t worker = header.parked.take_any(workers);
    if (worker == shm::WorkerMask::kMaxWorkers) return;
    wake_worker(header, worker);
  }
}

}  // namespace drover::inline v1::detail
