// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "drover/os/fd.h"

namespace drover::inline v1::os {

/// Takes memory for a range of a file in memory (memfd, or a file in /dev/shm) now, so that no touch of it can fail.
/// Compares first with what the machine, every cgroup above and the file system have left; throws drover::OutOfMemory
/// with needed and available bytes, before anything is taken. The contents do not change. Thread-safe.
void reserve_memory(const Fd& file, std::uint64_t offset, std::uint64_t length);

}  // namespace drover::inline v1::os
