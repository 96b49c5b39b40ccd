// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>

#include "drover/os/mapping.h"
#include "drover/pool/layout.h"

namespace drover::inline v1::detail {

inline constexpr const char* kWrittenOver = "a worker wrote over the pool's shared memory";

/// A pool's memory: one file that parent and workers map piece by piece as they meet the pieces. Thread-safe.
class PoolSegment {
 public:
  /// Parent: a new segment with its header in place.
  PoolSegment();
  /// Worker: the segment behind an inherited descriptor.
  explicit PoolSegment(os::MemoryFile file);

  PoolHeader& header() const noexcept { return *reinterpret_cast<PoolHeader*>(header_mapping_.data()); }
  const os::MemoryFile& file() const noexcept { return file_; }

  /// A fresh range of the file, page-aligned, of zero bytes that take no memory until they are touched. Throws
  /// std::system_error when the file would become larger than files of this process may be; ranges that were given back
  /// count. Throws Error when the header's word for the end was written over.
  std::uint64_t append(std::uint64_t length);
  /// Puts `data` into a fresh range and returns its offset. Throws OutOfMemory.
  std::uint64_t store(std::span<const std::byte> data);
  /// Reserves and fills a range from append, or throws and gives what it has taken of it back.
  void fill(std::uint64_t offset, std::span<const std::byte> data) const;
  /// Gives the memory of a range back. Does nothing for a range that append cannot have given, or that map has mapped:
  /// offsets come from shared memory, and boards and rings stay.
  void discard(std::uint64_t offset, std::uint64_t length) const noexcept;

  /// The range, mapped for as long as the segment lives. Asking again costs a look-up. Throws Error when it is mapped
  /// in another length.
  std::byte* map(std::uint64_t offset, std::uint64_t length);

 private:
  bool meets_mapped(std::uint64_t offset, std::uint64_t length) const noexcept;

  os::MemoryFile file_;
  os::Mapping header_mapping_;
  std::atomic<std::uint64_t> handed_out_{0};  ///< an end that append has seen: the header's is never lower
  mutable std::mutex mutex_;
  std::map<std::uint64_t, os::Mapping> mappings_;  // protected by mutex_
};

/// Maps a value that a worker stored, to be read. Throws Incompatible when it claims to lie outside the file.
os::Mapping map_spilled(const PoolSegment& segment, std::uint64_t offset, std::uint64_t length);

}  // namespace drover::inline v1::detail
