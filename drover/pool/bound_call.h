// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "drover/wire/arguments.h"
#include "drover/wire/function_table.h"

namespace drover::inline v1 {

namespace detail {

struct BoundArguments {
  std::span<const std::byte> bytes;
};

template <auto F>
void bound_thunk(void* call) {
  wire::Reader reader(static_cast<BoundArguments*>(call)->bytes);
  static_cast<void>(wire::apply<F>(reader));
}

}  // namespace detail

/// A function with its arguments, to be called in another process: `.initializer = drover::call<setup>(42)`. A value;
/// empty unless made by call().
class BoundCall {
 public:
  BoundCall() = default;
  BoundCall(std::uint32_t (*index)(), std::vector<std::byte> encoded, wire::Kept kept)
      : function_(index), arguments_(std::move(encoded)), kept_(std::move(kept)) {}

  explicit operator bool() const noexcept { return function_ != nullptr; }
  std::uint32_t function() const { return function_(); }
  const std::vector<std::byte>& arguments() const noexcept { return arguments_; }
  /// What the arguments refer to.
  const wire::Kept& kept() const noexcept { return kept_; }

 private:
  std::uint32_t (*function_)() = nullptr;
  std::vector<std::byte> arguments_;
  wire::Kept kept_;
};

/// Binds arguments, converted to the function's parameter types now.
template <auto F, class... Argument>
BoundCall call(Argument&&... argument) {
  wire::check_callable<F>();
  wire::Kept kept;
  wire::Writer writer;
  writer.keep_in(&kept);
  wire::encode_arguments<F>(writer, std::forward<Argument>(argument)...);
  return {&wire::Registered<F, &detail::bound_thunk<F>>::index,
          {writer.bytes().begin(), writer.bytes().end()},
          std::move(kept)};
}

}  // namespace drover::inline v1
