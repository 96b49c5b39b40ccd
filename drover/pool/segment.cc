// SPDX-License-Identifier: Apache-2.0
#include "drover/pool/segment.h"

#include <utility>

#include "drover/base/errors.h"
#include "drover/os/file_limit.h"

namespace drover::inline v1::detail {
namespace {

constexpr std::uint64_t kHeaderLength = os::round_to_page(sizeof(PoolHeader));
constexpr std::uint64_t kLargestFile = std::uint64_t{1} << 62;

}  // namespace

PoolSegment::PoolSegment() : PoolSegment(os::MemoryFile::create("drover-pool")) {
  worker::write_launch_page(file_);
  header().file_end.store(kHeaderLength, std::memory_order_relaxed);
}

PoolSegment::PoolSegment(os::MemoryFile file) : file_(std::move(file)) {
  file_.grow_to(kHeaderLength);
  header_mapping_ = os::Mapping(file_, 0, kHeaderLength);
}

std::uint64_t PoolSegment::append(std::uint64_t length) {
  const std::uint64_t size = os::round_to_page(length);
  if (size > kLargestFile) throw OutOfMemory("a value of " + std::to_string(length) + " bytes is too large to travel");
  std::uint64_t offset = header().file_end.load(std::memory_order_relaxed);
  do os::check_file_limit(offset + size);  // before the end is moved: a smaller value may still fit
  while (!header().file_end.compare_exchange_weak(offset, offset + size, std::memory_order_relaxed));
  file_.grow_to(offset + size);
  return offset;
}

std::uint64_t PoolSegment::store(std::span<const std::byte> data) {
  const std::uint64_t offset = append(data.size());
  fill(offset, data);
  return offset;
}

void PoolSegment::fill(std::uint64_t offset, std::span<const std::byte> data) const {
  if (data.empty()) return;
  const std::uint64_t length = os::round_to_page(data.size());
  try {
    file_.reserve(offset, length);
    file_.write_at(offset, data);  // a first fill through the file is twice as fast as through a fresh mapping
  } catch (...) {
    discard(offset, length);
    throw;
  }
}

std::byte* PoolSegment::map(std::uint64_t offset, std::uint64_t length) {
  const std::scoped_lock lock(mutex_);
  auto found = mappings_.find(offset);
  if (found == mappings_.end()) found = mappings_.emplace(offset, os::Mapping(file_, offset, length)).first;
  return found->second.data();
}

void PoolSegment::discard(std::uint64_t offset, std::uint64_t length) const noexcept {
  if (offset >= kHeaderLength && offset % os::kPageSize == 0 && length <= kLargestFile) file_.discard(offset, length);
}

os::Mapping map_spilled(const PoolSegment& segment, std::uint64_t offset, std::uint64_t length) {
  const std::uint64_t end = segment.file().size();  // the header's word for it may have been written over
  if (length == 0 || offset % os::kPageSize != 0 || offset > end || length > end - offset) {
    throw Incompatible("a worker named a result outside its pool's memory");
  }
  return {segment.file(), offset, os::round_to_page(length)};
}

}  // namespace drover::inline v1::detail
