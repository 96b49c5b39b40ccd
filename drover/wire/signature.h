// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>

#include "drover/wire/codec.h"
#include "drover/wire/travels.h"

/// What a function that is called in another process may look like.
namespace drover::inline v1::wire {
namespace detail {

template <class Function>
struct SignatureOf;
template <class R, class... Parameter>
struct SignatureOf<R (*)(Parameter...)> {
  using Result = R;
  using Parameters = TypeList<Parameter...>;
  static constexpr std::size_t arity = sizeof...(Parameter);
};
template <class R, class... Parameter>
struct SignatureOf<R (*)(Parameter...) noexcept> : SignatureOf<R (*)(Parameter...)> {};

template <class Function>
concept FunctionPointer = requires {
  SignatureOf<Function>::arity;
};

template <class Function>
struct ResultOfFunction : std::type_identity<void> {};
template <FunctionPointer Function>
struct ResultOfFunction<Function> : std::type_identity<typename SignatureOf<Function>::Result> {};

/// What a parameter of type P is decoded into: the value itself, or a view of the message.
template <class P>
using Stored = std::remove_cvref_t<P>;

/// Parameters that look into the message.
template <class S>
inline constexpr bool is_message_view = false;
template <>
inline constexpr bool is_message_view<std::string_view> = true;
template <class T>
inline constexpr bool is_message_view<std::span<const T>> = travels_by_memcpy<T> && alignof(T) <= kMessageAlignment;

template <class P>
inline constexpr bool is_mutable_reference =
    std::is_lvalue_reference_v<P> && !std::is_const_v<std::remove_reference_t<P>>;

template <class P>
inline constexpr bool parameter_travels =
    !is_mutable_reference<P> && (is_message_view<Stored<P>> || Travels<Stored<P>>);

template <class R>
inline constexpr bool result_travels = std::is_void_v<R> || Travels<R>;

template <class R, class... P>
consteval bool all_travel(TypeList<P...>) {
  return result_travels<R> && (parameter_travels<P> && ...);
}

template <auto F>
consteval bool is_callable() {
  if constexpr (FunctionPointer<decltype(F)>) {
    using Signature = SignatureOf<decltype(F)>;
    return all_travel<typename Signature::Result>(typename Signature::Parameters{});
  } else {
    return false;
  }
}

/// Stops the compilation when a parameter of type P is refused, with the reason.
template <class P>
constexpr bool check_parameter() {
  static_assert(
      !is_mutable_reference<P>,
      "a parameter that is a non-const reference cannot travel between processes: take it by value or by const "
      "reference, and return what changed");
  if constexpr (!is_mutable_reference<P> && !parameter_travels<P>) {
    if constexpr (is_view<Stored<P>>) {
      static_assert(
          parameter_travels<P>,
          "this view cannot be a parameter: std::string_view can, and std::span<const T> of a T that travels by "
          "memcpy and is aligned to at most 8 bytes");
    } else {
      [[maybe_unused]] Refuse<typename OffenderIn<Stored<P>>::type> reason;
    }
  }
  return true;
}

template <class R>
constexpr bool check_result() {
  if constexpr (!result_travels<R>) [[maybe_unused]]
    Refuse<typename OffenderIn<R>::type> reason;
  return true;
}

template <class R, class... P>
constexpr bool check_types(TypeList<P...>) {
  return check_result<R>() && (check_parameter<P>() && ...);
}

}  // namespace detail

/// A function whose parameters and result travel. Not a lambda, not a member function.
template <auto F>
concept Callable = detail::is_callable<F>();

/// What F returns; void for what is no function, so that check_callable gets to say why not.
template <auto F>
using ResultOf = typename detail::ResultOfFunction<decltype(F)>::type;

/// Stops the compilation with one sentence that says why F is no Callable. Call it first in a function template that
/// takes F.
template <auto F>
constexpr void check_callable() {
  using Function = decltype(F);
  if constexpr (std::is_class_v<Function>) {
    static_assert(!std::is_class_v<Function>,
                  "a lambda or function object cannot be called in another process: give a named function, as in "
                  "submit<area>(2.0)");
  } else if constexpr (std::is_member_function_pointer_v<Function>) {
    static_assert(
        !std::is_member_function_pointer_v<Function>,
        "a member function needs an object, which only an actor has in another process: give a free or static "
        "function");
  } else if constexpr (!detail::FunctionPointer<Function>) {
    static_assert(detail::FunctionPointer<Function>,
                  "give a function with a fixed list of parameters, as in submit<area>(2.0)");
  } else {
    using Signature = detail::SignatureOf<Function>;
    static_cast<void>(detail::check_types<typename Signature::Result>(typename Signature::Parameters{}));
  }
}

}  // namespace drover::inline v1::wire
