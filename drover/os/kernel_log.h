// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "drover/os/fd.h"
#include "drover/os/host_files.h"

namespace drover::inline v1::os {

/// Reads the kernel's log, /dev/kmsg (Documentation/ABI/testing/dev-kmsg), from its oldest record on; only records of
/// this boot are in it. Or a file with such records, a line each. Takes nothing away from other readers. One thread at
/// a time. Owns the descriptor.
class KernelLog {
 public:
  explicit KernelLog(const std::string& path = "/dev/kmsg");

  /// Appends the records that have come since the last call to `text`, a line each, and at most about `most` bytes;
  /// never waits. Records that were overwritten meanwhile are left out. Anything but kOk: it cannot be read.
  Access read_new(std::string& text, std::size_t most = std::size_t{16} << 20U);

 private:
  Fd fd_;
  Access access_;
};

}  // namespace drover::inline v1::os
