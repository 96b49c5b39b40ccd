// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace drover::inline v1 {

/// A span of time in seconds. Every option and wait of the public API takes this type, so that `0.5s` and `20ms` both
/// work.
using Duration = std::chrono::duration<double>;

/// From now on; less than nothing when it is past. In seconds first: a difference of integers may overflow.
template <class Clock, class Length>
Duration time_until(std::chrono::time_point<Clock, Length> end) {
  return Duration(end.time_since_epoch()) - Duration(Clock::now().time_since_epoch());
}

}  // namespace drover::inline v1
