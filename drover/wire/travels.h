// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdlib>
#include <span>
#include <string_view>
#include <type_traits>

#include "drover/wire/aggregate.h"
#include "drover/wire/memcpy_trait.h"
#include "drover/wire/reader.h"
#include "drover/wire/type_name.h"
#include "drover/wire/writer.h"

namespace drover::inline v1::wire {

/// How values of T travel. Specialise it for a class of your own that has no serialize():
///
///     static void encode(Writer& writer, const T& value);
///     static T decode(Reader& reader);    // throws Incompatible for bytes that are no T
///
/// A codec of something generic also has `using Parts = TypeList<...>`, the types it hands on to wire::encode and
/// wire::decode.
template <class T>
struct Codec;

namespace detail {

template <class T>
concept HasCodec = requires(Writer& writer, Reader& reader, const T& value) {
  sizeof(Codec<T>);
  Codec<T>::encode(writer, value);
  { Codec<T>::decode(reader) } -> std::same_as<T>;
};

template <class T>
concept HasParts = requires {
  typename Codec<T>::Parts;
};

struct Nobody {};

/// The innermost type that keeps T from travelling, or Nobody. Types in Seen are being looked at already: a tree that
/// holds a vector of trees travels if all else in it does.
template <class T, class Seen = TypeList<>>
struct OffenderIn;

template <class Parts, class Seen>
struct FirstOffender : std::type_identity<Nobody> {};

template <class First, class... Rest, class Seen>
struct FirstOffender<TypeList<First, Rest...>, Seen> {
  using InFirst = OffenderIn<First, Seen>;
  static constexpr bool is_innocent = std::same_as<typename InFirst::type, Nobody>;
  using type = typename std::conditional_t<is_innocent, FirstOffender<TypeList<Rest...>, Seen>, InFirst>::type;
};

template <class T, class... Seen>
struct OffenderIn<T, TypeList<Seen...>> : std::type_identity<T> {};

template <class T, class... Seen>
requires((std::same_as<T, Seen> || ...) || (HasCodec<T> && !HasParts<T>)) struct OffenderIn<T, TypeList<Seen...>>
    : std::type_identity<Nobody> {
};

template <class T, class... Seen>
requires(!(std::same_as<T, Seen> || ...) && HasCodec<T> && HasParts<T>) struct OffenderIn<T, TypeList<Seen...>>
    : FirstOffender<typename Codec<T>::Parts, TypeList<T, Seen...>> {
};

template <class T, std::size_t N, class... Seen>
struct OffenderIn<T[N], TypeList<Seen...>> : OffenderIn<T, TypeList<Seen...>> {};

template <class T>
inline constexpr bool is_view = false;
template <class C, class Traits>
inline constexpr bool is_view<std::basic_string_view<C, Traits>> = true;
template <class T, std::size_t N>
inline constexpr bool is_view<std::span<T, N>> = true;

/// Stops the compilation with the reason why a type does not travel.
template <class TypeThatCannotTravel>
struct Refuse {
  using T = TypeThatCannotTravel;
  static constexpr bool pointer = std::is_pointer_v<T> || std::is_member_pointer_v<T>;
  static_assert(!pointer, "a raw pointer cannot travel between processes: its address means nothing in the other one");
  static_assert(!std::is_reference_v<T>, "a reference cannot travel between processes: take and return values");
  static_assert(!is_view<T>, "a view cannot travel inside another value or as a result: only as a whole parameter");
  static_assert(pointer || std::is_reference_v<T> || is_view<T>,
                "the type cannot travel between processes: give it a public serialize(archive), specialise "
                "drover::wire::Codec, or make it a plain aggregate of up to 32 fields that can travel");
};

template <class T>
[[noreturn]] T refuse() {
  [[maybe_unused]] Refuse<typename OffenderIn<T>::type> reason;
  std::abort();
}

/// Counts one level of nesting for as long as it lives.
template <class Stream>
class Level {
 public:
  Level(Stream& stream, std::string_view type) : stream_(stream) { stream_.enter(type); }
  ~Level() { stream_.leave(); }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

 private:
  Stream& stream_;
};

}  // namespace detail

/// Whether values of T can be encoded here and decoded in another process of the same build.
template <class T>
concept Travels = std::same_as<typename detail::OffenderIn<T>::type, detail::Nobody>;

/// Appends a value to a message. Throws InvalidArgument for a value that cannot travel (too deep, valueless),
/// std::bad_alloc, and what the Codec throws.
template <class T>
void encode(Writer& writer, const T& value) {
  if constexpr (Travels<T> && travels_by_memcpy<T>) {
    Codec<T>::encode(writer, value);
  } else if constexpr (Travels<T>) {
    const detail::Level level(writer, type_name<T>());
    Codec<T>::encode(writer, value);
  } else {
    detail::refuse<T>();
  }
}

/// Takes the next value from a message. Throws Incompatible for bytes that are no T, whatever they are.
template <class T>
T decode(Reader& reader) {
  if constexpr (Travels<T> && travels_by_memcpy<T>) {
    return Codec<T>::decode(reader);
  } else if constexpr (Travels<T>) {
    const detail::Level level(reader, type_name<T>());
    return Codec<T>::decode(reader);
  } else {
    return detail::refuse<T>();
  }
}

namespace detail {

/// encode() for fields, which may be C arrays.
template <class T>
void encode_field(Writer& writer, const T& field) {
  if constexpr (std::is_array_v<T>) {
    for (const auto& item : field) encode_field(writer, item);
  } else {
    wire::encode(writer, field);
  }
}

/// decode() into an existing object, which may be a C array.
template <class T>
void decode_field(Reader& reader, T& field) {
  if constexpr (std::is_array_v<T>) {
    for (auto& item : field) decode_field(reader, item);
  } else {
    field = wire::decode<T>(reader);
  }
}

}  // namespace detail
}  // namespace drover::inline v1::wire
