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
  const long point = fault_of(role);
  left = point < 0 ? LONG_MAX : point;
}

long fault_of(const char* role) noexcept {
  const char* const fault = std::getenv("DROVER_FAULT");
  if (fault == nullptr) return -1;
  const std::size_t length = std::strlen(role);
  return std::strncmp(fault, role, length) == 0 && fault[length] == ':' ? std::atol(fault + length + 1) : -1;
}

}  // namespace drover::inline v1::os

#endif
