// SPDX-License-Identifier: Apache-2.0
#include "drover/shm/block_named.h"

#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "drover/base/errors.h"
#include "drover/os/bus_guard.h"
#include "drover/os/fault_point.h"
#include "drover/os/file_system.h"
#include "drover/os/guarded_name.h"
#include "drover/os/mapping.h"
#include "drover/os/terminal.h"

namespace drover::inline v1::shm {
namespace {

constexpr std::uint64_t kDataOffset = kNpyHeaderSize;
constexpr std::uint64_t kLargestData = std::uint64_t{1} << 62U;

std::uint64_t page_offset(std::uint64_t data_size) { return kDataOffset + os::round_to_page(data_size); }
std::uint64_t file_size(std::uint64_t data_size) { return page_offset(data_size) + sizeof(BlockPage); }

/// The name of a file that this process has made: shared by its blocks of that file, and gone with the last of them.
struct OwnedName {
  std::mutex mutex;
  std::optional<os::GuardedName> guarded;  ///< protected by mutex; none in a process that has only opened the file
};

class NamedBlock final : public BlockBase {
 public:
  NamedBlock(const BlockKey& key, os::Mapping mapping, std::string name, NpyHeader header, std::uint64_t size,
             std::shared_ptr<OwnedName> owned)
      : BlockBase(key, mapping.data() + kDataOffset, size),
        mapping_(std::move(mapping)),
        guard_({mapping_.data(), mapping_.size()}, os::shared_path(name)),
        name_(std::move(name)),
        header_(std::move(header)),
        owned_(std::move(owned)) {}

  const std::string& name() const noexcept override { return name_; }
  std::string path() const override { return os::shared_path(name_); }
  const NpyHeader* npy_header() const noexcept override { return &header_; }

  void unlink() override {
    const std::scoped_lock lock(owned_->mutex);
    if (!owned_->guarded || !owned_->guarded->owned()) {
      throw InvalidArgument(path() + " was made by another process: only that one can remove the name");
    }
    owned_->guarded->remove();
  }

  BlockHandle handle(bool counted) const override {
    BlockHandle result = BlockBase::handle(counted);
    result.counted = counted && count(false);
    return result;
  }

  BlockCounters counters() const noexcept override {
    auto& page = *reinterpret_cast<BlockPage*>(data() + os::round_to_page(size()));
    return {&page.counters.sent, &page.counters.received};
  }

  os::Fd reopen() const override {
    std::optional<os::Fd> file = os::open_shared_file(name_, true);
    if (!file || os::file_status(*file).id != key().file) throw Error(path() + " is gone");
    return std::move(*file);
  }

  void own(os::GuardedName name) {
    const std::scoped_lock lock(owned_->mutex);
    owned_->guarded.emplace(std::move(name));
  }
  const std::shared_ptr<OwnedName>& owned() const noexcept { return owned_; }

 private:
  os::Mapping mapping_;
  os::BusGuard guard_;
  std::string name_;
  NpyHeader header_;
  std::shared_ptr<OwnedName> owned_;  ///< first to go: the name before the memory
};

/// What this process has of the file with other access, as far as its name is concerned. One that is on its way out
/// takes the name with it.
std::shared_ptr<OwnedName> owned_name_of(BlockKey key, const std::string& name) {
  key.access = key.access == Access::kReadOnly ? Access::kReadWrite : Access::kReadOnly;
  const auto other = std::dynamic_pointer_cast<NamedBlock>(find_block(key));
  return other && other->name() == name ? other->owned() : std::make_shared<OwnedName>();
}

std::string process_name(int pid) {
  std::string name = os::read_small_file("/proc/" + std::to_string(pid) + "/comm").value_or("");
  if (!name.empty() && name.back() == '\n') name.pop_back();
  return os::sanitize(name);
}

/// Whose the name is, for people.
std::string describe_owner(const std::string& name) {
  try {
    const std::optional<os::Fd> file = os::open_shared_file(name, false);
    if (!file) return "it went away in this moment";
    const os::ProcessId owner = read_named_file(*file, os::shared_path(name)).facts.creator;
    const std::string process = "process " + std::to_string(owner.pid);
    if (os::liveness(owner) == os::Liveness::kDead) {
      return "it was left by " + process + ", which was killed together with its guardian; `drover status --clean` " +
             "removes it";
    }
    if (!os::in_our_namespaces(owner)) return "it belongs to " + process + " of another container or namespace";
    return "it belongs to " + process + " (" + process_name(owner.pid) + ")";
  } catch (const std::system_error& error) {
    return std::string("it cannot be looked at: ") + error.what();
  } catch (const std::exception&) {
    return "it is no block of Drover's";
  }
}

os::Fd create_file(const std::string& name, std::uint64_t data_size) {
  try {
    return os::create_shared_file(file_size(data_size));
  } catch (const OutOfMemory& error) {
    throw OutOfMemory("cannot make " + os::shared_path(name) + ": " + error.what());
  }
}

}  // namespace

void throw_taken(const std::string& name) {
  throw Error("the name of the block is taken: " + os::shared_path(name) + " exists, and " + describe_owner(name));
}

std::shared_ptr<BlockBase> create_named_block(std::string_view wanted, const NpyHeader& given, std::string_view label,
                                              const Block::Fill& fill) {
  os::check_shared_name(wanted);
  const std::string name(wanted);
  NpyHeader header = given;
  header.data_offset = kDataOffset;
  const std::uint64_t size = header.data_size();
  if (size > kLargestData) throw InvalidArgument("a block of " + std::to_string(size) + " bytes is too large");
  const std::vector<std::byte> header_page = format_npy_header(header);
  if (os::shared_name_exists(name)) return nullptr;  // before memory is taken; what decides is the link below

  const os::Fd file = create_file(name, size);
  os::Mapping mapping(file, 0, file_size(size), true);
  std::memcpy(mapping.data(), header_page.data(), kNpyHeaderSize);
  auto& page = *reinterpret_cast<BlockPage*>(mapping.data() + page_offset(size));
  write_facts(page, BlockKind::kNamed, kDataOffset, size, name, label, hash_bytes(header_page));
  if (fill) fill({mapping.data() + kDataOffset, size});
  os::fault_point();
  const BlockKey key{os::file_status(file).id, kDataOffset, Access::kReadWrite};
  auto block = std::make_shared<NamedBlock>(key, std::move(mapping), name, std::move(header), size,
                                            std::make_shared<OwnedName>());
  register_block(block);  // before there is a name: a thread that opens it must find this block, which owns the name
  std::optional<os::GuardedName> owned = os::GuardedName::create(file, name);
  if (!owned) return nullptr;
  block->own(std::move(*owned));
  return block;
}

NamedFileContents read_named_file(const os::Fd& file, const std::string& path) {
  const auto refuse = [&](const char* why) -> void {
    throw Incompatible(os::sanitize(path) + " cannot be opened as a block: " + why);
  };
  const std::uint64_t length = os::file_status(file).size;
  constexpr std::uint64_t kSmallest = kNpyHeaderSize + sizeof(BlockPage);
  if (length < kSmallest || length % os::kPageSize != 0) refuse("its size is that of no block of Drover's");

  std::vector<std::byte> beginning(kNpyHeaderSize);
  NamedFileContents result{};
  const auto facts = std::as_writable_bytes(std::span(&result.facts, 1));
  if (os::read_at(file, 0, beginning) != beginning.size() ||
      os::read_at(file, length - sizeof(BlockPage), facts) != facts.size()) {
    refuse("it became smaller while it was read");
  }
  if (const char* const flaw = flaw_of(result.facts)) {
    refuse(result.facts.magic == BlockFacts::kMagic ? flaw : "it is no block of Drover's, or it was truncated");
  }
  if (result.facts.kind != BlockKind::kNamed || result.facts.data_offset != kDataOffset ||
      result.facts.data_size > kLargestData || file_size(result.facts.data_size) != length) {
    refuse("its size is not the one it was made with");
  }
  if (result.facts.header_hash != hash_bytes(beginning)) refuse("its .npy header is damaged");
  result.header = parse_npy_header(beginning, path);
  if (result.header.data_offset != kDataOffset || result.header.data_size() != result.facts.data_size) {
    refuse("its .npy header does not fit it");
  }
  return result;
}

std::shared_ptr<BlockBase> open_named_block(const std::string& name, Access access) {
  const std::optional<os::Fd> file = os::open_shared_file(name, writable(access));
  if (!file) return nullptr;
  os::fault_point();
  const BlockKey key{os::file_status(*file).id, kDataOffset, access};
  if (std::shared_ptr<BlockBase> known = find_block(key); known && known->name() == name) return known;
  NamedFileContents contents = read_named_file(*file, os::shared_path(name));
  const std::uint64_t size = contents.facts.data_size;
  os::Mapping mapping(*file, 0, file_size(size), writable(access));
  os::fault_point();
  return register_block(std::make_shared<NamedBlock>(key, std::move(mapping), name, std::move(contents.header), size,
                                                     owned_name_of(key, name)));
}

}  // namespace drover::inline v1::shm
