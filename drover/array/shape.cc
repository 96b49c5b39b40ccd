// SPDX-License-Identifier: Apache-2.0
#include "drover/array/shape.h"

#include <limits>
#include <stdexcept>

#include "drover/array/slice.h"
#include "drover/base/errors.h"

namespace drover::inline v1::detail {
namespace {

constexpr std::size_t kMaxSize = std::numeric_limits<std::ptrdiff_t>::max();

/// Where a position lies; the end of the axis is a position too.
std::ptrdiff_t resolve(Position position, std::size_t extent) {
  const auto end = static_cast<std::ptrdiff_t>(extent);
  if (position.value() == Slice::kEnd) return end;
  return position.value() < 0 ? position.value() + end : position.value();
}

std::string text_of(Position position) {
  return position.value() == Slice::kEnd ? "the end" : std::to_string(position.value());
}

}  // namespace

std::string text_of(std::span<const std::size_t> extents) {
  std::string text = "(";
  for (std::size_t i = 0; i < extents.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(extents[i]);
  return text + (extents.size() == 1 ? ",)" : ")");
}

void refuse_extent(std::intmax_t extent) {
  throw InvalidArgument("an array cannot have an extent of " + std::to_string(extent) + ": it must not be negative");
}

void check_size(std::span<const std::size_t> extents, std::size_t item_size) {
  std::size_t size = item_size;
  for (const std::size_t extent : extents) {
    if (extent != 0 && (__builtin_mul_overflow(size, extent, &size) || size > kMaxSize)) {
      throw InvalidArgument("an array of shape " + text_of(extents) + " with elements of " + std::to_string(item_size) +
                            " bytes is larger than any memory: its size does not fit 63 bits");
    }
  }
}

void refuse_position(std::uintmax_t position) {
  throw std::out_of_range("position " + std::to_string(position) + " is beyond the end of every array");
}

void refuse_index(std::intmax_t index, std::size_t axis, std::size_t extent) {
  throw std::out_of_range("index " + std::to_string(index) + " of axis " + std::to_string(axis) +
                          " is outside of the array: the extent is " + std::to_string(extent));
}

Picked pick(const Slice& slice, std::size_t extent, std::size_t axis) {
  const std::size_t step = slice.step;
  if (step == 0) throw InvalidArgument("a slice of axis " + std::to_string(axis) + " has a step of 0: use 1 or more");
  const std::ptrdiff_t from = resolve(slice.from, extent), to = resolve(slice.to, extent);
  if (from < 0 || to < from || to > static_cast<std::ptrdiff_t>(extent)) {
    throw std::out_of_range("the slice from " + text_of(slice.from) + " to " + text_of(slice.to) + " of axis " +
                            std::to_string(axis) + " is not inside of the array: the extent is " +
                            std::to_string(extent));
  }
  const auto length = static_cast<std::size_t>(to - from);
  return {static_cast<std::size_t>(from), length == 0 ? 0 : (length - 1) / step + 1, step};
}

Picked pick(Position index, std::size_t extent, std::size_t axis) {
  const std::ptrdiff_t at = resolve(index, extent);
  if (at < 0 || at >= static_cast<std::ptrdiff_t>(extent)) refuse_index(index.value(), axis, extent);
  return {static_cast<std::size_t>(at), 1, 1};
}

}  // namespace drover::inline v1::detail
