// SPDX-License-Identifier: Apache-2.0
#include "drover/os/fork_count.h"

#include <pthread.h>
#include <sys/mman.h>

#include <cstddef>

namespace drover::inline v1::os {

constinit std::atomic<std::uint32_t> detail::forks{0};

namespace {

void count_fork() noexcept { detail::forks.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

ForkMark::ForkMark() noexcept {
  static std::uint32_t no_page = 1;
  constexpr std::size_t kPage = 4096;
  void* const page = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  word_ = page == MAP_FAILED ? &no_page : static_cast<std::uint32_t*>(page);
  if (page != MAP_FAILED) static_cast<void>(::madvise(page, kPage, MADV_WIPEONFORK));
  *word_ = 1;
}

std::uint32_t watch_forks() noexcept {
  [[maybe_unused]] static const int registered = ::pthread_atfork(nullptr, nullptr, count_fork);
  return forks();
}

}  // namespace drover::inline v1::os
