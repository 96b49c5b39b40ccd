// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "drover/base/count.h"

namespace drover::inline v1 {
namespace detail {

[[noreturn]] void refuse_position(std::uintmax_t position);

/// A position along an axis, from any integer type; negative ones count from the end.
class Position {
 public:
  constexpr Position() noexcept = default;

  template <std::integral I>
  // NOLINTNEXTLINE(google-explicit-constructor): converting by design
  constexpr Position(I position) : value_(static_cast<std::ptrdiff_t>(position)) {
    if constexpr (std::is_unsigned_v<I> && sizeof(I) >= sizeof(std::ptrdiff_t)) {
      if (value_ < 0) refuse_position(position);
    }
  }

  constexpr std::ptrdiff_t value() const noexcept { return value_; }

 private:
  std::ptrdiff_t value_ = 0;
};

}  // namespace detail

/// Part of an axis: from `from` up to `to`, without `to`, each `step`-th. Negative positions count from the end:
/// `Slice{}` is all of an axis, `Slice{.to = -1}` all but its last, `Slice{.step = 2}` every other one.
struct Slice {
  static constexpr std::ptrdiff_t kEnd = std::numeric_limits<std::ptrdiff_t>::max();

  detail::Position from = 0;
  detail::Position to = kEnd;
  Count step = 1;
};

namespace detail {

/// A slice of an axis of known extent.
struct Picked {
  std::size_t from = 0, count = 0, step = 1;
};

/// Throws std::out_of_range (it begins or ends outside of the axis, or ends before it begins; nothing is cut off as in
/// Python) and InvalidArgument (step 0).
Picked pick(const Slice& slice, std::size_t extent, std::size_t axis);
/// One index of an axis. Throws std::out_of_range.
Picked pick(Position index, std::size_t extent, std::size_t axis);

/// "index 12 of axis 0 is outside of the array: the extent is 10".
[[noreturn]] void refuse_index(std::intmax_t index, std::size_t axis, std::size_t extent);

}  // namespace detail
}  // namespace drover::inline v1
