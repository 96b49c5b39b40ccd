// SPDX-License-Identifier: Apache-2.0
#include "drover/sync/shared.h"

#include <algorithm>
#include <span>
#include <system_error>
#include <utility>

#include "drover/base/errors.h"
#include "drover/os/signals.h"
#include "drover/wire/codec.h"

namespace drover::inline v1::sync {
namespace {

SharedHeader& header_of(const shm::Block& block) noexcept { return *reinterpret_cast<SharedHeader*>(block.data()); }

std::string place(const shm::Block& block) {
  return block.name().empty() ? "a block without a name" : "the block " + block.path();
}

/// Text in memory that others may write to, so it is copied first.
std::string kind_text(const SharedHeader& header) {
  const auto kind = header.kind;
  const std::string text(kind.begin(), std::find(kind.begin(), kind.end(), '\0'));
  const bool readable =
      !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
  return readable ? text : "";
}

std::array<char, 80> kind_field(const std::string& name) noexcept {
  std::array<char, 80> field{};
  std::copy_n(name.begin(), std::min(name.size(), field.size() - 1), field.begin());
  return field;
}

}  // namespace

std::shared_ptr<shm::Block> make_block(const Naming& name, const Kind& kind, const FillState& fill,
                                       std::uint64_t more) {
  const std::uint64_t size = sizeof(SharedHeader) + kind.state_size + more;
  const auto write = [&](std::span<std::byte> data) {
    SharedHeader& header = *reinterpret_cast<SharedHeader*>(data.data());
    header.kind = kind_field(kind.name);
    header.type = kind.type;
    header.version = kind.version;
    header.state_size = static_cast<std::uint32_t>(kind.state_size);
    fill(data.data() + sizeof(SharedHeader));
  };
  const shm::NpyHeader header{.descr = "|u1", .shape = {size}};
  if (name.taken == Naming::kOrOpen) {
    auto block = shm::Block::open_or_create(*name.name, header, kind.name, write);
    check_block(*block, kind);
    return block;
  }
  if (name.name) return shm::Block::create(*name.name, header, kind.name, write);
  auto block = shm::Block::create(size, kind.name);
  write({block->data(), size});
  return block;
}

void check_block(const shm::Block& block, const Kind& kind) {
  const std::uint64_t size = sizeof(SharedHeader) + kind.state_size;
  if (block.access() != shm::Access::kReadWrite)
    throw InvalidArgument(place(block) + " is mapped read-only: a " + kind.name + " must be writable");
  if (block.size() < sizeof(SharedHeader)) throw Incompatible(place(block) + " is too small to be a " + kind.name);
  const SharedHeader& header = header_of(block);
  const std::string found = kind_text(header);
  if (found.empty()) throw Incompatible(place(block) + " holds no lock or other primitive, or is damaged");
  if (header.kind != kind_field(kind.name) || header.type != kind.type) {
    throw Incompatible(place(block) + " is a " + found + ", not a " + kind.name);
  }
  if (header.version != kind.version || header.state_size != kind.state_size || block.size() < size) {
    throw Incompatible(place(block) + " is a " + kind.name + " of another version of Drover (" +
                       std::to_string(header.version) + "; this is " + std::to_string(kind.version) +
                       "): build both programs with the same");
  }
}

std::shared_ptr<shm::Block> open_block(std::string_view name, const Kind& kind) {
  auto block = shm::Block::open(name, shm::Access::kReadWrite);
  check_block(*block, kind);
  return block;
}

void encode_block(wire::Writer& writer, const std::shared_ptr<shm::Block>& block) {
  const bool kept = writer.keep(block);
  const shm::BlockHandle handle = block->handle(!kept);
  if (handle.counted) writer.if_not_sent([block] { shm::count_received(*block); });
  wire::encode(writer, handle);
  if (!kept) shm::retain_until_received(block);
}

std::shared_ptr<shm::Block> decode_block(wire::Reader& reader, const Kind& kind) {
  auto handle = wire::decode<shm::BlockHandle>(reader);
  const bool counted = std::exchange(handle.counted, false);
  auto block = shm::Block::open(handle, shm::Access::kReadWrite);
  if (counted) reader.when_taken([block] { shm::count_received(*block); });
  check_block(*block, kind);
  return block;
}

std::string describe(std::string_view what, const shm::Block& block) {
  const std::string kind(what);
  return block.name().empty() ? "a " + kind + " without a name" : "the " + kind + " \"" + block.name() + "\"";
}

void throw_owner_died(const std::string& what, os::ThreadId who) {
  throw OwnerDied("thread " + std::to_string(os::thread_number(who)) + " died while it held " + what +
                  ": it is free again, but look whether what it guards is half-written before you lock it anew");
}

void throw_relocked(const std::string& what) {
  throw std::system_error(std::make_error_code(std::errc::resource_deadlock_would_occur),
                          "lock of " + what + ", which this thread holds already");
}

void throw_not_held(const std::string& what) {
  throw std::system_error(std::make_error_code(std::errc::operation_not_permitted),
                          "unlock of " + what + ", which this thread does not hold");
}

void throw_interrupted() { throw Interrupted(os::pending_interrupt()); }

}  // namespace drover::inline v1::sync
