// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "drover/base/hash.h"
#include "drover/wire/memcpy_trait.h"
#include "drover/wire/type_name.h"

namespace drover::inline v1 {

/// What arrays are made of: types that travel by memcpy, so no pointers, and no C arrays.
template <class T>
concept ArrayElement = wire::travels_by_memcpy<T> && !std::is_array_v<T>;

namespace detail {

static_assert(std::endian::native == std::endian::little, "the types of .npy files are written as little-endian");

/// A type of elements at run time.
struct ElementType {
  std::string descr;  ///< as NumPy writes it: "<f8", "|b1", "|V24"
  std::size_t size = 0;
  std::size_t alignment = 1;
  std::string_view name;  ///< as C++ writes it
};

/// NumPy's letter: b(ool), i(nteger), u(nsigned), f(loat), c(omplex), S(tring) for char, V(oid) for all others.
template <class T>
consteval char numpy_kind() {
  if constexpr (std::is_enum_v<T>) {
    return numpy_kind<std::underlying_type_t<T>>();
  } else if constexpr (std::same_as<T, bool>) {
    return 'b';
  } else if constexpr (std::same_as<T, char>) {
    return 'S';
  } else if constexpr (std::integral<T>) {
    return std::is_signed_v<T> ? 'i' : 'u';
  } else if constexpr (std::floating_point<T>) {
    return 'f';
  } else if constexpr (std::same_as<T, std::complex<float>> || std::same_as<T, std::complex<double>> ||
                       std::same_as<T, std::complex<long double>>) {
    return 'c';
  } else {
    return 'V';
  }
}

template <class T>
ElementType element_type() {
  constexpr char kind = numpy_kind<T>();
  constexpr bool bytes = sizeof(T) == 1 || kind == 'V';
  return {std::string{bytes ? '|' : '<', kind} + std::to_string(sizeof(T)), sizeof(T), alignof(T),
          wire::type_name<T>()};
}

/// Tells element types apart within one build (hash of the compiler's name).
template <class T>
consteval std::uint64_t element_id() {
  return base::hash_text(wire::type_name<T>());
}

}  // namespace detail
}  // namespace drover::inline v1
