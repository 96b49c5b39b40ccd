// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "drover/health/helper/role.h"

namespace drover::inline v1::health::drm {

/// The helper that reads what amdgpu, i915 and xe answer. Its argument: a bit set of kContainer and kWake as one digit,
/// and the folder before /proc and /sys.
extern const helper::Role kRole;
inline constexpr char kContainer = 1, kWake = 2;

}  // namespace drover::inline v1::health::drm
