// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "drover/wire/codec_values.h"

/// Codecs of strings and containers: a count, then the items. Hash functions, orders and allocators do not travel; the
/// other side uses default-constructed ones.
namespace drover::inline v1::wire {
namespace detail {

/// Encodes an item in at least one byte, so that a count which the rest of the message cannot hold is known to be
/// false.
template <class T>
void encode_item(Writer& writer, const T& item) {
  const std::size_t before = writer.size();
  wire::encode(writer, item);
  if (writer.size() == before) writer.put('\0');
}

template <class T>
T decode_item(Reader& reader) {
  const std::size_t before = reader.position();
  T item = wire::decode<T>(reader);
  if (reader.position() == before) reader.get<char>(type_name<T>());
  return item;
}

template <class Container>
void encode_count(Writer& writer, const Container& container) {
  writer.put<std::uint64_t>(container.size());
}

/// The number of items that follow.
template <class Container>
std::size_t decode_count(Reader& reader) {
  return reader.count(1, type_name<Container>());
}

/// Reserves room for `count` items, but not for more than the message has bytes: a false count must not cost memory.
template <class Container>
void reserve(Container& container, std::size_t count, const Reader& reader) {
  container.reserve(std::min(count, reader.remaining() / sizeof(typename Container::value_type)));
}

/// Containers whose items are consecutive in memory and travel by memcpy.
template <class Container>
struct ImagesCodec {
  using T = typename Container::value_type;

  static void encode(Writer& writer, const Container& container) {
    store_images(writer, std::span<const T>(container));
  }

  static Container decode(Reader& reader) {
    if constexpr (alignof(T) <= kMessageAlignment) {
      const std::span<const T> items = load_images<T>(reader);
      return Container(items.data(), items.data() + items.size());
    } else {
      const std::size_t count = reader.count(sizeof(T), type_name<Container>());
      reader.align(kMessageAlignment, type_name<Container>());
      Container container;
      reserve(container, count, reader);
      for (std::size_t i = 0; i < count; ++i) container.push_back(load_image<T>(reader));
      return container;
    }
  }
};

template <class Container>
struct SequenceCodec {
  using T = typename Container::value_type;
  using Parts = TypeList<T>;

  static void encode(Writer& writer, const Container& container) {
    encode_count(writer, container);
    for (const T& item : container) encode_item(writer, item);
  }

  static Container decode(Reader& reader) {
    const std::size_t count = decode_count<Container>(reader);
    Container container;
    if constexpr (requires { container.reserve(count); }) reserve(container, count, reader);
    for (std::size_t i = 0; i < count; ++i) container.push_back(decode_item<T>(reader));
    return container;
  }
};

template <class Container>
struct SetCodec {
  using T = typename Container::key_type;
  using Parts = TypeList<T>;

  static void encode(Writer& writer, const Container& container) {
    SequenceCodec<Container>::encode(writer, container);
  }

  static Container decode(Reader& reader) {
    const std::size_t count = decode_count<Container>(reader);
    Container container;
    for (std::size_t i = 0; i < count; ++i) container.insert(container.end(), decode_item<T>(reader));
    return container;
  }
};

template <class Container>
struct MapCodec {
  using Key = typename Container::key_type;
  using Value = typename Container::mapped_type;
  using Parts = TypeList<Key, Value>;

  static void encode(Writer& writer, const Container& container) {
    encode_count(writer, container);
    for (const auto& [key, value] : container) {
      encode_item(writer, key);
      wire::encode(writer, value);
    }
  }

  static Container decode(Reader& reader) {
    const std::size_t count = decode_count<Container>(reader);
    Container container;
    for (std::size_t i = 0; i < count; ++i) {
      Key key = decode_item<Key>(reader);
      container.emplace_hint(container.end(), std::move(key), wire::decode<Value>(reader));
    }
    return container;
  }
};

}  // namespace detail

template <class C, class Traits, class A>
struct Codec<std::basic_string<C, Traits, A>> : detail::ImagesCodec<std::basic_string<C, Traits, A>> {};

template <class T, class A>
struct Codec<std::vector<T, A>> : detail::SequenceCodec<std::vector<T, A>> {};
template <class T, class A>
requires travels_by_memcpy<T>
struct Codec<std::vector<T, A>> : detail::ImagesCodec<std::vector<T, A>> {
};

/// A byte for each value.
template <class A>
struct Codec<std::vector<bool, A>> {
  static void encode(Writer& writer, const std::vector<bool, A>& bits) {
    detail::encode_count(writer, bits);
    for (const bool bit : bits) writer.put(bit);
  }

  static std::vector<bool, A> decode(Reader& reader) {
    std::vector<bool, A> bits(detail::decode_count<std::vector<bool, A>>(reader));
    for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = load_image<bool>(reader);
    return bits;
  }
};

template <class T, class A>
struct Codec<std::deque<T, A>> : detail::SequenceCodec<std::deque<T, A>> {};
template <class T, class A>
struct Codec<std::list<T, A>> : detail::SequenceCodec<std::list<T, A>> {};

template <class... T>
struct Codec<std::set<T...>> : detail::SetCodec<std::set<T...>> {};
template <class... T>
struct Codec<std::multiset<T...>> : detail::SetCodec<std::multiset<T...>> {};
template <class... T>
struct Codec<std::unordered_set<T...>> : detail::SetCodec<std::unordered_set<T...>> {};
template <class... T>
struct Codec<std::unordered_multiset<T...>> : detail::SetCodec<std::unordered_multiset<T...>> {};

template <class... T>
struct Codec<std::map<T...>> : detail::MapCodec<std::map<T...>> {};
template <class... T>
struct Codec<std::multimap<T...>> : detail::MapCodec<std::multimap<T...>> {};
template <class... T>
struct Codec<std::unordered_map<T...>> : detail::MapCodec<std::unordered_map<T...>> {};
template <class... T>
struct Codec<std::unordered_multimap<T...>> : detail::MapCodec<std::unordered_multimap<T...>> {};

}  // namespace drover::inline v1::wire
