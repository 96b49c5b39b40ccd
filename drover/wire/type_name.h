// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace drover::inline v1::wire {

namespace detail {

// Returns a plain pointer: with a library type as result the compilers would explain that type inside the text.
template <class T>
consteval const char* type_text() {
  return __PRETTY_FUNCTION__;
}

}  // namespace detail

/// The name of a type as the compiler spells it, for messages.
template <class T>
consteval std::string_view type_name() {
  const std::string_view text = detail::type_text<T>();
  const auto start = text.find("T = ") + 4;
  return text.substr(start, text.size() - start - 1);
}

}  // namespace drover::inline v1::wire
