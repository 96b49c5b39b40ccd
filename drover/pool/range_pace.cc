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
  constexpr int kLook = 8;  // not even the coarse clock is free
  if (!proven()) {
    const auto now = std::chrono::steady_clock::now();
    note_one(now - std::exchange(last_, now));
    return true;
  }
  if (++since_tick_ % kLook != 0) return false;
  const std::int64_t tick = os::coarse_now_ns();
  const std::chrono::nanoseconds step(tick - std::exchange(tick_, tick));
  if (step < kPause && (step.count() == 0 || std::exchange(since_tick_, 0) >= kProof)) return true;
  prompt_ = 0;
  if (step >= kPause) slow_left_ = kProof;
  begin();
  return true;
}

void RangePace::note_one(std::chrono::nanoseconds took) noexcept {
  prompt_ = took > kPrompt ? 0 : prompt_ + 1;
  if (took > kSlow) {
    slow_left_ = kProof;
  } else if (slow_left_ != 0) {
    --slow_left_;
  }
  if (!proven()) return;
  since_tick_ = 0;
  begin();
}

}  // namespace drover::inline v1::detail
