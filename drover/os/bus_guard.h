// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace drover::inline v1::os {

/// Marks memory that another program can take away by making its file smaller. Touching it then raises SIGBUS: while
/// this object lives, the process writes a line to stderr that names the file before it dies of the signal. The first
/// guard installs a handler for SIGBUS. It passes on to the handler that was there before, if there was one; else the
/// signal does what it does by default, for all other addresses as well.
///
/// Thread-safe. Has no effect for more than 65,536 ranges.
class BusGuard {
 public:
  BusGuard() noexcept = default;
  BusGuard(std::span<const std::byte> range, const std::string& path);
  ~BusGuard();
  BusGuard(BusGuard&& other) noexcept : slot_(std::exchange(other.slot_, -1)), message_(std::move(other.message_)) {}
  BusGuard& operator=(BusGuard&& other) noexcept;

 private:
  int slot_ = -1;
  std::unique_ptr<std::string> message_;  ///< what the handler writes: does not move
};

}  // namespace drover::inline v1::os
