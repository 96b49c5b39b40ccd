// SPDX-License-Identifier: Apache-2.0
#include "drover/shm/block_base.h"

#include <exception>
#include <functional>
#include <mutex>
#include <unordered_map>

#include "drover/base/errors.h"
#include "drover/os/mapping.h"

namespace drover::inline v1::shm {
namespace {

struct KeyHash {
  std::size_t operator()(const BlockKey& key) const noexcept {
    std::size_t hash = key.file.inode * 0x9E37'79B9'7F4A'7C15U + key.file.device;
    return (hash ^ (hash >> 29U)) * 0xBF58'476D'1CE4'E5B9U + key.offset * 2 + static_cast<std::size_t>(key.access);
  }
};

struct Registered {
  std::weak_ptr<BlockBase> block;
  const BlockBase* address;  ///< to tell a block that is being destroyed from a later one with the same key
};

struct Registry {
  std::mutex mutex;
  std::unordered_map<BlockKey, Registered, KeyHash> blocks;
};

Registry& registry() {
  static Registry& all = *new Registry;  // never destroyed: static blocks outlive statics
  return all;
}

}  // namespace

std::shared_ptr<BlockBase> find_block(const BlockKey& key) {
  const std::scoped_lock lock(registry().mutex);
  const auto found = registry().blocks.find(key);
  return found == registry().blocks.end() ? nullptr : found->second.block.lock();
}

std::shared_ptr<BlockBase> register_block(std::shared_ptr<BlockBase> block) {
  std::shared_ptr<BlockBase> other;  // maybe the last reference: let go without the mutex, which its destructor takes
  const std::scoped_lock lock(registry().mutex);
  Registered& place = registry().blocks[block->key()];
  other = place.block.lock();
  if (other && other->describes_the_same(*block)) return other;
  place = {block, block.get()};
  return block;
}

BlockBase::~BlockBase() {
  const std::scoped_lock lock(registry().mutex);
  const auto found = registry().blocks.find(key_);
  if (found != registry().blocks.end() && found->second.address == this) registry().blocks.erase(found);
}

const std::string& BlockBase::name() const noexcept {
  static const std::string& none = *new std::string;
  return none;
}

const NpyHeader& BlockBase::header() const {
  const NpyHeader* const header = npy_header();
  if (header == nullptr) throw InvalidArgument("this block is no .npy file: it has no header");
  return *header;
}

bool BlockBase::describes_the_same(const BlockBase& other) const {
  const NpyHeader *const mine = npy_header(), *const theirs = other.npy_header();
  if (size_ != other.size_ || (mine == nullptr) != (theirs == nullptr) || name() != other.name()) return false;
  return mine == nullptr || *mine == *theirs;
}

void BlockBase::unlink() { throw InvalidArgument("this block has no name of this process's that could be removed"); }

BlockHandle BlockBase::plain_handle() const {
  BlockHandle handle;
  handle.device = key_.file.device;
  handle.inode = key_.file.inode;
  handle.offset = key_.offset;
  handle.size = size_;
  return handle;
}

BlockHandle BlockBase::handle(bool /*counted*/) const {
  BlockHandle handle = plain_handle();
  handle.name = name();
  return handle;
}

bool BlockBase::count(bool received) const noexcept {
  const BlockCounters in_mapping = counters();
  std::atomic<std::uint64_t>* const counter = received ? in_mapping.received : in_mapping.sent;
  if (counter == nullptr) return false;
  if (writable(access())) {
    counter->fetch_add(1, std::memory_order_acq_rel);
    return true;
  }
  try {  // the page once more, this time for writing
    const auto offset = static_cast<std::uint64_t>(reinterpret_cast<std::byte*>(counter) - data_) + key_.offset;
    const std::uint64_t page = offset / os::kPageSize * os::kPageSize;
    const os::Mapping mapping(reopen(), page, os::kPageSize, true);
    reinterpret_cast<std::atomic<std::uint64_t>*>(mapping.data() + (offset - page))->fetch_add(1);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace drover::inline v1::shm
