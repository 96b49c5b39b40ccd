// SPDX-License-Identifier: Apache-2.0
#include "drover/wire/writer.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "drover/base/errors.h"

namespace drover::inline v1::wire {

static_assert(__STDCPP_DEFAULT_NEW_ALIGNMENT__ >= kMessageAlignment);

void Writer::grow(std::size_t size) {
  constexpr std::size_t kSmallest = 256;
  const std::size_t used = this->size();
  const std::size_t capacity = static_cast<std::size_t>(end_ - begin_);
  if (size > static_cast<std::size_t>(PTRDIFF_MAX) - used) throw std::bad_alloc();
  const std::size_t wanted = std::max({kSmallest, used + size, 2 * capacity});
  auto bigger = std::make_unique_for_overwrite<std::byte[]>(wanted);
  if (used != 0) std::memcpy(bigger.get(), begin_, used);
  owned_ = std::move(bigger);
  begin_ = owned_.get();
  at_ = begin_ + used;
  end_ = begin_ + wanted;
}

void Writer::refuse_depth(std::string_view type) {
  throw InvalidArgument("a value of type " + std::string(type) + " is nested more than " + std::to_string(kMaxDepth) +
                        " levels deep, or refers to itself, and cannot travel");
}

}  // namespace drover::inline v1::wire
