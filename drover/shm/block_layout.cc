// SPDX-License-Identifier: Apache-2.0
#include "drover/shm/block_layout.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace drover::inline v1::shm {
namespace {

std::uint64_t checksum_of(const BlockFacts& facts) noexcept {
  return hash_bytes(std::as_bytes(std::span(&facts, 1)).first(offsetof(BlockFacts, checksum)));
}

std::int64_t now_ns() {
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since_epoch).count();
}

}  // namespace

std::uint64_t hash_bytes(std::span<const std::byte> bytes) noexcept {
  // FNV-1a over words instead of bytes, because a page of them is hashed each time a block is opened.
  std::uint64_t hash = 14'695'981'039'346'656'037U;
  for (; !bytes.empty(); bytes = bytes.subspan(std::min<std::size_t>(8, bytes.size()))) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), std::min<std::size_t>(8, bytes.size()));
    hash = (hash ^ word) * 1'099'511'628'211U;
    hash ^= hash >> 32U;
  }
  return hash;
}

void put_text(std::span<char> place, std::string_view text) noexcept {
  const std::size_t length = std::min(text.size(), place.size() - 1);
  std::copy_n(text.data(), length, place.begin());
  std::fill(place.begin() + static_cast<std::ptrdiff_t>(length), place.end(), '\0');
}

std::string get_text(std::span<const char> place) {
  return {place.begin(), std::find(place.begin(), place.end(), '\0')};
}

void write_facts(BlockPage& page, BlockKind kind, std::uint64_t data_offset, std::uint64_t data_size,
                 std::string_view name, std::string_view label, std::uint64_t header_hash) {
  BlockFacts& facts = page.facts;
  facts.magic = BlockFacts::kMagic;
  facts.version = BlockFacts::kVersion;
  facts.kind = kind;
  facts.data_offset = data_offset;
  facts.data_size = data_size;
  facts.creator = os::ProcessId::current();
  facts.created = now_ns();
  facts.header_hash = header_hash;
  put_text(facts.label, label);
  put_text(facts.name, name);
  facts.checksum = checksum_of(facts);
}

const char* flaw_of(const BlockFacts& facts) noexcept {
  if (facts.magic != BlockFacts::kMagic) return "it is no block of Drover's";
  if (facts.version != BlockFacts::kVersion) return "another version of Drover made it";
  if (facts.checksum != checksum_of(facts)) return "what it says of itself is damaged";
  return nullptr;
}

}  // namespace drover::inline v1::shm
