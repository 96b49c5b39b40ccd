// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>

#include "drover/array/array_view.h"
#include "drover/array/element_type.h"
#include "drover/shm/block.h"
#include "drover/wire/codec.h"

/// How views of shared memory travel: what names the block, and where in it the elements lie.
namespace drover::inline v1::detail {

/// What a view is, apart from its types.
struct SentView {
  std::uint64_t element_id = 0;
  std::uint64_t item_size = 0;
  std::uint64_t alignment = 1;
  std::string_view type_name;  ///< of the view, for messages
};

/// Throws InvalidArgument for memory that is no block, and what the block throws. Sees to it that the block lives until
/// the receiver has it.
void encode_view(wire::Writer& writer, const SentView& view, const Pin& pin, const void* data,
                 std::span<const std::size_t> extents, std::span<const std::ptrdiff_t> strides);

/// Fills in extents and strides; all elements that they reach lie in the block. Throws Incompatible for bytes that are
/// no such view, OwnerDied when the block is gone.
std::shared_ptr<shm::Block> decode_view(wire::Reader& reader, const SentView& view, shm::Access access,
                                        std::span<std::size_t> extents, std::span<std::ptrdiff_t> strides,
                                        std::uint64_t& offset);

}  // namespace drover::inline v1::detail

namespace drover::inline v1::wire {

template <class T, std::size_t Rank>
struct Codec<ArrayView<T, Rank>> {
  static void encode(Writer& writer, const ArrayView<T, Rank>& view) {
    drover::detail::encode_view(writer, sent(), view.pin(), view.element_data(), view.extents(), view.layout().strides);
  }

  static ArrayView<T, Rank> decode(Reader& reader) {
    std::array<std::size_t, Rank> extents{};
    drover::detail::Strides<Rank> strides{};
    std::uint64_t offset = 0;
    constexpr auto access = std::is_const_v<T> ? shm::Access::kReadOnly : shm::Access::kReadWrite;
    auto block = drover::detail::decode_view(reader, sent(), access, extents, strides, offset);
    T* data = reinterpret_cast<T*>(block->data() + offset);
    return {data, {Shape<Rank>(extents), strides}, {block, block.get()}};
  }

 private:
  static drover::detail::SentView sent() {
    using Element = std::remove_const_t<T>;
    return {drover::detail::element_id<Element>(), sizeof(T), alignof(T), type_name<ArrayView<T, Rank>>()};
  }
};

}  // namespace drover::inline v1::wire
