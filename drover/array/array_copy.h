// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <ranges>
#include <span>

#include "drover/array/array_iterator.h"
#include "drover/array/layout.h"

/// Loops over all elements of arrays, as fast as their strides allow.
namespace drover::inline v1::detail {

[[noreturn]] void refuse_shapes(std::span<const std::size_t> from, std::span<const std::size_t> to);
[[noreturn]] void refuse_count(std::size_t given, std::span<const std::size_t> to);
[[noreturn]] void refuse_surplus(std::span<const std::size_t> to);

template <class T, std::size_t Rank>
void fill_elements(T* data, const Layout<Rank>& layout, const T& value) {
  if (is_dense(layout)) {
    std::fill_n(data, layout.shape.size(), value);
    return;
  }
  const std::ptrdiff_t step = layout.strides[Rank - 1];
  const auto fill_run = [&](std::ptrdiff_t begin, std::ptrdiff_t) {
    T* at = data + begin;
    for (std::size_t i = 0; i < layout.shape[Rank - 1]; ++i) at[static_cast<std::ptrdiff_t>(i) * step] = value;
  };
  for_each_run(layout.shape, layout.strides, layout.strides, 0, 0, fill_run);
}

/// Throws InvalidArgument when the shapes differ. The two may overlap only if they are dense and of one order.
template <class T, std::size_t Rank>
void copy_elements(const T* from, const Layout<Rank>& from_layout, T* to, const Layout<Rank>& to_layout) {
  const Shape<Rank>& shape = to_layout.shape;
  if (from_layout.shape != shape) refuse_shapes(from_layout.shape, shape);
  if (shape.size() == 0) return;
  const auto both_are = [&](Order order) { return is_dense(from_layout, order) && is_dense(to_layout, order); };
  if (both_are(Order::kC) || both_are(Order::kFortran)) {
    std::memmove(static_cast<void*>(to), static_cast<const void*>(from), shape.size() * sizeof(T));
    return;
  }
  const std::ptrdiff_t from_step = from_layout.strides[Rank - 1], to_step = to_layout.strides[Rank - 1];
  const auto copy_run = [&](std::ptrdiff_t from_begin, std::ptrdiff_t to_begin) {
    const T* source = from + from_begin;
    T* target = to + to_begin;
    const auto count = static_cast<std::ptrdiff_t>(shape[Rank - 1]);
    for (std::ptrdiff_t i = 0; i < count; ++i) target[i * to_step] = source[i * from_step];
  };
  for_each_run(shape, from_layout.strides, to_layout.strides, 0, 0, copy_run);
}

/// Fills an array, in the order of its indices, from a range of exactly as many elements. Throws InvalidArgument when
/// there are fewer or more: at once when the range knows its size, else when all places are filled.
template <class T, std::size_t Rank, std::ranges::input_range Range>
void copy_range(Range&& range, T* to, const Layout<Rank>& layout) {
  const std::size_t size = layout.shape.size();
  if constexpr (std::ranges::sized_range<Range>) {
    const auto given = static_cast<std::size_t>(std::ranges::size(range));
    if (given != size) refuse_count(given, layout.shape);
  }
  ArrayIterator<T, Rank> place(to, layout, 0);
  std::size_t count = 0;
  for (auto&& item : range) {
    if (count == size) refuse_surplus(layout.shape);
    *place = static_cast<T>(item);
    ++place;
    ++count;
  }
  if (count != size) refuse_count(count, layout.shape);
}

}  // namespace drover::inline v1::detail
