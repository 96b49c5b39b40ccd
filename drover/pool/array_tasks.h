// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "drover/array/random.h"
#include "drover/array/shared_array.h"
#include "drover/pool/pool.h"

namespace drover::inline v1 {
namespace detail {

/// How many of `items` of so many bytes make a piece. It does not depend on the number of workers, so results do not
/// either. A piece is long against what it costs to hand one out, and there are enough for many workers.
inline std::size_t items_in_piece(std::size_t items, std::size_t item_bytes) noexcept {
  constexpr std::size_t kSmallest = std::size_t{1} << 20U, kLargest = std::size_t{16} << 20U, kPieces = 128;
  const std::size_t bytes = std::clamp(items * item_bytes / kPieces, kSmallest, kLargest);
  return std::max<std::size_t>(1, bytes / std::max<std::size_t>(1, item_bytes));
}

/// Calls F for pieces of the first axis, in their order; with the first row's index too, if F takes it.
template <auto F, class T, std::size_t Rank>
auto map_rows(Pool& pool, const ArrayView<T, Rank>& array, bool ordered) {
  using View = ArrayView<T, Rank>;
  constexpr bool with_index = std::is_invocable_v<decltype(F), View, std::size_t>;
  static_assert(with_index || std::is_invocable_v<decltype(F), View>,
                "the function must take an ArrayView of some rows, or that and the index of the first of them");
  std::vector<std::conditional_t<with_index, std::pair<View, std::size_t>, View>> pieces;
  const std::size_t rows = array.extent(0);
  const std::size_t step = items_in_piece(rows, array.size() / std::max<std::size_t>(1, rows) * sizeof(T));
  for (std::size_t from = 0; from < rows; from += std::min(step, rows - from)) {
    View piece = array.rows(from, from + std::min(step, rows - from));
    if constexpr (with_index) {
      pieces.emplace_back(std::move(piece), from);
    } else {
      pieces.push_back(std::move(piece));
    }
  }
  return pool.template map<F>(std::move(pieces), {.ordered = ordered});
}

template <class T>
void fill_normal_piece(const ArrayView<T, 1>& piece, std::uint64_t seed, std::uint64_t first) {
  if constexpr (std::is_same_v<T, double>) {
    normal_numbers(seed, first, piece.span());
  } else {
    std::array<double, 1024> numbers;
    for (std::size_t i = 0; i < piece.size(); i += numbers.size()) {
      const std::size_t count = std::min(numbers.size(), piece.size() - i);
      normal_numbers(seed, first + i, std::span(numbers).first(count));
      std::transform(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(count), &piece(i),
                     [](double x) { return static_cast<T>(x); });
    }
  }
}

}  // namespace detail

/// Calls F for all rows, a number of rows at a time, on the workers of the pool, and waits for the end:
/// `void f(ArrayView<double, 2> rows)`, or with `std::size_t first_row` as a second parameter. Throws the first error
/// of a call; what had not begun by then is left out, what is running may go on for a moment after the throw. The array
/// must be one that travels: a SharedArray or a view of one.
template <auto F, class T, std::size_t Rank>
void for_rows(Pool& pool, const ArrayView<T, Rank>& array) {
  auto calls = detail::map_rows<F>(pool, array, false);
  for (auto it = calls.begin(); it != calls.end(); ++it) static_cast<void>(*it);
}

/// Calls F as for_rows does and combines what it returns, from the first rows to the last:
/// `combine(combine(r0, r1), r2)`, by default the sum; the same bits whatever the number of workers. Without rows, R{}.
template <auto F, auto Combine = std::plus<>{}, class T, std::size_t Rank>
auto reduce(Pool& pool, const ArrayView<T, Rank>& array) {
  using R = wire::ResultOf<F>;
  static_assert(!std::is_void_v<R>, "reduce() needs a function that returns something; for_rows() needs none");
  auto parts = detail::map_rows<F>(pool, array, true);
  auto it = parts.begin();
  if (it == parts.end()) return R{};
  R result = *it;
  for (++it; it != parts.end(); ++it) result = std::invoke(Combine, std::move(result), *it);
  return result;
}

/// Fills an array of float or double with standard normal numbers (see normal_numbers), numbered as they lie in memory:
/// the same numbers whatever the number of workers. Throws InvalidArgument when there are gaps between the elements.
template <class T, std::size_t Rank>
requires std::is_floating_point_v<T>
void fill_normal(Pool& pool, const ArrayView<T, Rank>& array, std::uint64_t seed) {
  const std::size_t size = array.span().size();
  const ArrayView<T, 1> all(array.element_data(), detail::dense_layout(Shape<1>(size), Order::kC), array.pin());
  std::vector<std::tuple<ArrayView<T, 1>, std::uint64_t, std::uint64_t>> pieces;
  const std::size_t step = detail::items_in_piece(size, sizeof(T));
  for (std::size_t from = 0; from < size; from += std::min(step, size - from)) {
    pieces.emplace_back(all.rows(from, from + std::min(step, size - from)), seed, from);
  }
  auto calls = pool.map<&detail::fill_normal_piece<T>>(std::move(pieces), {.ordered = false});
  for (auto it = calls.begin(); it != calls.end(); ++it) static_cast<void>(*it);
}

}  // namespace drover::inline v1
