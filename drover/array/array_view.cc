// SPDX-License-Identifier: Apache-2.0
#include "drover/array/array_view.h"

#include <string>

#include "drover/base/errors.h"

namespace drover::inline v1::detail {

void refuse_shapes(std::span<const std::size_t> from, std::span<const std::size_t> to) {
  throw InvalidArgument("cannot copy an array of shape " + text_of(from) + " into one of shape " + text_of(to) +
                        ": slice or reshape one of them");
}

void refuse_count(std::size_t given, std::span<const std::size_t> to) {
  throw InvalidArgument("cannot fill an array of shape " + text_of(to) + " from a range of " + std::to_string(given) +
                        " elements: it needs exactly as many as the array has");
}

void refuse_surplus(std::span<const std::size_t> to) {
  throw InvalidArgument("cannot fill an array of shape " + text_of(to) + " from a range with more elements");
}

void refuse_span(std::span<const std::size_t> extents) {
  throw InvalidArgument("a view of shape " + text_of(extents) +
                        " has gaps between its elements, so there is no span of it: iterate over the view itself");
}

void refuse_reshape(std::span<const std::size_t> from, std::span<const std::size_t> to, bool contiguous) {
  throw InvalidArgument("cannot reshape " + text_of(from) + " to " + text_of(to) + ": " +
                        (contiguous
                             ? "the number of elements differs"
                             : "the elements do not lie one after the other in row-major order; copy_from() into "
                               "an array that has that shape"));
}

}  // namespace drover::inline v1::detail
