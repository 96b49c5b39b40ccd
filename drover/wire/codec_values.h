// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include "drover/wire/image.h"
#include "drover/wire/travels.h"

/// Codecs of numbers, plain aggregates, pairs, tuples and arrays.
namespace drover::inline v1::wire {

template <class T>
requires(travels_by_memcpy<T> && !std::is_array_v<T>) struct Codec<T> {
  static void encode(Writer& writer, const T& value) { store_image(writer.extend(sizeof(T)), value); }
  static T decode(Reader& reader) { return load_image<T>(reader); }
};

/// Field by field.
template <class T>
requires(PlainAggregate<T> && !travels_by_memcpy<T> && !Archived<T>) struct Codec<T> {
  using Parts = FieldTypes<T>;

  static void encode(Writer& writer, const T& value) {
    visit_fields(value, [&writer](const auto&... field) { (detail::encode_field(writer, field), ...); });
  }

  static T decode(Reader& reader) {
    if constexpr (requires { T{}; }) {
      T value{};
      visit_fields(value, [&reader](auto&... field) { (detail::decode_field(reader, field), ...); });
      return value;
    } else {
      return construct(reader, Parts{});
    }
  }

 private:
  template <class... Field>
  static T construct(Reader& reader, TypeList<Field...>) {
    return T{wire::decode<Field>(reader)...};  // braces: from left to right
  }
};

template <class A, class B>
requires(!travels_by_memcpy<std::pair<A, B>>) struct Codec<std::pair<A, B>> {
  using Parts = TypeList<A, B>;

  static void encode(Writer& writer, const std::pair<A, B>& value) {
    wire::encode(writer, value.first);
    wire::encode(writer, value.second);
  }

  static std::pair<A, B> decode(Reader& reader) {
    return std::pair<A, B>{wire::decode<A>(reader), wire::decode<B>(reader)};
  }
};

template <class... T>
requires(!travels_by_memcpy<std::tuple<T...>>) struct Codec<std::tuple<T...>> {
  using Parts = TypeList<T...>;

  static void encode(Writer& writer, const std::tuple<T...>& value) {
    std::apply([&writer](const T&... item) { (wire::encode(writer, item), ...); }, value);
  }

  static std::tuple<T...> decode(Reader& reader) { return std::tuple<T...>{wire::decode<T>(reader)...}; }
};

template <class T, std::size_t N>
requires(!travels_by_memcpy<std::array<T, N>>) struct Codec<std::array<T, N>> {
  using Parts = TypeList<T>;

  static void encode(Writer& writer, const std::array<T, N>& value) {
    for (const T& item : value) wire::encode(writer, item);
  }

  static std::array<T, N> decode(Reader& reader) {
    if constexpr (std::is_default_constructible_v<T>) {
      std::array<T, N> value;
      for (T& item : value) item = wire::decode<T>(reader);
      return value;
    } else {
      return construct(reader, std::make_index_sequence<N>{});
    }
  }

 private:
  template <std::size_t... I>
  static std::array<T, N> construct(Reader& reader, std::index_sequence<I...>) {
    return {{(static_cast<void>(I), wire::decode<T>(reader))...}};
  }
};

}  // namespace drover::inline v1::wire
