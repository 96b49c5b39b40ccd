// SPDX-License-Identifier: Apache-2.0
#include "drover/os/fork_count.h"

#include <pthread.h>

namespace drover::inline v1::os {

constinit std::atomic<std::uint32_t> detail::forks{0};

namespace {

void count_fork() noexcept { detail::forks.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

std::uint32_t watch_forks() noexcept {
  [[maybe_unused]] static const int registered = ::pthread_atfork(nullptr, nullptr, count_fork);
  return forks();
}

}  // namespace drover::inline v1::os
