// SPDX-License-Identifier: Apache-2.0
#include "drover/os/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "drover/os/fault_point.h"

namespace drover::inline v1::os {

FutexWait futex_wait(const FutexWord& word, std::uint32_t expected, const Deadline& deadline) noexcept {
  timespec until{};
  if (deadline) {
    // steady_clock is CLOCK_MONOTONIC, which FUTEX_WAIT_BITSET takes as an absolute time.
    const auto since = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline->time_since_epoch()).count();
    until = {.tv_sec = since / 1'000'000'000, .tv_nsec = since % 1'000'000'000};
  }
  const long rc = ::syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, expected, deadline ? &until : nullptr, nullptr,
                            FUTEX_BITSET_MATCH_ANY);
  return rc < 0 && errno == ETIMEDOUT ? FutexWait::kTimedOut : FutexWait::kWoken;
}

void futex_wake(const FutexWord& word, int count) noexcept {
  fault_point();
  ::syscall(SYS_futex, &word, FUTEX_WAKE, count, nullptr, nullptr, 0);
}

}  // namespace drover::inline v1::os
