// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "drover/array/array_copy.h"
#include "drover/array/array_iterator.h"
#include "drover/array/element_type.h"
#include "drover/array/layout.h"
#include "drover/array/shape.h"
#include "drover/array/slice.h"
#include "drover/base/count.h"

namespace drover::inline v1 {

namespace shm {
class Block;
}

namespace detail {

[[noreturn]] void refuse_span(std::span<const std::size_t> extents);
[[noreturn]] void refuse_reshape(std::span<const std::size_t> from, std::span<const std::size_t> to, bool contiguous);

/// What keeps the memory of a view alive. `block` is what `owner` holds, when that is a block of shared memory.
struct Pin {
  std::shared_ptr<const void> owner;
  shm::Block* block = nullptr;
};

}  // namespace detail

/// An array of elements that lie somewhere else, in steps of any length; `T` may be const. It keeps that memory alive
/// (when it was made with something to hold). Copying a view copies no elements, and constness is that of T, as with
/// std::span. It is a range of its elements in the order of their indices, the last one fastest.
///
/// Views of shared memory may be arguments and results of tasks: the elements stay where they are.
///
/// Const methods may run concurrently; who writes elements that others read must see to the order. Any process that was
/// given it.
template <class T, std::size_t Rank>
class ArrayView {
  static_assert(ArrayElement<std::remove_const_t<T>>,
                "the elements of an array must be plain data: numbers, enums, or pairs, tuples, std::arrays and "
                "aggregates of those, without pointers; enable_memcpy<T> admits another trivially copyable class");

 public:
  using element_type = T;
  using value_type = std::remove_const_t<T>;
  using iterator = detail::ArrayIterator<T, Rank>;

  ArrayView() noexcept = default;  ///< no elements
  /// A view of other memory, elements in the order of their indices. Such a view does not travel.
  ArrayView(T* data, const Shape<Rank>& shape, std::shared_ptr<const void> owner = nullptr)
      : ArrayView(data, detail::dense_layout(shape, Order::kC), {std::move(owner), nullptr}) {}
  ArrayView(T* data, const detail::Layout<Rank>& layout, detail::Pin pin)
      : data_(data), layout_(layout), pin_(std::move(pin)) {}
  template <class U>
  requires(std::is_const_v<T>&& std::same_as<U, value_type>)
      // NOLINTNEXTLINE(google-explicit-constructor): as with std::span
      ArrayView(const ArrayView<U, Rank>& other)
      : ArrayView(other.element_data(), other.layout(), other.pin()) {}

  ArrayView(const ArrayView&) = default;
  ArrayView(ArrayView&& other) noexcept { swap(other); }  ///< the other one has no elements then
  ArrayView& operator=(ArrayView other) noexcept {
    swap(other);
    return *this;
  }
  ~ArrayView() = default;

  static constexpr std::size_t rank() noexcept { return Rank; }
  const Shape<Rank>& extents() const noexcept { return layout_.shape; }
  std::size_t extent(std::size_t axis) const noexcept { return layout_.shape[axis]; }
  /// From one element to the next along an axis, in elements.
  std::ptrdiff_t stride(std::size_t axis) const noexcept { return layout_.strides[axis]; }
  std::size_t size() const noexcept { return layout_.shape.size(); }  ///< number of elements
  bool empty() const noexcept { return size() == 0; }

  /// An index that is outside is undefined behaviour here, as with std::vector.
  template <std::integral... I>
  requires(sizeof...(I) == Rank) T& operator()(I... index) const noexcept {
    return locate(std::make_index_sequence<Rank>{}, static_cast<std::size_t>(index)...);
  }
  /// Throws std::out_of_range with the index, the axis and its extent.
  template <std::integral... I>
  requires(sizeof...(I) == Rank) T& at(I... index) const {
    std::size_t axis = 0;
    (check_index(index, axis++), ...);
    return (*this)(index...);
  }

  // What follows looks into the memory that the view holds, so it cannot be asked of a temporary.
  iterator begin() const& noexcept { return {data_, layout_, 0}; }
  iterator end() const& noexcept { return {data_, layout_, static_cast<std::ptrdiff_t>(size())}; }
  T* data() const& noexcept { return data_; }  ///< the first element
  /// All elements in the order in which they lie in memory. Throws InvalidArgument when there are gaps between them.
  std::span<T> span() const& {
    if (!detail::is_dense(layout_)) detail::refuse_span(layout_.shape);
    return {data_, size()};
  }
  // NOLINTNEXTLINE(google-explicit-constructor): a view of one dimension is as good as a span
  operator std::span<T>() const& requires(Rank == 1) { return span(); }
  // NOLINTNEXTLINE(google-explicit-constructor): likewise
  operator std::span<const T>() const& requires(Rank == 1 && !std::is_const_v<T>) { return span(); }
  iterator begin() const&& = delete;
  iterator end() const&& = delete;
  T* data() const&& = delete;
  std::span<T> span() const&& = delete;
  operator std::span<T>() const&& requires(Rank == 1) = delete;
  operator std::span<const T>() const&& requires(Rank == 1 && !std::is_const_v<T>) = delete;

  /// A copy of the elements.
  // NOLINTNEXTLINE(google-explicit-constructor): what was sent as a vector is received as one
  operator std::vector<value_type>() const requires(Rank == 1) {
    std::vector<value_type> copy(size());
    ArrayView<value_type, Rank>(copy.data(), Shape<Rank>(copy.size())).copy_from(*this);
    return copy;
  }

  /// Rows from `from` to `to`, without `to`: part of the first axis. Throws std::out_of_range.
  ArrayView rows(Count from, Count to) const { return slice(Slice{std::size_t{from}, std::size_t{to}}); }

  /// For each axis a Slice, which keeps it, or an index, which drops it; axes that are not named stay whole:
  /// `a.slice(Slice{0, 10}, Slice{.step = 2})`, `a.slice(3)` is row 3. Throws std::out_of_range, InvalidArgument.
  template <detail::AxisPart... Part>
  requires(sizeof...(Part) >= 1 && sizeof...(Part) <= Rank) auto slice(const Part&... part) const {
    constexpr std::size_t kept = detail::kept_axes<Rank, Part...>;
    static_assert(kept > 0, "slice() with an index for each axis has no dimension left: use operator() or at()");
    if constexpr (kept > 0) {
      const detail::Sliced<kept> part_of = detail::sliced(layout_, part...);
      return ArrayView<T, kept>(data_ + part_of.offset, part_of.layout, pin_);
    }
  }

  /// The same elements in the same order under other indices. Throws InvalidArgument when their number differs, or when
  /// the elements do not lie one after the other in the order of their indices.
  template <std::size_t NewRank>
  ArrayView<T, NewRank> reshape(const Shape<NewRank>& shape) const {
    const bool contiguous = detail::is_dense(layout_, Order::kC);
    if (!contiguous || shape.size() != size()) detail::refuse_reshape(layout_.shape, shape, contiguous);
    return {data_, detail::dense_layout(shape, Order::kC), pin_};
  }
  template <std::integral... I>
  ArrayView<T, sizeof...(I)> reshape(I... extents) const {
    return reshape(Shape<sizeof...(I)>(extents...));
  }

  /// The indices in reverse order: rows become columns.
  ArrayView transpose() const { return {data_, detail::transposed(layout_), pin_}; }

  void fill(value_type value) const requires(!std::is_const_v<T>) { detail::fill_elements(data_, layout_, value); }
  /// Throws InvalidArgument when the shapes differ. The two must not overlap, unless both have no gaps and one order.
  void copy_from(const ArrayView<const value_type, Rank>& other) const requires(!std::is_const_v<T>) {
    detail::copy_elements(other.element_data(), other.layout(), data_, layout_);
  }
  /// In the order of the indices. Throws InvalidArgument when there are fewer or more elements.
  template <std::ranges::input_range Range>
  requires(!std::is_const_v<T> &&
           !std::convertible_to<Range, const ArrayView<const value_type, Rank>&>) void copy_from(Range&& range) const {
    detail::copy_range(range, data_, layout_);
  }

  // For code that hands views on: what keeps the memory alive, and where the elements are.
  const detail::Pin& pin() const noexcept { return pin_; }
  const detail::Layout<Rank>& layout() const noexcept { return layout_; }
  T* element_data() const noexcept { return data_; }

 private:
  void swap(ArrayView& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(layout_, other.layout_);
    std::swap(pin_, other.pin_);
  }
  // Unsigned, as pointer arithmetic in loops is: this way g++ makes of a sum what it makes of one over a plain pointer.
  template <std::size_t... Axis, class... I>
  T& locate(std::index_sequence<Axis...>, I... index) const noexcept {
    return data_[(... + (index * static_cast<std::size_t>(layout_.strides[Axis])))];
  }
  template <std::integral I>
  void check_index(I index, std::size_t axis) const {
    if (static_cast<std::uintmax_t>(index) >= extent(axis)) {
      detail::refuse_index(static_cast<std::intmax_t>(index), axis, extent(axis));
    }
  }

  T* data_ = nullptr;
  detail::Layout<Rank> layout_;
  detail::Pin pin_;
};

}  // namespace drover::inline v1
