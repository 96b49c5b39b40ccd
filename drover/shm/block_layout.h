// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "drover/os/process_id.h"

/// The bytes of a block beside its data; docs/segment_format.md has them one by one. What is read here may have been
/// written by anybody: readers copy it out and check it.
namespace drover::inline v1::shm {

/// Handles of a block that were sent to be counted, and those of them that were opened.
struct SendCounters {
  alignas(64) std::atomic<std::uint64_t> sent;
  alignas(64) std::atomic<std::uint64_t> received;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

enum class BlockKind : std::uint32_t {
  kNamed = 1,   ///< header page, data, then from the next page on: this page
  kMemory = 2,  ///< this page, then the data
  kSlab = 3,    ///< this page, then small blocks, each after a SmallBlockLine
};

/// What a block says of itself. Never changes.
struct BlockFacts {
  static constexpr std::uint64_t kMagic = 0x314B'4C42'5256'5244;  // the letters DRVRBLK1
  static constexpr std::uint32_t kVersion = 1;

  std::uint64_t magic;
  std::uint32_t version;
  BlockKind kind;
  std::uint64_t data_offset, data_size;  ///< bytes, in the file
  os::ProcessId creator;
  std::int64_t created;       ///< nanoseconds, CLOCK_REALTIME
  std::uint64_t header_hash;  ///< of the .npy header page; 0 without one
  char label[128];            ///< for people; ends with a zero
  char name[208];             ///< empty without one; ends with a zero
  char unused[96];
  std::uint64_t checksum;  ///< FNV-1a of the first 504 bytes
};
static_assert(sizeof(BlockFacts) == 512 && offsetof(BlockFacts, checksum) == 504);

struct BlockPage {
  BlockFacts facts;
  SendCounters counters;
  char rest[4096 - sizeof(BlockFacts) - sizeof(SendCounters)];
};
static_assert(sizeof(BlockPage) == 4096);

/// Before each small block in a slab.
struct SmallBlockLine {
  static constexpr std::uint64_t kMagic = 0x314C'4D53'5256'5244;  // the letters DRVRSML1

  std::uint64_t magic;
  std::uint64_t size;  ///< bytes of data, which follow
  std::atomic<std::uint64_t> sent, received;
  char label[32];  ///< for people; ends with a zero
};
static_assert(sizeof(SmallBlockLine) == 64);

/// FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv
std::uint64_t hash_bytes(std::span<const std::byte> bytes) noexcept;

/// Of this process, now.
void write_facts(BlockPage& page, BlockKind kind, std::uint64_t data_offset, std::uint64_t data_size,
                 std::string_view name, std::string_view label, std::uint64_t header_hash);

/// Copies `text` into `place`, cut to fit, with zeros behind it.
void put_text(std::span<char> place, std::string_view text) noexcept;
/// Up to the first zero; all of it when there is none.
std::string get_text(std::span<const char> place);

/// What is wrong with a copy of a block's facts; nullptr when nothing is.
const char* flaw_of(const BlockFacts& facts) noexcept;

}  // namespace drover::inline v1::shm
