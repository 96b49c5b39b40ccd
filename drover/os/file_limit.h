// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace drover::inline v1::os {

/// To be called before a file, also one that is memory, is made longer or written to: beyond RLIMIT_FSIZE the kernel
/// ends the program by SIGXFSZ. Throws std::system_error (EFBIG, says which limit) when the file may not be `end` bytes
/// long. Thread-safe.
void check_file_limit(std::uint64_t end);

}  // namespace drover::inline v1::os
