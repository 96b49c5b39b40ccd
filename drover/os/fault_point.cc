// SPDX-License-Identifier: Apache-2.0
#include "drover/os/fault_point.h"

#ifdef DROVER_FAULT_POINTS

#include <unistd.h>

#include <atomic>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>

namespace drover::inline v1::os {
namespace {

std::atomic<long> left{LONG_MAX};

}  // namespace

void fault_point() noexcept {
  if (left.load(std::memory_order_relaxed) == LONG_MAX) return;
  if (left.fetch_sub(1, std::memory_order_relaxed) == 0) ::kill(::getpid(), SIGKILL);
}

void set_fault_role(const char* role) noexcept {
  left = LONG_MAX;
  const char* const fault = std::getenv("DROVER_FAULT");
  if (fault == nullptr) return;
  const std::size_t length = std::strlen(role);
  if (std::strncmp(fault, role, length) == 0 && fault[length] == ':') left = std::atol(fault + length + 1);
}

}  // namespace drover::inline v1::os

#endif
