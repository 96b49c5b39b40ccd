// SPDX-License-Identifier: Apache-2.0
#include "drover/shm/block.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <list>
#include <mutex>
#include <optional>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "drover/base/errors.h"
#include "drover/os/fault_point.h"
#include "drover/os/process_id.h"
#include "drover/os/terminal.h"
#include "drover/shm/block_base.h"
#include "drover/shm/block_layout.h"
#include "drover/shm/block_named.h"
#include "drover/shm/recent_blocks.h"

namespace drover::inline v1::shm {
namespace {

[[noreturn]] void throw_none(const std::string& path) {
  throw Error("there is no block " + os::sanitize(path) +
              ": its owner has not made it yet, has removed it or has ended");
}

std::shared_ptr<BlockBase> open_by_name(const BlockHandle& handle, Access access) {
  const bool is_path = handle.name.find('/') != std::string::npos;
  const std::string path = is_path ? handle.name : os::shared_path(handle.name);
  if (!is_path) os::check_shared_name(handle.name);
  std::shared_ptr<BlockBase> block = is_path              ? open_npy_block(handle.name, access)
                                     : handle.offset == 0 ? open_raw_block(handle.name, handle.size, access)
                                                          : open_named_block(handle.name, access);
  const os::FileId file{handle.device, handle.inode};
  if (!block || block->key().file != file) {
    throw OwnerDied("the block " + os::sanitize(path) +
                    " that was sent is gone: its owner has removed it or has ended" +
                    (block ? ", and another one has the name now" : ""));
  }
  if (block->key().offset != handle.offset || block->size() != handle.size) {
    throw Incompatible("the handle of the block " + os::sanitize(path) + " does not have the block's size");
  }
  return block;
}

[[noreturn]] void throw_not_held(const BlockHandle& handle) {
  const std::string process = "process " + std::to_string(handle.pid);
  if (os::liveness_of_number(handle.pid) == os::Liveness::kDead) {
    throw OwnerDied("a block without a name is lost: " + process + ", which held it, ended before it was opened here");
  }
  throw Incompatible("a block without a name is not held by " + process +
                     " (any more): the sender must keep it until the receiver has it");
}

[[noreturn]] void throw_not_allowed(const BlockHandle& handle, const std::string& path) {
  throw std::system_error(EACCES, std::generic_category(),
                          "a block without a name cannot be fetched from process " + std::to_string(handle.pid) +
                              ", which may not be looked into: it is not dumpable (prctl PR_SET_DUMPABLE), or runs as "
                              "another user or with more rights; give the block a name (stat " +
                              path + ")");
}

/// The first thread of a process may have ended before the others: then only those show the descriptors.
std::string path_of_descriptor(const BlockHandle& handle, const os::FileId& wanted) {
  const std::string process = "/proc/" + std::to_string(handle.pid), fd = "/fd/" + std::to_string(handle.descriptor);
  if (os::file_id_of(process + fd) == wanted) return process + fd;
  std::error_code error;
  const std::filesystem::directory_iterator end;
  for (std::filesystem::directory_iterator it(process + "/task", error); !error && it != end; it.increment(error)) {
    std::string path = it->path().string() + fd;
    if (os::file_id_of(path) == wanted) return path;
  }
  return process + fd;
}

os::Fd fetch_descriptor(const BlockHandle& handle, Access access) {
  if (handle.pid <= 0 || handle.descriptor < 0) throw Incompatible("the handle of a block names no process");
  const os::FileId wanted{handle.device, handle.inode};
  const std::string path = path_of_descriptor(handle, wanted);
  const std::optional<os::FileId> found = os::file_id_of(path);
  if (!found && (errno == EACCES || errno == EPERM)) throw_not_allowed(handle, path);
  if (found != wanted) throw_not_held(handle);  // nothing else is opened, not even for a moment
  std::optional<os::Fd> file = os::open_regular_file(path, writable(access));
  os::fault_point();
  if (!file || os::file_status(*file).id != wanted) throw_not_held(handle);
  if (!os::sealed_against_shrinking(*file)) throw Incompatible("the handle of a block names no memory of Drover's");
  return std::move(*file);
}

std::shared_ptr<BlockBase> open_by_descriptor(const BlockHandle& handle, Access access) {
  if (std::shared_ptr<BlockBase> block = open_small_block(handle, os::Fd(), access)) return block;
  os::Fd file = fetch_descriptor(handle, access);
  BlockFacts facts{};
  const auto bytes = std::as_writable_bytes(std::span(&facts, 1));
  if (os::read_at(file, 0, bytes) != bytes.size()) throw Incompatible("the handle of a block names no block");
  if (const char* const flaw = flaw_of(facts)) throw Incompatible(std::string("a block cannot be opened: ") + flaw);
  if (facts.kind == BlockKind::kSlab) return open_small_block(handle, std::move(file), access);
  if (facts.kind == BlockKind::kMemory && facts.data_size == handle.size)
    return open_memory_block(handle, std::move(file), access);
  throw Incompatible("the handle of a block does not fit the block that it names");
}

bool all_received(const Block& block) {
  const auto* const base = dynamic_cast<const BlockBase*>(&block);
  const BlockCounters counters = base == nullptr ? BlockCounters{} : base->counters();
  if (counters.sent == nullptr) return true;
  const std::uint64_t received = counters.received->load(std::memory_order_acquire);
  return received >= counters.sent->load(std::memory_order_acquire);
}

struct Retained {
  std::mutex mutex;
  std::list<std::shared_ptr<Block>> blocks;
};

Retained& retained() {
  static Retained& all = *new Retained;  // its blocks are kept until the process ends
  return all;
}

/// Takes out what has been received among the first `most`; the others go to the end.
std::list<std::shared_ptr<Block>> take_received(std::size_t most) {
  std::list<std::shared_ptr<Block>> done;
  std::list<std::shared_ptr<Block>>& blocks = retained().blocks;
  for (std::size_t left = std::min(most, blocks.size()); left > 0; --left) {
    auto& to = all_received(*blocks.front()) ? done : blocks;
    to.splice(to.end(), blocks, blocks.begin());
  }
  return done;
}

}  // namespace

std::shared_ptr<Block> Block::create(std::string_view name, const NpyHeader& header, std::string_view label,
                                     const Fill& fill) {
  release_received();
  if (std::shared_ptr<Block> block = create_named_block(name, header, label, fill)) return block;
  throw_taken(std::string(name));
}

std::shared_ptr<Block> Block::open_or_create(std::string_view name, const NpyHeader& header, std::string_view label,
                                             const Fill& fill) {
  constexpr int kAttempts = 1000;  // enough for any number of processes that make and remove one name all the time
  os::check_shared_name(name);
  release_received();
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (std::shared_ptr<Block> block = open_named_block(std::string(name), Access::kReadWrite)) return block;
    if (std::shared_ptr<Block> block = create_named_block(name, header, label, fill)) return block;
  }
  throw_taken(std::string(name));
}

std::shared_ptr<Block> Block::create(std::uint64_t size, std::string_view label) {
  if (size <= kLargestSmallBlock) return create_small_block(size, label);
  release_received();
  return create_memory_block(size, label);
}

std::shared_ptr<Block> Block::open(std::string_view name, Access access) {
  os::check_shared_name(name);
  if (std::shared_ptr<Block> block = open_named_block(std::string(name), access)) return block;
  throw_none(os::shared_path(name));
}

std::shared_ptr<Block> Block::open_raw(std::string_view name, std::uint64_t size, Access access) {
  os::check_shared_name(name);
  if (std::shared_ptr<Block> block = open_raw_block(std::string(name), size, access)) return block;
  throw_none(os::shared_path(name));
}

std::shared_ptr<Block> Block::open_npy(const std::string& path, Access access) {
  if (std::shared_ptr<Block> block = open_npy_block(path, access)) return block;
  throw std::system_error(ENOENT, std::generic_category(), "open " + os::sanitize(path));
}

std::shared_ptr<Block> Block::open(const BlockHandle& handle, Access access) {
  const BlockKey key{{handle.device, handle.inode}, handle.offset, access};
  std::shared_ptr<BlockBase> block = find_block(key);
  if (block && block->size() != handle.size) {
    const bool raw = !handle.name.empty() && handle.offset == 0;  // of such memory anybody may open as much as he likes
    if (!raw) throw Incompatible("the handle of a block does not have the block's size");
    block = nullptr;
  }
  const bool opened_now = block == nullptr;
  if (!block) block = handle.name.empty() ? open_by_descriptor(handle, access) : open_by_name(handle, access);
  if (handle.counted) block->count(true);
  RecentBlocks::of_this_process().add(block, opened_now);
  os::fault_point();
  return block;
}

void count_received(const Block& block) noexcept {
  if (const auto* const base = dynamic_cast<const BlockBase*>(&block)) base->count(true);
}

void retain_until_received(std::shared_ptr<Block> block) {
  constexpr std::size_t kLookedAt = 4;  // more than one, so that the list shrinks
  if (all_received(*block)) return;
  std::list<std::shared_ptr<Block>> done;  // let go without the mutex
  const std::scoped_lock lock(retained().mutex);
  done = take_received(kLookedAt);
  retained().blocks.push_back(std::move(block));
}

std::size_t release_received() {
  std::list<std::shared_ptr<Block>> done;
  const std::scoped_lock lock(retained().mutex);
  done = take_received(retained().blocks.size());
  return retained().blocks.size();
}

}  // namespace drover::inline v1::shm
