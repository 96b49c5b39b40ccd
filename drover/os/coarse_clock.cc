// SPDX-License-Identifier: Apache-2.0
#include "drover/os/coarse_clock.h"

#include <time.h>

namespace drover::inline v1::os {

std::int64_t coarse_now_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

}  // namespace drover::inline v1::os
