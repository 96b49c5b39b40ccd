// SPDX-License-Identifier: Apache-2.0
#include "drover/array/array_codec.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "drover/base/errors.h"

namespace drover::inline v1::detail {
namespace {

/// What extents and strides amount to; they come from another process.
struct Extension {
  std::uint64_t reach = 1;  ///< the number of the element farthest from the first one, plus one
  std::uint64_t count = 1;  ///< of elements, where zero counts as one
  bool empty = false;
};

/// False when they are none of an array.
bool measure(std::span<const std::size_t> extents, std::span<const std::ptrdiff_t> strides, Extension& found) {
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    found.empty = found.empty || extents[axis] == 0;
    const std::uint64_t extent = std::max<std::uint64_t>(extents[axis], 1);
    std::uint64_t way = 0;
    if (strides[axis] < 0 || __builtin_mul_overflow(extent - 1, static_cast<std::uint64_t>(strides[axis]), &way) ||
        __builtin_add_overflow(found.reach, way, &found.reach) ||
        __builtin_mul_overflow(found.count, extent, &found.count) ||
        found.count > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return false;
    }
  }
  return true;
}

/// What is wrong with where a view says it lies in its block; nullptr when nothing is.
const char* problem_of(const SentView& view, const shm::Block& block, std::uint64_t offset,
                       std::span<const std::size_t> extents, std::span<const std::ptrdiff_t> strides) {
  if (offset > block.size() || (reinterpret_cast<std::uintptr_t>(block.data()) + offset) % view.alignment != 0) {
    return "it begins outside of its block, or between two elements";
  }
  const std::uint64_t room = (block.size() - offset) / view.item_size;
  Extension extension;
  if (!measure(extents, strides, extension)) return "its extents and strides are none of an array";
  // No two indices of a true view mean the same element, so it has no more elements than there is room for.
  if (!extension.empty && std::max(extension.reach, extension.count) > room) return "it reaches beyond its block";
  return nullptr;
}

}  // namespace

void encode_view(wire::Writer& writer, const SentView& view, const Pin& pin, const void* data,
                 std::span<const std::size_t> extents, std::span<const std::ptrdiff_t> strides) {
  if (pin.block == nullptr) {
    throw InvalidArgument("a " + std::string(view.type_name) +
                          " of memory that is not shared cannot travel between processes: put the elements into a "
                          "SharedArray, or send a std::vector");
  }
  const std::shared_ptr<shm::Block> block(std::const_pointer_cast<void>(pin.owner), pin.block);
  const bool kept = writer.keep(pin.owner);
  const shm::BlockHandle handle = block->handle(!kept);
  if (handle.counted) writer.if_not_sent([block] { shm::count_received(*block); });
  wire::encode(writer, handle);
  if (!kept) shm::retain_until_received(block);
  writer.put(view.element_id);
  writer.put(static_cast<std::uint64_t>(static_cast<const std::byte*>(data) - block->data()));
  for (const std::size_t extent : extents) writer.put(std::uint64_t{extent});
  for (const std::ptrdiff_t stride : strides) writer.put(std::int64_t{stride});
}

std::shared_ptr<shm::Block> decode_view(wire::Reader& reader, const SentView& view, shm::Access access,
                                        std::span<std::size_t> extents, std::span<std::ptrdiff_t> strides,
                                        std::uint64_t& offset) {
  auto handle = wire::decode<shm::BlockHandle>(reader);
  const bool counted = std::exchange(handle.counted, false);
  if (reader.get<std::uint64_t>(view.type_name) != view.element_id) {
    reader.fail(view.type_name, "its elements are of another type");
  }
  offset = reader.get<std::uint64_t>(view.type_name);
  for (std::size_t& extent : extents) extent = reader.get<std::uint64_t>(view.type_name);
  for (std::ptrdiff_t& stride : strides) stride = reader.get<std::int64_t>(view.type_name);
  auto block = shm::Block::open(handle, access);
  if (counted) reader.when_taken([block] { shm::count_received(*block); });
  if (const char* problem = problem_of(view, *block, offset, extents, strides)) reader.fail(view.type_name, problem);
  return block;
}

}  // namespace drover::inline v1::detail
