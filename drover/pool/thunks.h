// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <type_traits>
#include <variant>

#include "drover/pool/chunk_call.h"
#include "drover/pool/submit_call.h"
#include "drover/wire/arguments.h"

/// What runs in a worker between the bytes of a task and the user's function. Each is a wire::Thunk for one function.
namespace drover::inline v1::detail {

/// What results of R are called on the caller's side: void becomes std::monostate.
template <class R>
using ResultValue = std::conditional_t<std::is_void_v<R>, std::monostate, R>;

/// Larger results travel with their length, which lets them spill: a window full of results must fit one ring.
inline constexpr std::size_t kLargestFixedResult = 128;

template <std::size_t kSize>
inline constexpr std::uint32_t fitting_size = kSize <= kLargestFixedResult ? static_cast<std::uint32_t>(kSize) : 0;

/// Bytes of each result of a map, when they are all alike and few, else 0.
template <class R>
inline constexpr std::uint32_t fixed_result_size =
    std::is_void_v<R> ? kNoValue : fitting_size<wire::encoded_size_fixed<ResultValue<R>>>;

template <class R>
void put_result(ChunkCall& call, const R& value) {
  if constexpr (std::is_arithmetic_v<R>) {
    call.put_fixed<sizeof(R)>(&value);
  } else if constexpr (fixed_result_size<R> != 0) {
    alignas(wire::kMessageAlignment) std::byte image[fixed_result_size<R>];
    wire::Writer writer(image);
    wire::encode(writer, value);
    call.put_fixed<fixed_result_size<R>>(image);
  } else {
    alignas(wire::kMessageAlignment) std::byte lent[512];
    wire::Writer writer(lent);
    wire::encode(writer, value);
    call.put_bytes(writer.bytes(), false);
  }
}

/// Runs one item: whatever it throws, or its result throws on the way out, is the item's error and nobody else's.
template <class R, class Run>
void run_item(ChunkCall& call, const Run& run) {
  try {
    if constexpr (std::is_void_v<R>) {
      run();
      call.count_item();
    } else {
      put_result<R>(call, run());
    }
  } catch (...) {
    call.put_error(std::current_exception());
  }
}

/// A chunk of an index range whose elements are of type Value.
template <auto F, class Value>
void index_thunk(void* context) {
  auto& call = *static_cast<ChunkCall*>(context);
  for (std::uint32_t i = 0; i < call.count && call.begin_item(); ++i) {
    run_item<wire::ResultOf<F>>(call, [&] { return F(static_cast<Value>(call.base + i)); });
  }
}

/// A chunk whose inputs were encoded by the caller.
template <auto F>
void input_thunk(void* context) {
  auto& call = *static_cast<ChunkCall*>(context);
  for (std::uint32_t i = 0; i < call.skip; ++i) static_cast<void>(call.next_input());
  for (std::uint32_t i = 0; i < call.count && call.begin_item(); ++i) {
    wire::Reader input(call.next_input());
    run_item<wire::ResultOf<F>>(call, [&] { return wire::apply<F>(input); });
  }
}

template <auto F>
void submit_thunk(void* context) {
  auto& call = *static_cast<SubmitCall*>(context);
  using Result = wire::ResultOf<F>;
  try {
    wire::Reader reader(call.arguments());
    if constexpr (std::is_void_v<Result>) {
      wire::apply<F>(reader);
      call.put_bytes({}, false);
    } else {
      alignas(wire::kMessageAlignment) std::byte lent[SubmitEntry::kInlineResult];
      wire::Writer writer(lent);
      wire::encode(writer, wire::apply<F>(reader));
      call.put_bytes(writer.bytes(), false);
    }
  } catch (...) {
    call.put_error(std::current_exception());
  }
}

}  // namespace drover::inline v1::detail
