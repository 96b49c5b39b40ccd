// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "drover/os/fd.h"

namespace drover::inline v1::detail {

/// What a pool's segment tells a process that has nothing to do with the pool.
struct PoolFacts {
  std::size_t workers = 0;  ///< that the pool is to have; 1 to 1024
  std::uint64_t tasks = 0;  ///< that they have finished
  double age = 0;           ///< seconds
};

/// Of a segment that was opened for reading; it may be in use. nullopt: it is none, or one of another version of
/// Drover. Any worker may write to a segment, so what it says is within its limits, and may still be a lie. Throws
/// std::system_error when it cannot be read.
std::optional<PoolFacts> read_pool_facts(const os::Fd& segment);

}  // namespace drover::inline v1::detail
