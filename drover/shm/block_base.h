// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "drover/os/shared_file.h"
#include "drover/shm/block.h"

/// What the kinds of blocks have in common. Private to block*.cc.
namespace drover::inline v1::shm {

/// One mapping: the file, where the data lie in it, and how.
struct BlockKey {
  os::FileId file;
  std::uint64_t offset = 0;
  Access access = Access::kReadWrite;
  bool operator==(const BlockKey&) const = default;
};

struct BlockCounters {
  std::atomic<std::uint64_t>* sent = nullptr;
  std::atomic<std::uint64_t>* received = nullptr;
};

/// Every block is registered, by a weak reference, from the end of its making to its destruction.
class BlockBase : public Block {
 public:
  ~BlockBase() override;

  const BlockKey& key() const noexcept { return key_; }
  std::byte* data() const noexcept final { return data_; }
  std::uint64_t size() const noexcept final { return size_; }
  Access access() const noexcept final { return key_.access; }
  const std::string& name() const noexcept override;
  std::string path() const override { return {}; }
  const NpyHeader& header() const final;
  void unlink() override;
  BlockHandle handle(bool counted) const override;

  /// Whether what it says of itself is what `other` says: a file may have been rewritten between two openings.
  bool describes_the_same(const BlockBase& other) const;

  /// In the mapping; null for what is not made by Drover. Not to be written with Access::kReadOnly.
  virtual BlockCounters counters() const noexcept { return {}; }
  /// Null without one.
  virtual const NpyHeader* npy_header() const noexcept { return nullptr; }
  /// Opens the file once more for writing, whatever the access; throws when that cannot be.
  virtual os::Fd reopen() const = 0;
  /// Adds one to a counter. False when that cannot be done: then nobody will wait for it.
  bool count(bool received) const noexcept;

 protected:
  BlockBase(const BlockKey& key, std::byte* data, std::uint64_t size) : key_(key), data_(data), size_(size) {}
  BlockHandle plain_handle() const;

 private:
  BlockKey key_;
  std::byte* data_;
  std::uint64_t size_;
};

/// The block of this process that is this mapping, or null.
std::shared_ptr<BlockBase> find_block(const BlockKey& key);
/// Registers a new block. Returns the one that another thread has registered meanwhile, if it describes the same.
std::shared_ptr<BlockBase> register_block(std::shared_ptr<BlockBase> block);

// The kinds; each throws as Block::open(handle) says.
std::shared_ptr<BlockBase> create_memory_block(std::uint64_t size, std::string_view label);
std::shared_ptr<BlockBase> open_memory_block(const BlockHandle& handle, os::Fd file, Access access);
std::shared_ptr<BlockBase> create_small_block(std::uint64_t size, std::string_view label);
/// `file` is invalid when the slab may be mapped already: null when it is not.
std::shared_ptr<BlockBase> open_small_block(const BlockHandle& handle, os::Fd file, Access access);
inline constexpr std::uint64_t kLargestSmallBlock = 64 << 10;

inline bool writable(Access access) noexcept { return access == Access::kReadWrite; }

/// Opens the file of a descriptor of this process once more, for writing.
os::Fd reopen_descriptor(const os::Fd& file);

}  // namespace drover::inline v1::shm
