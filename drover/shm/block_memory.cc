// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <utility>

#include "drover/base/errors.h"
#include "drover/os/fault_point.h"
#include "drover/os/mapping.h"
#include "drover/os/memory_file.h"
#include "drover/os/self.h"
#include "drover/shm/block_base.h"
#include "drover/shm/block_layout.h"

namespace drover::inline v1::shm {
namespace {

constexpr std::uint64_t kDataOffset = sizeof(BlockPage);
constexpr std::uint64_t kLargestData = std::uint64_t{1} << 62U;

std::uint64_t file_size(std::uint64_t data_size) { return kDataOffset + os::round_to_page(data_size); }

/// A block with a memory file of its own.
class MemoryBlock final : public BlockBase {
 public:
  MemoryBlock(const BlockKey& key, os::Fd file, os::Mapping mapping, std::uint64_t size)
      : BlockBase(key, mapping.data() + kDataOffset, size), file_(std::move(file)), mapping_(std::move(mapping)) {}

  BlockHandle handle(bool counted) const override {
    BlockHandle result = plain_handle();
    result.pid = os::current_pid();
    result.descriptor = file_.get();
    result.counted = counted && count(false);
    return result;
  }

  BlockCounters counters() const noexcept override {
    auto& page = *reinterpret_cast<BlockPage*>(mapping_.data());
    return {&page.counters.sent, &page.counters.received};
  }

  os::Fd reopen() const override { return reopen_descriptor(file_); }

 private:
  os::Fd file_;  ///< kept for those who fetch it
  os::Mapping mapping_;
};

}  // namespace

os::Fd reopen_descriptor(const os::Fd& file) {
  auto opened = os::open_regular_file("/proc/thread-self/fd/" + std::to_string(file.get()), true);
  if (!opened) throw Error("a descriptor of a block is not in /proc/thread-self/fd");
  return std::move(*opened);
}

std::shared_ptr<BlockBase> create_memory_block(std::uint64_t size, std::string_view label) {
  if (size > kLargestData) throw InvalidArgument("a block of " + std::to_string(size) + " bytes is too large");
  os::MemoryFile file = os::MemoryFile::create("drover-block");
  file.grow_to(file_size(size));
  file.reserve(0, file_size(size));
  os::seal_size(file.fd());
  os::Mapping mapping(file, 0, file_size(size));
  write_facts(*reinterpret_cast<BlockPage*>(mapping.data()), BlockKind::kMemory, kDataOffset, size, {}, label, 0);
  os::fault_point();
  const BlockKey key{os::file_status(file.fd()).id, kDataOffset, Access::kReadWrite};
  return register_block(std::make_shared<MemoryBlock>(key, file.release_fd(), std::move(mapping), size));
}

std::shared_ptr<BlockBase> open_memory_block(const BlockHandle& handle, os::Fd file, Access access) {
  if (handle.offset != kDataOffset || handle.size > kLargestData ||
      os::file_status(file).size != file_size(handle.size)) {
    throw Incompatible("the handle of a block does not have the block's size");
  }
  const BlockKey key{{handle.device, handle.inode}, kDataOffset, access};
  os::Mapping mapping(file, 0, file_size(handle.size), writable(access));
  os::fault_point();
  return register_block(std::make_shared<MemoryBlock>(key, std::move(file), std::move(mapping), handle.size));
}

}  // namespace drover::inline v1::shm
