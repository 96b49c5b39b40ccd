// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

namespace drover::inline v1 {

inline constexpr std::size_t kMaxRank = 8;

/// Which index moves fastest through memory: the last one (C, NumPy's default) or the first one (Fortran, MATLAB).
enum class Order : std::uint8_t { kC, kFortran };

namespace detail {

/// As Python writes it: "(3, 4)", "(3,)".
std::string text_of(std::span<const std::size_t> extents);

[[noreturn]] void refuse_extent(std::intmax_t extent);

/// Throws InvalidArgument, with the numbers, when elements of `item_size` bytes are too many for 63 bits of bytes. Zero
/// counts as one, as in NumPy, so that strides never overflow.
void check_size(std::span<const std::size_t> extents, std::size_t item_size);

template <std::integral I>
constexpr std::size_t checked_extent(I extent) {
  if constexpr (std::is_signed_v<I>) {
    if (extent < 0) refuse_extent(extent);
  }
  return static_cast<std::size_t>(extent);
}

}  // namespace detail

/// The extents of an array, made from any integers: `{10'000, n}`. Throws InvalidArgument for a negative one, and when
/// the number of elements does not fit 63 bits. Const methods may run concurrently.
template <std::size_t Rank>
class Shape {
  static_assert(Rank >= 1 && Rank <= kMaxRank, "an array has 1 to 8 dimensions");

 public:
  constexpr Shape() noexcept = default;  ///< all extents are zero

  template <std::integral... I>
  requires(sizeof...(I) == Rank)
      // NOLINTNEXTLINE(google-explicit-constructor): converting by design
      Shape(I... extents)
      : extents_{detail::checked_extent(extents)...} {
    detail::check_size(extents_, 1);
  }

  template <std::integral I>
  // NOLINTNEXTLINE(google-explicit-constructor): converting by design
  Shape(const std::array<I, Rank>& extents) : Shape(extents, std::make_index_sequence<Rank>{}) {}

  std::size_t operator[](std::size_t axis) const noexcept { return extents_[axis]; }
  static constexpr std::size_t rank() noexcept { return Rank; }
  /// The number of elements.
  std::size_t size() const noexcept {
    std::size_t product = 1;
    for (const std::size_t extent : extents_) product *= extent;
    return product;
  }

  const std::size_t* begin() const noexcept { return extents_.data(); }
  const std::size_t* end() const noexcept { return extents_.data() + Rank; }
  // NOLINTNEXTLINE(google-explicit-constructor): converting by design
  operator std::span<const std::size_t>() const noexcept { return extents_; }

  bool operator==(const Shape&) const = default;

 private:
  template <class I, std::size_t... Axis>
  Shape(const std::array<I, Rank>& extents, std::index_sequence<Axis...>) : Shape(extents[Axis]...) {}

  std::array<std::size_t, Rank> extents_{};
};

}  // namespace drover::inline v1
