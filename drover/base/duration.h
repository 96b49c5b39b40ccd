// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace drover::inline v1 {

/// A span of time in seconds. Every option and wait of the public API takes this type, so that `0.5s` and `20ms` both
/// work.
using Duration = std::chrono::duration<double>;

}  // namespace drover::inline v1
