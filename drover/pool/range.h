// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <type_traits>

#include "drover/base/errors.h"

namespace drover::inline v1 {

/// The integers from first to last, without last. A map over it sends no inputs: workers count for themselves.
template <std::integral T>
class IndexRange {
 public:
  class Iterator {
   public:
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using iterator_concept = std::forward_iterator_tag;

    Iterator() = default;
    explicit Iterator(T value) : value_(value) {}
    T operator*() const { return value_; }
    Iterator& operator++() {
      ++value_;
      return *this;
    }
    Iterator operator++(int) {
      Iterator old = *this;
      ++value_;
      return old;
    }
    bool operator==(const Iterator&) const = default;

   private:
    T value_{};
  };

  IndexRange(T first, T last) : first_(first), last_(last < first ? first : last) {}
  Iterator begin() const { return Iterator(first_); }
  Iterator end() const { return Iterator(last_); }
  std::size_t size() const { return static_cast<std::size_t>(last_) - static_cast<std::size_t>(first_); }
  T front() const { return first_; }

 private:
  T first_, last_;
};

namespace detail {

template <class T, std::integral Bound>
void check_bound([[maybe_unused]] Bound bound) {
  if constexpr (std::is_unsigned_v<T> && std::is_signed_v<Bound>) {
    if (bound >= 0) return;
    throw InvalidArgument("the bound " + std::to_string(static_cast<long long>(bound)) +
                          " of range() is negative, but the type of its numbers is unsigned because the other bound's "
                          "is: make that one signed");
  }
}

}  // namespace detail

/// The integers a, a + 1, ..., b - 1; none when b <= a. Their type is the common type of both; throws InvalidArgument
/// when that cannot hold a negative one of them, as in range(-5, v.size()).
template <std::integral A, std::integral B>
IndexRange<std::common_type_t<A, B>> range(A a, B b) {
  using T = std::common_type_t<A, B>;
  detail::check_bound<T>(a);
  detail::check_bound<T>(b);
  return {static_cast<T>(a), static_cast<T>(b)};
}

}  // namespace drover::inline v1
