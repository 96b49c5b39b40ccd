// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "drover/shm/npy_header.h"

namespace drover::inline v1::shm {

enum class Access : std::uint8_t { kReadOnly, kReadWrite };

/// Names a block to another process of this user. Plain data: it travels in messages, and what arrives is not trusted.
struct BlockHandle {
  std::string name;      ///< of a named block, else empty
  std::int32_t pid = 0;  ///< without a name: who holds the descriptor
  std::int32_t descriptor = -1;
  std::uint64_t device = 0, inode = 0;  ///< of the file, so that nothing else can be opened by mistake
  std::uint64_t offset = 0, size = 0;   ///< where the data lie in the file, bytes
  bool counted = false;                 ///< the receiver must count it as received, see retain_until_received
};

/// A piece of memory that several processes map: with a name (a file in /dev/shm that is a valid .npy file, mode 0600),
/// or without (a memfd, sealed against shrinking). Its size is fixed for life. The mapping lives as long as the object,
/// the memory as long as somebody maps it. The name goes when the creator's object goes, or however the creator's
/// process ends.
///
/// Thread-safe. Any process that maps it. All errors that name a block name its path.
class Block {
 public:
  /// Writes the data of a new block, which are zero, before anybody can open it.
  using Fill = std::function<void(std::span<std::byte> data)>;

  /// A name of up to 200 bytes without '/'. `label` says to people what it is ("SharedArray<double, 2>"). Zero-filled
  /// (or as `fill` says), all memory reserved. Throws InvalidArgument (name), Error (the name is taken; says by which
  /// process), OutOfMemory (needed and available, before anything is taken), std::system_error.
  static std::shared_ptr<Block> create(std::string_view name, const NpyHeader& header, std::string_view label,
                                       const Fill& fill = {});

  /// The block that has the name, whatever it is, writable; a new one when there is none. Of several callers at once,
  /// one makes it. Throws as create and open.
  static std::shared_ptr<Block> open_or_create(std::string_view name, const NpyHeader& header, std::string_view label,
                                               const Fill& fill = {});

  /// Without a name. Zero-filled. Up to 64 KiB: part of a slab that is shared with others, aligned to 64 bytes; else
  /// page-aligned.
  static std::shared_ptr<Block> create(std::uint64_t size, std::string_view label);

  /// A block that somebody created by name. Throws Error (there is none), Incompatible (no block of Drover's, another
  /// version, damaged, truncated), std::system_error (permission: says whose it is).
  static std::shared_ptr<Block> open(std::string_view name, Access access);

  /// Memory made by something else in /dev/shm, for example Python's SharedMemory: data from the first byte.
  static std::shared_ptr<Block> open_raw(std::string_view name, std::uint64_t size, Access access);

  /// A .npy file anywhere; the data are mapped, not read.
  static std::shared_ptr<Block> open_npy(const std::string& path, Access access);

  /// What another process names. Returns the block itself when this process has it already. Throws OwnerDied when the
  /// process that held it is gone, Incompatible for a handle that does not fit what it names, std::system_error when
  /// the kernel does not let this process have it.
  static std::shared_ptr<Block> open(const BlockHandle& handle, Access access);

  virtual ~Block() = default;
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  virtual std::byte* data() const noexcept = 0;
  virtual std::uint64_t size() const noexcept = 0;  ///< bytes of data
  virtual Access access() const noexcept = 0;
  virtual const std::string& name() const noexcept = 0;  ///< empty without one
  virtual std::string path() const = 0;                  ///< empty without one
  /// Of a named block and a .npy file; throws InvalidArgument for others.
  virtual const NpyHeader& header() const = 0;

  /// Removes the name now; who has the block mapped keeps it. Only the creating process: InvalidArgument elsewhere.
  /// Nothing happens when it was removed before.
  virtual void unlink() = 0;

  /// For a message to another process. `counted`: also call retain_until_received.
  virtual BlockHandle handle(bool counted) const = 0;

 protected:
  Block() = default;
};

/// Counts one handle of the block as received, as open(handle) does by itself when it is `counted`: for who opens it as
/// not counted until it has it for good, and to take back a handle(true) that was not sent. Thread-safe.
void count_received(const Block& block) noexcept;

/// Keeps a block alive whose handle(true) was sent, until each such handle has been opened. For senders whose own
/// reference may end before the message is read. What was never read is kept until this process ends.
///
/// Nothing watches the counts: what has been received is let go at a later call of this function, of release_received,
/// or when a block above 64 KiB is created. Thread-safe.
void retain_until_received(std::shared_ptr<Block> block);
/// Lets go of what has been received meanwhile; how many blocks are still kept.
std::size_t release_received();

}  // namespace drover::inline v1::shm
