// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <iterator>
#include <type_traits>

#include "drover/array/layout.h"

namespace drover::inline v1::detail {

/// Goes through the elements in the order of their indices, the last one fastest, whatever the strides. An increment is
/// an addition, but for one division at the end of each run of equal strides; a contiguous array is one run.
///
/// One thread at a time. The layout (the view that gave the iterator) must outlive it.
template <class T, std::size_t Rank>
class ArrayIterator {
 public:
  using iterator_concept = std::random_access_iterator_tag;
  using iterator_category = std::random_access_iterator_tag;
  using value_type = std::remove_const_t<T>;
  using difference_type = std::ptrdiff_t;
  using pointer = T*;
  using reference = T&;

  ArrayIterator() noexcept = default;
  ArrayIterator(T* data, const Layout<Rank>& layout, std::ptrdiff_t position) noexcept
      : data_(data), layout_(&layout), size_(static_cast<std::ptrdiff_t>(layout.shape.size())) {
    const bool contiguous = is_dense(layout, Order::kC);
    step_ = contiguous ? 1 : layout.strides[Rank - 1];
    run_ = contiguous ? size_ : static_cast<std::ptrdiff_t>(layout.shape[Rank - 1]);
    seek(position);
  }

  reference operator*() const noexcept { return *at_; }
  pointer operator->() const noexcept { return at_; }
  reference operator[](difference_type n) const noexcept { return *(*this + n); }

  ArrayIterator& operator++() noexcept {
    ++position_;
    if (--left_ == 0) {
      seek(position_);
    } else {
      at_ += step_;
    }
    return *this;
  }
  ArrayIterator& operator--() noexcept { return *this -= 1; }
  ArrayIterator& operator+=(difference_type n) noexcept {
    seek(position_ + n);
    return *this;
  }
  ArrayIterator& operator-=(difference_type n) noexcept { return *this += -n; }

  ArrayIterator operator++(int) noexcept {
    const ArrayIterator old = *this;
    ++*this;
    return old;
  }
  ArrayIterator operator--(int) noexcept {
    const ArrayIterator old = *this;
    --*this;
    return old;
  }

  friend ArrayIterator operator+(ArrayIterator it, difference_type n) noexcept { return it += n; }
  friend ArrayIterator operator+(difference_type n, ArrayIterator it) noexcept { return it += n; }
  friend ArrayIterator operator-(ArrayIterator it, difference_type n) noexcept { return it -= n; }
  friend difference_type operator-(const ArrayIterator& a, const ArrayIterator& b) noexcept {
    return a.position_ - b.position_;
  }
  friend bool operator==(const ArrayIterator& a, const ArrayIterator& b) noexcept { return a.position_ == b.position_; }
  friend std::strong_ordering operator<=>(const ArrayIterator& a, const ArrayIterator& b) noexcept {
    return a.position_ <=> b.position_;
  }

 private:
  void seek(std::ptrdiff_t position) noexcept {
    position_ = position;
    if (position < 0 || position >= size_) {  // the end, which nobody looks at
      at_ = data_;
      left_ = 0;
    } else if (run_ == size_) {
      at_ = data_ + position * step_;
      left_ = size_ - position;
    } else {
      seek_run(position / run_, position % run_);
    }
  }

  void seek_run(std::ptrdiff_t run, std::ptrdiff_t inside) noexcept {
    at_ = data_ + inside * step_;
    left_ = run_ - inside;
    for (std::size_t axis = Rank - 1; axis-- > 0 && run != 0;) {
      const auto extent = static_cast<std::ptrdiff_t>(layout_->shape[axis]);
      at_ += run % extent * layout_->strides[axis];
      run /= extent;
    }
  }

  T* at_ = nullptr;
  std::ptrdiff_t step_ = 0;      ///< to the next element of the run
  std::ptrdiff_t left_ = 0;      ///< elements of the run from here on
  std::ptrdiff_t position_ = 0;  ///< among all elements
  T* data_ = nullptr;
  const Layout<Rank>* layout_ = nullptr;
  std::ptrdiff_t size_ = 0, run_ = 0;
};

}  // namespace drover::inline v1::detail
