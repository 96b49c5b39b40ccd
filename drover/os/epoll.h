// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "drover/os/fd.h"
#include "drover/os/futex.h"

namespace drover::inline v1::os {

/// Waits for many descriptors. add and remove are thread-safe, wait belongs to one thread.
class Epoll {
 public:
  Epoll();
  /// Reports `key` while `fd` is readable or its other end is gone.
  void add(const Fd& fd, std::uint64_t key) const;
  void remove(const Fd& fd) const noexcept;
  /// The keys that are ready; empty when the deadline passed.
  std::vector<std::uint64_t> wait(const Deadline& deadline) const;

 private:
  Fd fd_;
};

}  // namespace drover::inline v1::os
