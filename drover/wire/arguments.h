// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "drover/wire/signature.h"

/// Arguments of a call: converted to the parameter types in the calling process, encoded, and decoded where the
/// function runs.
namespace drover::inline v1::wire {
namespace detail {

/// An argument is only looked at, so one of the very type fits even where a call would have to copy what cannot be
/// copied.
template <class Argument, class S>
inline constexpr bool argument_fits =
    std::is_same_v<std::remove_cvref_t<Argument>, S> || std::is_convertible_v<Argument, S>;

/// Stops the compilation; its arguments say which of the call's arguments it is about.
template <std::size_t ParameterNumber, class Parameter, class Argument>
struct CheckArgument {
  static_assert(argument_fits<Argument, Parameter>,
                "the argument cannot be converted to the type of the function's parameter");
};

inline void encode_view(Writer& writer, std::string_view text) { store_images(writer, std::span<const char>(text)); }

template <class T>
void encode_view(Writer& writer, std::span<const T> items) {
  store_images(writer, items);
}

/// Encodes an argument as a parameter that is stored as S. What a conversion makes lives until it is encoded.
template <class S, class Argument>
void encode_argument(Writer& writer, Argument&& argument) {
  if constexpr (is_message_view<S>) {
    encode_view(writer, static_cast<const S&>(std::forward<Argument>(argument)));
  } else {
    const auto encode_converted = [&writer](const S& converted) { wire::encode(writer, converted); };
    encode_converted(std::forward<Argument>(argument));
  }
}

template <class... Parameter, std::size_t... I, class... Argument>
void encode_all(Writer& writer, TypeList<Parameter...>, std::index_sequence<I...>, Argument&&... argument) {
  if constexpr ((argument_fits<Argument, Stored<Parameter>> && ...)) {
    (encode_argument<Stored<Parameter>>(writer, std::forward<Argument>(argument)), ...);
  } else {
    static_cast<void>((sizeof(CheckArgument<I + 1, Stored<Parameter>, Argument>) + ... + 0));
  }
}

template <class S>
S decode_argument(Reader& reader) {
  if constexpr (std::is_same_v<S, std::string_view>) {
    const std::span<const char> text = load_images<char>(reader);
    return {text.data(), text.size()};
  } else if constexpr (is_message_view<S>) {
    return load_images<std::remove_const_t<typename S::element_type>>(reader);
  } else {
    return wire::decode<S>(reader);
  }
}

template <auto F, class... Parameter, std::size_t... I>
decltype(auto) apply_to(Reader& reader, TypeList<Parameter...>, std::index_sequence<I...>) {
  std::tuple<Stored<Parameter>...> arguments{decode_argument<Stored<Parameter>>(reader)...};  // braces: left to right
  // By value and && the function may keep what it is given; a const reference binds to an rvalue as well.
  return F(std::move(std::get<I>(arguments))...);
}

template <class E>
concept TupleLike = requires {
  std::tuple_size<std::remove_cvref_t<E>>::value;
};

template <class E>
inline constexpr std::size_t tuple_length = 0;
template <TupleLike E>
inline constexpr std::size_t tuple_length<E> = std::tuple_size_v<std::remove_cvref_t<E>>;

template <class E, class... Parameter>
consteval bool takes_whole(TypeList<Parameter...>) {
  return sizeof...(Parameter) == 1 && (argument_fits<E, Stored<Parameter>> && ...);
}

template <class E, class... Parameter, std::size_t... I>
consteval bool takes_items(TypeList<Parameter...>, std::index_sequence<I...>) {
  return (argument_fits<decltype(std::get<I>(std::declval<E>())), Stored<Parameter>> && ...);
}

template <class E, class... Parameter>
consteval bool takes_spread(TypeList<Parameter...> parameters) {
  if constexpr (TupleLike<E> && tuple_length<E> == sizeof...(Parameter)) {
    return takes_items<E>(parameters, std::index_sequence_for<Parameter...>{});
  } else {
    return false;
  }
}

template <auto F>
using ParametersOf = typename SignatureOf<decltype(F)>::Parameters;

template <class... Parameter>
consteval std::size_t fixed_size(TypeList<Parameter...>) {
  return ((encoded_size_fixed<Stored<Parameter>> != 0) && ...)
             ? (std::size_t{0} + ... + encoded_size_fixed<Stored<Parameter>>)
             : 0;
}

}  // namespace detail

/// Nonzero when the arguments of F always take that many bytes.
template <auto F>
inline constexpr std::size_t arguments_size_fixed = detail::fixed_size(detail::ParametersOf<F>{});

/// Converts arguments to the parameter types of F and appends them to a message. Does not compile, with one sentence,
/// when they do not fit. Throws what a conversion throws, and as encode() does.
template <auto F, class... Argument>
void encode_arguments(Writer& writer, Argument&&... argument) {
  constexpr std::size_t arity = detail::SignatureOf<decltype(F)>::arity;
  static_assert(sizeof...(Argument) == arity, "the number of arguments is not the number of the function's parameters");
  if constexpr (sizeof...(Argument) == arity) {
    detail::encode_all(writer, detail::ParametersOf<F>{}, std::make_index_sequence<arity>{},
                       std::forward<Argument>(argument)...);
  }
}

/// Takes the arguments of F from a message and calls it. Views among them look into the message. Throws Incompatible
/// for bytes that are no such arguments, and what F throws. Leaves the reader behind the arguments, where those of a
/// next call may stand.
template <auto F>
ResultOf<F> apply(Reader& reader) {
  constexpr std::size_t arity = detail::SignatureOf<decltype(F)>::arity;
  return detail::apply_to<F>(reader, detail::ParametersOf<F>{}, std::make_index_sequence<arity>{});
}

/// Whether F can be called with an element of a range: whole if F takes it whole, else spread over as many parameters.
template <auto F, class E>
concept TakesElement =
    detail::takes_whole<E>(detail::ParametersOf<F>{}) || detail::takes_spread<E>(detail::ParametersOf<F>{});

/// Encodes one element of a range as the arguments of F.
template <auto F, class E>
void encode_element(Writer& writer, E&& element) {
  static_assert(
      TakesElement<F, E>,
      "the function takes neither the elements of the range nor, one for each parameter, the items they consist of");
  if constexpr (detail::takes_whole<E>(detail::ParametersOf<F>{})) {
    encode_arguments<F>(writer, std::forward<E>(element));
  } else if constexpr (TakesElement<F, E>) {
    std::apply([&writer](auto&&... item) { encode_arguments<F>(writer, std::forward<decltype(item)>(item)...); },
               std::forward<E>(element));
  }
}

}  // namespace drover::inline v1::wire
