// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace drover::inline v1::os {

/// Writes as much of `text` (at most 4 KiB) as descriptor `fd` takes without waiting; returns the bytes taken, 0 when
/// it is full. A stream that is closed or broken takes everything: nobody is there to read it.
std::size_t write_if_ready(int fd, std::string_view text) noexcept;

}  // namespace drover::inline v1::os
