// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace drover::inline v1::os {

/// Nanoseconds of a clock that moves in steps of some milliseconds, the kernel's ticks, and costs a fraction of the
/// steady clock to read.
std::int64_t coarse_now_ns() noexcept;

}  // namespace drover::inline v1::os
