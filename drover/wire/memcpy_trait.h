// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <complex>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include "drover/wire/aggregate.h"
#include "drover/wire/archive_trait.h"

namespace drover::inline v1 {

namespace wire::detail {

template <class T>
consteval bool is_made_of_bytes();

}  // namespace wire::detail

/// Whether objects of T travel by copying their bytes. True by itself for numbers, enums, std::complex, std::chrono
/// times, and arrays, pairs, tuples and aggregates of those. Specialise it as true for another trivially copyable class
/// that holds no pointers (its padding travels as it is, nobody can see where it lies), or as false for an aggregate
/// that must not be copied this way, for example because it has a Codec of its own.
template <class T>
inline constexpr bool enable_memcpy = wire::detail::is_made_of_bytes<T>();

namespace wire {
namespace detail {

/// The types that objects of a standard template consist of, as TypeList; void for every other type.
template <class T>
struct StandardParts {
  using Types = void;
};
template <class T>
struct StandardParts<std::complex<T>> {
  using Types = TypeList<T>;
};
template <class Rep, class Period>
struct StandardParts<std::chrono::duration<Rep, Period>> {
  using Types = TypeList<Rep>;
};
template <class Clock, class Length>
struct StandardParts<std::chrono::time_point<Clock, Length>> {
  using Types = TypeList<Length>;
};
template <class T, std::size_t N>
struct StandardParts<std::array<T, N>> {
  using Types = TypeList<T>;
};
template <class A, class B>
struct StandardParts<std::pair<A, B>> {
  using Types = TypeList<A, B>;
};
template <class... T>
struct StandardParts<std::tuple<T...>> {
  using Types = TypeList<T...>;
};

template <class T>
concept StandardTemplate = !std::is_void_v<typename StandardParts<T>::Types>;

template <class... T>
consteval bool all_enabled(TypeList<T...>) {
  return (enable_memcpy<T> && ...);
}

// is_trivially_copyable would be the wrong question: it is true for pointers and spans, and false for pairs.
template <class T>
consteval bool is_made_of_bytes() {
  if constexpr (std::is_const_v<T> || std::is_volatile_v<T>) {
    return false;
  } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
    return true;
  } else if constexpr (std::is_bounded_array_v<T>) {
    return enable_memcpy<std::remove_extent_t<T>>;
  } else if constexpr (StandardTemplate<T>) {
    return all_enabled(typename StandardParts<T>::Types{});
  } else if constexpr (PlainAggregate<T>) {
    if constexpr (Archived<T>) {
      return false;
    } else {
      return all_enabled(FieldTypes<T>{});
    }
  } else {
    return false;
  }
}

template <class T>
consteval bool checked_memcpy() {
  if constexpr (enable_memcpy<T> && !is_made_of_bytes<T>()) {
    static_assert(std::is_trivially_copyable_v<T>, "enable_memcpy<T> is for trivially copyable classes only");
  }
  return enable_memcpy<T>;
}

}  // namespace detail

/// The answer of enable_memcpy, checked: a T enabled by hand must be trivially copyable.
template <class T>
inline constexpr bool travels_by_memcpy = detail::checked_memcpy<T>();

/// Nonzero when every value of T is encoded in that many bytes.
template <class T>
inline constexpr std::size_t encoded_size_fixed = travels_by_memcpy<T> ? sizeof(T) : 0;

}  // namespace wire
}  // namespace drover::inline v1
