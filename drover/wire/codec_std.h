// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "drover/base/errors.h"
#include "drover/wire/codec_containers.h"

/// Codecs of optional, variant, owning pointers, path and bitset.
namespace drover::inline v1::wire {

template <class T>
struct Codec<std::optional<T>> {
  using Parts = TypeList<T>;

  static void encode(Writer& writer, const std::optional<T>& value) {
    writer.put(value.has_value());
    if (value) wire::encode(writer, *value);
  }

  static std::optional<T> decode(Reader& reader) {
    if (!load_image<bool>(reader)) return std::nullopt;
    return wire::decode<T>(reader);
  }
};

template <class... T>
struct Codec<std::variant<T...>> {
  using Variant = std::variant<T...>;
  using Parts = TypeList<T...>;

  static void encode(Writer& writer, const Variant& value) {
    if (value.valueless_by_exception()) throw InvalidArgument("a variant that lost its value cannot travel");
    writer.put(static_cast<std::uint32_t>(value.index()));
    std::visit([&writer](const auto& held) { wire::encode(writer, held); }, value);
  }

  static Variant decode(Reader& reader) {
    const auto index = reader.get<std::uint32_t>(type_name<Variant>());
    if (index >= sizeof...(T)) reader.fail(type_name<Variant>(), "it has no alternative " + std::to_string(index));
    return decode_alternative(reader, index, std::index_sequence_for<T...>{});
  }

 private:
  template <std::size_t... I>
  static Variant decode_alternative(Reader& reader, std::size_t index, std::index_sequence<I...>) {
    using Decode = Variant (*)(Reader&);
    constexpr std::array<Decode, sizeof...(T)> decoders{
        [](Reader& from) { return Variant(std::in_place_index<I>, wire::decode<T>(from)); }...};
    return decoders[index](reader);
  }
};

namespace detail {

/// Nothing, or the object itself. Shared objects arrive as separate copies.
template <class Pointer>
struct OwnerCodec {
  using Object = std::remove_const_t<typename Pointer::element_type>;
  using Parts = TypeList<Object>;

  static void encode(Writer& writer, const Pointer& pointer) {
    static_assert(!std::is_polymorphic_v<Object> || std::is_final_v<Object>,
                  "a pointer to a base class cannot travel between processes: the derived part would be lost");
    writer.put(pointer != nullptr);
    if (pointer) wire::encode(writer, static_cast<const Object&>(*pointer));
  }

  static Pointer decode(Reader& reader) {
    if (!load_image<bool>(reader)) return nullptr;
    return Pointer(new Object(wire::decode<Object>(reader)));
  }
};

template <class T>
concept Owned = std::is_object_v<T> && !std::is_array_v<T>;

}  // namespace detail

template <detail::Owned T>
struct Codec<std::unique_ptr<T>> : detail::OwnerCodec<std::unique_ptr<T>> {};
template <detail::Owned T>
struct Codec<std::shared_ptr<T>> : detail::OwnerCodec<std::shared_ptr<T>> {};

template <>
struct Codec<std::filesystem::path> {
  static void encode(Writer& writer, const std::filesystem::path& path) { wire::encode(writer, path.native()); }
  static std::filesystem::path decode(Reader& reader) {
    return wire::decode<std::filesystem::path::string_type>(reader);
  }
};

template <std::size_t N>
struct Codec<std::bitset<N>> {
  static void encode(Writer& writer, const std::bitset<N>& bits) {
    for (std::size_t first = 0; first < N; first += 8) {
      unsigned byte = 0;
      for (std::size_t i = first; i < std::min(first + 8, N); ++i) byte |= unsigned{bits[i]} << (i - first);
      writer.put(static_cast<unsigned char>(byte));
    }
  }

  static std::bitset<N> decode(Reader& reader) {
    std::bitset<N> bits;
    for (std::size_t first = 0; first < N; first += 8) {
      const unsigned byte = reader.get<unsigned char>(type_name<std::bitset<N>>());
      for (std::size_t i = first; i < std::min(first + 8, N); ++i) bits[i] = (byte >> (i - first)) & 1;
    }
    return bits;
  }
};

}  // namespace drover::inline v1::wire
