// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "drover/os/memory_file.h"

namespace drover::inline v1::os {

/// Owns a shared mapping of part of a file. Move-only; the file may be closed before.
class Mapping {
 public:
  Mapping() noexcept = default;
  /// `offset` must be a multiple of the page size. Throws std::system_error ("mmap"; EBADF, as MemoryFile says).
  Mapping(const MemoryFile& file, std::uint64_t offset, std::size_t length);
  Mapping(const Fd& file, std::uint64_t offset, std::size_t length, bool writable);
  ~Mapping();
  Mapping(Mapping&& other) noexcept : data_(std::exchange(other.data_, {})) {}
  Mapping& operator=(Mapping&& other) noexcept;

  std::byte* data() const noexcept { return data_.data(); }
  std::size_t size() const noexcept { return data_.size(); }

 private:
  std::span<std::byte> data_;
};

inline constexpr std::size_t kPageSize = 4096;

constexpr std::uint64_t round_to_page(std::uint64_t size) noexcept { return (size + kPageSize - 1) & ~(kPageSize - 1); }

}  // namespace drover::inline v1::os
