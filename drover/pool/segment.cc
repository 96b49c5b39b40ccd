// SPDX-License-Identifier: Apache-2.0
#include "drover/pool/segment.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "drover/base/errors.h"
#include "drover/os/file_limit.h"

namespace drover::inline v1::detail {
namespace {

constexpr std::uint64_t kHeaderLength = os::round_to_page(sizeof(PoolHeader));
constexpr std::uint64_t kLargestFile = std::uint64_t{1} << 62;

void check_end(std::uint64_t end, std::uint64_t floor) {
  if (end < floor || end > kLargestFile || end % os::kPageSize != 0) throw Error(kWrittenOver);
}

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
  const std::uint64_t floor = std::max(kHeaderLength, handed_out_.load(std::memory_order_acquire));
  std::uint64_t offset = header().file_end.load(std::memory_order_relaxed);
  do {
    check_end(offset, floor);
    os::check_file_limit(offset + size);  // before the end is moved: a smaller value may still fit
  } while (!header().file_end.compare_exchange_weak(offset, offset + size, std::memory_order_relaxed));
  std::uint64_t highest = floor;
  while (highest < offset + size && !handed_out_.compare_exchange_weak(highest, offset + size)) {
  }
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
  if (found->second.size() < length) throw Error(kWrittenOver);
  return found->second.data();
}

bool PoolSegment::meets_mapped(std::uint64_t offset, std::uint64_t length) const noexcept {
  const std::scoped_lock lock(mutex_);
  const auto behind = mappings_.lower_bound(offset + length);
  if (behind == mappings_.begin()) return false;
  const auto& [at, mapped] = *std::prev(behind);
  return at + mapped.size() > offset;
}

void PoolSegment::discard(std::uint64_t offset, std::uint64_t length) const noexcept {
  if (offset < kHeaderLength || offset % os::kPageSize != 0 || offset > kLargestFile || length > kLargestFile) return;
  if (!meets_mapped(offset, length)) file_.discard(offset, length);  // long for much: without the mutex
}

os::Mapping map_spilled(const PoolSegment& segment, std::uint64_t offset, std::uint64_t length) {
  const std::uint64_t end = segment.file().size();  // the header's word for it may have been written over
  if (length == 0 || offset % os::kPageSize != 0 || offset > end || length > end - offset) {
    throw Incompatible("a worker named a result outside its pool's memory");
  }
  return {segment.file(), offset, os::round_to_page(length)};
}

}  // namespace drover::inline v1::detail
