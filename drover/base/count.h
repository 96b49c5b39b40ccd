// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <limits>
#include <string>
#include <type_traits>

#include "drover/base/errors.h"

namespace drover::inline v1 {

/// A number of things, taken from any integer type so that `{.workers = n}` works for int, long and size_t without a
/// cast and without narrowing. Negative numbers are an InvalidArgument, at the place where they are given.
class Count {
 public:
  constexpr Count() noexcept = default;

  template <std::integral T>
  requires(!std::same_as<T, bool>)
      // NOLINTNEXTLINE(google-explicit-constructor): converting by design
      constexpr Count(T value)
      : value_(checked(value)) {}

  // NOLINTNEXTLINE(google-explicit-constructor): converting by design
  constexpr operator std::size_t() const noexcept { return value_; }

 private:
  template <std::integral T>
  static constexpr std::size_t checked(T value) {
    if constexpr (std::is_signed_v<T>) {
      if (value < 0) throw InvalidArgument("a count must not be negative, got " + std::to_string(value));
    }
    return static_cast<std::size_t>(value);
  }

  std::size_t value_ = 0;
};

}  // namespace drover::inline v1
