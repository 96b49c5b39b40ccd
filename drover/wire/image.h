// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <span>
#include <tuple>
#include <type_traits>

#include "drover/wire/memcpy_trait.h"
#include "drover/wire/reader.h"
#include "drover/wire/type_name.h"
#include "drover/wire/writer.h"

/// Images: how types that travel by memcpy stand in a message. An image is the object's own bytes with the padding set
/// to zero, so equal values give equal bytes, nothing of the sender's memory leaks, and a view can look at the message
/// itself.
namespace drover::inline v1::wire {
namespace detail {

template <class T>
inline constexpr bool is_leaf = std::is_arithmetic_v<T> || std::is_enum_v<T> || !is_made_of_bytes<T>();
template <class Rep, class Period>
inline constexpr bool is_leaf<std::chrono::duration<Rep, Period>> = true;
template <class Clock, class Length>
inline constexpr bool is_leaf<std::chrono::time_point<Clock, Length>> = true;

template <class T>
inline constexpr bool is_std_array = false;
template <class T, std::size_t N>
inline constexpr bool is_std_array<std::array<T, N>> = true;

template <class T>
inline constexpr bool is_complex = false;
template <class T>
inline constexpr bool is_complex<std::complex<T>> = true;

/// Calls visit(leaf) for all numbers, enums, times and classes enabled by hand inside a value, as lvalues in place.
template <class T, class Visit>
constexpr void for_each_leaf(const T& value, const Visit& visit) {
  const auto deeper = [&visit](const auto&... part) { (for_each_leaf(part, visit), ...); };
  if constexpr (is_leaf<T>) {
    visit(value);
  } else if constexpr (std::is_array_v<T> || is_std_array<T>) {
    for (const auto& item : value) deeper(item);
  } else if constexpr (is_complex<T>) {  // which the standard lays out as an array
    using Number = typename T::value_type;
    deeper(reinterpret_cast<const Number(&)[2]>(value));
  } else if constexpr (StandardTemplate<T>) {
    std::apply(deeper, value);
  } else {
    visit_fields(value, deeper);
  }
}

/// The bytes at the front of a leaf that hold its value.
template <class Leaf>
struct ValueBytes : std::integral_constant<std::size_t, sizeof(Leaf)> {};
template <class Rep, class Period>
struct ValueBytes<std::chrono::duration<Rep, Period>> : ValueBytes<Rep> {};
template <class Clock, class Length>
struct ValueBytes<std::chrono::time_point<Clock, Length>> : ValueBytes<Length> {};
template <>  // the x87 format is 10 bytes in a place of 16
struct ValueBytes<long double>
    : std::integral_constant<std::size_t, std::numeric_limits<long double>::digits == 64 ? 10 : sizeof(long double)> {};

template <class... T>
consteval std::size_t sum_of_value_bytes(TypeList<T...>);

template <class T>
consteval std::size_t value_bytes() {
  if constexpr (is_leaf<T>) {
    return ValueBytes<T>::value;
  } else if constexpr (std::is_array_v<T>) {
    return std::extent_v<T> * value_bytes<std::remove_extent_t<T>>();
  } else if constexpr (is_std_array<T>) {
    return std::tuple_size_v<T> * value_bytes<typename T::value_type>();
  } else if constexpr (is_complex<T>) {
    return 2 * value_bytes<typename T::value_type>();
  } else if constexpr (StandardTemplate<T>) {
    return sum_of_value_bytes(typename StandardParts<T>::Types{});
  } else {
    return sum_of_value_bytes(FieldTypes<T>{});
  }
}

template <class... T>
consteval std::size_t sum_of_value_bytes(TypeList<T...>) {
  return (std::size_t{0} + ... + value_bytes<T>());
}

template <class... T>
consteval bool any_holds_bool(TypeList<T...>);

template <class T>
consteval bool holds_bool() {
  if constexpr (is_leaf<T>) {
    return std::is_same_v<T, bool>;
  } else if constexpr (std::is_array_v<T>) {
    return holds_bool<std::remove_extent_t<T>>();
  } else if constexpr (StandardTemplate<T>) {
    return any_holds_bool(typename StandardParts<T>::Types{});
  } else {
    return any_holds_bool(FieldTypes<T>{});
  }
}

template <class... T>
consteval bool any_holds_bool(TypeList<T...>) {
  return (holds_bool<T>() || ...);
}

/// No padding (an opaque class counts as having none unless the compiler can clear it): the object's bytes are its
/// image.
template <class T>
inline constexpr bool is_dense = value_bytes<T>() == sizeof(T);

/// The only bit patterns that are no value, of those that can be told: bools beyond 1.
template <class T>
bool bools_are_valid(const T& image) {
  bool valid = true;
  for_each_leaf(image, [&valid]<class Leaf>(const Leaf& leaf) {
    if constexpr (std::is_same_v<Leaf, bool>) valid = valid && reinterpret_cast<const unsigned char&>(leaf) <= 1;
  });
  return valid;
}

}  // namespace detail

/// Writes the image of one value to `place`, sizeof(T) bytes.
template <class T>
void store_image(std::byte* place, const T& value) {
  if constexpr (detail::is_dense<T>) {
    std::memcpy(place, &value, sizeof(T));
  } else {
    std::memset(place, 0, sizeof(T));
    const auto* base = reinterpret_cast<const std::byte*>(&value);
    detail::for_each_leaf(value, [=]<class Leaf>(const Leaf& leaf) {
      const auto* at = reinterpret_cast<const std::byte*>(&leaf);
      std::memcpy(place + (at - base), at, detail::ValueBytes<Leaf>::value);
    });
  }
}

/// Reads the image of one value.
template <class T>
T load_image(Reader& reader) {
  alignas(T) std::byte image[sizeof(T)];
  std::memcpy(image, reader.take(sizeof(T), type_name<T>()).data(), sizeof(T));
  const T& value = *std::launder(reinterpret_cast<const T*>(image));
  if constexpr (detail::holds_bool<T>()) {
    if (!detail::bools_are_valid(value)) reader.fail(type_name<T>(), "it holds a bool that is neither true nor false");
  }
  return value;
}

/// Writes a count and the images of consecutive values. load_images() reads it, and so does what reads a vector.
template <class T>
void store_images(Writer& writer, std::span<const T> values) {
  writer.put<std::uint64_t>(values.size());
  writer.align(std::min(alignof(T), kMessageAlignment));
  if constexpr (detail::is_dense<T>) {
    writer.write(values.data(), values.size_bytes());
  } else {
    for (const T& value : values) store_image(writer.extend(sizeof(T)), value);
  }
}

/// Consecutive values as they stand in the message, without a copy.
template <class T>
requires(alignof(T) <= kMessageAlignment) std::span<const T> load_images(Reader& reader) {
  const std::size_t count = reader.count(sizeof(T), type_name<T>());
  reader.align(alignof(T), type_name<T>());
  const std::byte* place = reader.take(count * sizeof(T), type_name<T>()).data();
  const std::span values(reinterpret_cast<const T*>(place), count);
  if constexpr (detail::holds_bool<T>()) {
    for (const T& value : values) {
      if (!detail::bools_are_valid(value))
        reader.fail(type_name<T>(), "it holds a bool that is neither true nor false");
    }
  }
  return values;
}

}  // namespace drover::inline v1::wire
