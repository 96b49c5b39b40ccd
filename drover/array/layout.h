// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <utility>

#include "drover/array/shape.h"
#include "drover/array/slice.h"

/// Where the elements of an array lie: extents and strides, and what slicing and turning make of them. Pure.
namespace drover::inline v1::detail {

/// For each axis, the distance of neighbours in elements.
template <std::size_t Rank>
using Strides = std::array<std::ptrdiff_t, Rank>;

template <std::size_t Rank>
struct Layout {
  Shape<Rank> shape;
  Strides<Rank> strides{};
};

/// Without gaps.
template <std::size_t Rank>
Layout<Rank> dense_layout(const Shape<Rank>& shape, Order order) noexcept {
  Layout<Rank> layout{shape, {}};
  std::ptrdiff_t stride = 1;
  for (std::size_t i = 0; i < Rank; ++i) {
    const std::size_t axis = order == Order::kC ? Rank - 1 - i : i;
    layout.strides[axis] = stride;
    stride *= static_cast<std::ptrdiff_t>(shape[axis]);
  }
  return layout;
}

/// Whether the elements fill a piece of memory in that order without gaps. Axes of one element have no say.
template <std::size_t Rank>
bool is_dense(const Layout<Rank>& layout, Order order) noexcept {
  if (layout.shape.size() == 0) return true;
  const Layout<Rank> wanted = dense_layout(layout.shape, order);
  for (std::size_t axis = 0; axis < Rank; ++axis) {
    if (layout.shape[axis] != 1 && layout.strides[axis] != wanted.strides[axis]) return false;
  }
  return true;
}

template <std::size_t Rank>
bool is_dense(const Layout<Rank>& layout) noexcept {
  return is_dense(layout, Order::kC) || is_dense(layout, Order::kFortran);
}

template <std::size_t Rank>
Layout<Rank> transposed(const Layout<Rank>& layout) {
  std::array<std::size_t, Rank> extents{};
  Strides<Rank> strides{};
  for (std::size_t axis = 0; axis < Rank; ++axis) {
    extents[axis] = layout.shape[Rank - 1 - axis];
    strides[axis] = layout.strides[Rank - 1 - axis];
  }
  return {Shape<Rank>(extents), strides};
}

/// What is said about one axis when an array is sliced: an index, which drops it, or a Slice, which keeps it.
template <class Part>
concept AxisPart = std::integral<Part> || std::same_as<Part, Slice>;

template <std::size_t Rank, class... Part>
inline constexpr std::size_t kept_axes = Rank - (std::size_t{0} + ... + std::size_t{std::integral<Part>});

template <std::size_t Kept>
struct Sliced {
  std::ptrdiff_t offset = 0;  ///< of the first element
  Layout<Kept> layout;
};

/// Axes that are not named stay whole.
template <std::size_t Rank, AxisPart... Part>
Sliced<kept_axes<Rank, Part...>> sliced(const Layout<Rank>& layout, const Part&... part) {
  constexpr std::size_t kept = kept_axes<Rank, Part...>;
  std::array<std::size_t, kept> extents{};
  Strides<kept> strides{};
  std::ptrdiff_t offset = 0;
  std::size_t axis = 0, to = 0;
  const auto take = [&]<class P>(const P& wanted) {
    const Picked picked = pick(wanted, layout.shape[axis], axis);
    const std::ptrdiff_t stride = layout.strides[axis];
    if (picked.count != 0) offset += static_cast<std::ptrdiff_t>(picked.from) * stride;
    if constexpr (!std::integral<P>) {
      extents[to] = picked.count;
      strides[to++] = stride * static_cast<std::ptrdiff_t>(picked.count > 1 ? picked.step : 1);
    }
    ++axis;
  };
  (take(part), ...);
  for (std::size_t left = Rank - sizeof...(Part); left > 0; --left) take(Slice{});
  return {offset, {Shape<kept>(extents), strides}};
}

/// Calls visit(offset_a, offset_b) with where each run along the last axis begins in two arrays of one shape.
template <std::size_t Axis = 0, std::size_t Rank, class Visit>
void for_each_run(const Shape<Rank>& shape, const Strides<Rank>& a, const Strides<Rank>& b, std::ptrdiff_t at_a,
                  std::ptrdiff_t at_b, const Visit& visit) {
  if constexpr (Axis + 1 == Rank) {
    visit(at_a, at_b);
  } else {
    for (std::size_t i = 0; i < shape[Axis]; ++i, at_a += a[Axis], at_b += b[Axis]) {
      for_each_run<Axis + 1>(shape, a, b, at_a, at_b, visit);
    }
  }
}

}  // namespace drover::inline v1::detail
