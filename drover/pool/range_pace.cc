// SPDX-License-Identifier: Apache-2.0
#include "drover/pool/range_pace.h"

#include <utility>

#include "drover/os/coarse_clock.h"

namespace drover::inline v1::detail {

void RangePace::begin() noexcept {
  if (!proven()) {
    last_ = std::chrono::steady_clock::now();
  } else {
    tick_ = os::coarse_now_ns();
  }
}

bool RangePace::note() noexcept {
  constexpr int kLook = 8;  // not even the coarse clock is free: a range that becomes slow holds back so many, once
  if (!proven()) {
    const auto now = std::chrono::steady_clock::now();
    const bool delayed = now - std::exchange(last_, now) > kDelay;
    prompt_ = delayed ? 0 : prompt_ + 1;
    slow_ = (slow_ || delayed) && !proven();
    if (proven()) begin();
    since_tick_ = 0;
    return true;
  }
  if (++since_tick_ % kLook != 0) return false;
  const std::int64_t tick = os::coarse_now_ns();
  if (tick == std::exchange(tick_, tick)) return false;
  if (std::exchange(since_tick_, 0) >= kProof) return true;
  prompt_ = 0;
  slow_ = true;
  begin();
  return true;
}

}  // namespace drover::inline v1::detail
