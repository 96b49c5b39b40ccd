// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace drover::inline v1::shm {

/// What stands before the data in a .npy file (NumPy's format 1.0, 2.0, 3.0: numpy.lib.format). Our own files have
/// format 1.0 and a header of exactly kNpyHeaderSize bytes, so that the data begin at a page.
struct NpyHeader {
  std::string descr;                 ///< NumPy's type string: "<f8", "|u1", "|V24"
  bool fortran_order = false;        ///< first index fastest
  std::vector<std::uint64_t> shape;  ///< extents; none for a single value
  std::uint64_t data_offset = 0;     ///< bytes before the data

  std::uint64_t item_size() const;  ///< bytes, from descr. Throws Incompatible for an object or structured type.
  std::uint64_t data_size() const;  ///< bytes. Throws InvalidArgument when it does not fit 63 bits.

  bool operator==(const NpyHeader&) const = default;
};

inline constexpr std::size_t kNpyHeaderSize = 4096;

/// No header that parse_npy_header takes is larger, so this much of a file is enough for it.
inline constexpr std::size_t kMaxNpyHeaderSize = std::size_t{1} << 17;

/// The header page of our own files. Throws InvalidArgument for a shape that does not fit the page.
std::vector<std::byte> format_npy_header(const NpyHeader& header);

/// Reads the beginning of a file, which may hold anything. Throws Incompatible with what is wrong; `where` names the
/// file in the message.
NpyHeader parse_npy_header(std::span<const std::byte> beginning, const std::string& where);

}  // namespace drover::inline v1::shm
