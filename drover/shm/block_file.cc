// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "drover/base/errors.h"
#include "drover/os/bus_guard.h"
#include "drover/os/mapping.h"
#include "drover/os/reservation.h"
#include "drover/os/terminal.h"
#include "drover/shm/block_named.h"

namespace drover::inline v1::shm {
namespace {

constexpr std::size_t kLongestNpyHeader = 64 << 10;

/// A file that something else has made: another program's shared memory, or a .npy file on disk.
class FileBlock final : public BlockBase {
 public:
  FileBlock(const BlockKey& key, os::Mapping mapping, std::uint64_t size, std::string name, std::string path,
            std::optional<NpyHeader> header)
      : BlockBase(key, mapping.data() + key.offset, size),
        mapping_(std::move(mapping)),
        guard_({mapping_.data(), mapping_.size()}, path),
        name_(std::move(name)),
        path_(std::move(path)),
        header_(std::move(header)) {}

  const std::string& name() const noexcept override { return name_; }
  std::string path() const override { return path_; }
  const NpyHeader* npy_header() const noexcept override { return header_ ? &*header_ : nullptr; }

  BlockHandle handle(bool /*counted*/) const override {
    BlockHandle result = plain_handle();
    result.name = header_ ? path_ : name_;
    return result;
  }

  os::Fd reopen() const override { throw Error(path_ + " has no counters"); }

 private:
  os::Mapping mapping_;
  os::BusGuard guard_;
  std::string name_, path_;
  std::optional<NpyHeader> header_;
};

void require_size(const std::string& path, std::uint64_t there, std::uint64_t needed) {
  if (there >= needed) return;
  throw Incompatible(os::sanitize(path) + " has " + std::to_string(there) + " bytes, fewer than the " +
                     std::to_string(needed) + " that are needed");
}

/// Whoever made it may have reserved nothing; without memory, a touch would end in SIGBUS, be it to read.
void reserve(const os::Fd& file, const std::string& name, std::uint64_t size, Access access) {
  if (writable(access)) return os::reserve_memory(file, 0, size);
  std::optional<os::Fd> again;
  try {
    again = os::open_shared_file(name, true);
  } catch (const std::system_error&) {  // its permissions let nobody write to it
  }
  if (again && os::file_status(*again).id == os::file_status(file).id) os::reserve_memory(*again, 0, size);
}

}  // namespace

std::shared_ptr<BlockBase> open_raw_block(const std::string& name, std::uint64_t size, Access access) {
  const std::optional<os::Fd> file = os::open_shared_file(name, writable(access));
  if (!file) return nullptr;
  const std::string path = os::shared_path(name);
  const os::FileStatus status = os::file_status(*file);
  require_size(path, status.size, std::max<std::uint64_t>(size, 1));
  const BlockKey key{status.id, 0, access};
  if (std::shared_ptr<BlockBase> known = find_block(key); known && known->size() == size) return known;
  reserve(*file, name, size, access);
  os::Mapping mapping(*file, 0, std::max<std::uint64_t>(size, 1), writable(access));
  return register_block(std::make_shared<FileBlock>(key, std::move(mapping), size, name, path, std::nullopt));
}

std::shared_ptr<BlockBase> open_npy_block(const std::string& path, Access access) {
  const std::optional<os::Fd> file = os::open_regular_file(path, writable(access));
  if (!file) return nullptr;
  const os::FileStatus status = os::file_status(*file);
  std::vector<std::byte> beginning(kLongestNpyHeader);
  beginning.resize(os::read_at(*file, 0, beginning));
  NpyHeader header = parse_npy_header(beginning, path);
  const std::uint64_t size = header.data_size();
  if (header.data_offset > status.size) require_size(path, status.size, header.data_offset);
  require_size(path, status.size - header.data_offset, size);
  const BlockKey key{status.id, header.data_offset, access};
  if (std::shared_ptr<BlockBase> known = find_block(key)) {
    if (known->npy_header() != nullptr && *known->npy_header() == header) return known;
  }
  os::Mapping mapping(*file, 0, header.data_offset + size, writable(access));
  std::string full_path = os::path_of(*file);
  return register_block(std::make_shared<FileBlock>(key, std::move(mapping), size, std::string(), std::move(full_path),
                                                    std::move(header)));
}

}  // namespace drover::inline v1::shm
