// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "drover/os/fd.h"

namespace drover::inline v1::os {

/// Memory with a descriptor and no name (memfd): nothing is left of it when the last process that holds it is gone, and
/// /dev/shm need not have room. Thread-safe; any process that inherited the descriptor. When other code of the process
/// has closed the descriptor, or put another file in its place, every function throws std::system_error (EBADF), and
/// none touches that file.
class MemoryFile {
 public:
  /// An empty file that can grow and never shrink (sealed), so that no process can take pages from under another.
  static MemoryFile create(const char* debug_name);
  static MemoryFile adopt(Fd fd) { return MemoryFile(std::move(fd)); }

  const Fd& fd() const noexcept { return fd_; }
  Fd release_fd() noexcept { return std::move(fd_); }

  /// Bytes, never less than before.
  std::uint64_t size() const;
  /// Throws as above.
  void require_open() const { static_cast<void>(size()); }
  /// Makes the file at least `end` bytes long; pages come when they are touched.
  void grow_to(std::uint64_t end) const;
  /// Takes memory for the range now. Throws drover::OutOfMemory, with needed and available bytes, when it is not there.
  void reserve(std::uint64_t offset, std::uint64_t length) const;
  /// Gives the pages of the range back; they read as zero from now on.
  void discard(std::uint64_t offset, std::uint64_t length) const noexcept;

  void write_at(std::uint64_t offset, std::span<const std::byte> data) const;
  void read_at(std::uint64_t offset, std::span<std::byte> data) const;

 private:
  explicit MemoryFile(Fd fd);
  std::optional<std::uint64_t> size_if_open() const noexcept;
  Fd fd_;
  std::uint64_t device_ = 0, inode_ = 0;  ///< what tells the file from all others
};

}  // namespace drover::inline v1::os
