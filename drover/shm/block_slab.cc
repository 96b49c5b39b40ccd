// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "drover/base/errors.h"
#include "drover/os/fault_point.h"
#include "drover/os/mapping.h"
#include "drover/os/memory_file.h"
#include "drover/os/reservation.h"
#include "drover/os/self.h"
#include "drover/shm/block_base.h"
#include "drover/shm/block_layout.h"

namespace drover::inline v1::shm {
namespace {

constexpr std::uint64_t kSlabSize = 2 << 20;
constexpr std::uint64_t kReserveStep = 128 << 10;
constexpr std::uint64_t kFirstLine = sizeof(BlockPage);

constexpr std::uint64_t round_to_line(std::uint64_t size) { return (size + 63) & ~std::uint64_t{63}; }

/// A memory file that many small blocks lie in, filled from front to back. Lives until the last of them is gone.
class Slab {
 public:
  static std::shared_ptr<Slab> create();
  static std::shared_ptr<Slab> open(os::Fd file, const os::FileId& id, Access access);
  ~Slab();

  Slab(const os::FileId& id, os::Fd file, os::Mapping mapping, Access access)
      : id_(id), access_(access), file_(std::move(file)), mapping_(std::move(mapping)) {}

  const os::FileId& id() const noexcept { return id_; }
  const os::Fd& file() const noexcept { return file_; }
  std::byte* at(std::uint64_t offset) const noexcept { return mapping_.data() + offset; }

  /// Offset of the data, or 0 when there is not enough room. With the mutex of `slabs()`; the process that made it
  /// only.
  std::uint64_t allocate(std::uint64_t size);
  bool own() const noexcept { return creator_ == os::current_pid(); }

 private:
  os::FileId id_;
  Access access_;
  os::Fd file_;
  os::Mapping mapping_;
  std::uint64_t next_ = kFirstLine;  ///< where the next line comes
  std::uint64_t reserved_ = 0;
  int creator_ = 0;  ///< 0: opened
};

using SlabKey = std::tuple<std::uint64_t, std::uint64_t, Access>;
struct Slabs {
  std::mutex mutex;
  std::weak_ptr<Slab> filling;
  std::map<SlabKey, std::pair<std::weak_ptr<Slab>, const Slab*>> all;
};

Slabs& slabs() {
  static Slabs& all = *new Slabs;  // never destroyed: static blocks outlive statics
  return all;
}

SlabKey key_of(const os::FileId& id, Access access) { return {id.device, id.inode, access}; }

std::shared_ptr<Slab> find_slab(const os::FileId& id, Access access) {
  const std::scoped_lock lock(slabs().mutex);
  const auto found = slabs().all.find(key_of(id, access));
  return found == slabs().all.end() ? nullptr : found->second.first.lock();
}

std::shared_ptr<Slab> Slab::create() {
  os::MemoryFile file = os::MemoryFile::create("drover-slab");
  file.grow_to(kSlabSize);
  os::seal_size(file.fd());
  file.reserve(0, kReserveStep);
  os::Mapping mapping(file, 0, kSlabSize);
  write_facts(*reinterpret_cast<BlockPage*>(mapping.data()), BlockKind::kSlab, kFirstLine, kSlabSize - kFirstLine, {},
              "slab", 0);
  const os::FileId id = os::file_status(file.fd()).id;
  auto slab = std::make_shared<Slab>(id, file.release_fd(), std::move(mapping), Access::kReadWrite);
  slab->creator_ = os::current_pid();
  slab->reserved_ = kReserveStep;
  return slab;
}

std::shared_ptr<Slab> Slab::open(os::Fd file, const os::FileId& id, Access access) {
  if (os::file_status(file).size != kSlabSize) throw Incompatible("the handle of a small block names no slab");
  os::Mapping mapping(file, 0, kSlabSize, writable(access));
  auto slab = std::make_shared<Slab>(id, std::move(file), std::move(mapping), access);
  const std::scoped_lock lock(slabs().mutex);
  auto& place = slabs().all[key_of(id, access)];
  if (std::shared_ptr<Slab> other = place.first.lock()) return other;  // of another thread
  place = {slab, slab.get()};
  return slab;
}

Slab::~Slab() {
  const std::scoped_lock lock(slabs().mutex);
  const auto found = slabs().all.find(key_of(id_, access_));
  if (found != slabs().all.end() && found->second.second == this) slabs().all.erase(found);
}

std::uint64_t Slab::allocate(std::uint64_t size) {
  const std::uint64_t line = next_;
  const std::uint64_t end = line + sizeof(SmallBlockLine) + round_to_line(size);
  if (end > kSlabSize) return 0;
  if (end > reserved_) {
    const std::uint64_t goal = std::min(kSlabSize, (end + kReserveStep - 1) / kReserveStep * kReserveStep);
    os::reserve_memory(file_, reserved_, goal - reserved_);
    reserved_ = goal;
  }
  next_ = end;
  return line + sizeof(SmallBlockLine);
}

std::pair<std::shared_ptr<Slab>, std::uint64_t> take_room(std::uint64_t size) {
  std::shared_ptr<Slab> slab, full;  // outlive the lock: a slab's end takes it
  const std::scoped_lock lock(slabs().mutex);
  slab = slabs().filling.lock();
  if (slab && slab->own()) {  // in a fork: the creator goes on filling it
    if (const std::uint64_t offset = slab->allocate(size)) return {std::move(slab), offset};
  }
  full = std::exchange(slab, Slab::create());
  slabs().filling = slab;
  slabs().all[key_of(slab->id(), Access::kReadWrite)] = {slab, slab.get()};
  return {slab, slab->allocate(size)};
}

class SmallBlock final : public BlockBase {
 public:
  SmallBlock(std::shared_ptr<Slab> slab, std::uint64_t offset, std::uint64_t size, Access access)
      : BlockBase({slab->id(), offset, access}, slab->at(offset), size), slab_(std::move(slab)) {}

  BlockHandle handle(bool counted) const override {
    BlockHandle result = plain_handle();
    result.pid = os::current_pid();
    result.descriptor = slab_->file().get();
    result.counted = counted && count(false);
    return result;
  }

  BlockCounters counters() const noexcept override { return {&line().sent, &line().received}; }
  os::Fd reopen() const override { return reopen_descriptor(slab_->file()); }
  SmallBlockLine& line() const noexcept { return reinterpret_cast<SmallBlockLine*>(data())[-1]; }

 private:
  std::shared_ptr<Slab> slab_;
};

}  // namespace

std::shared_ptr<BlockBase> create_small_block(std::uint64_t size, std::string_view label) {
  auto [slab, offset] = take_room(size);
  auto block = std::make_shared<SmallBlock>(std::move(slab), offset, size, Access::kReadWrite);
  block->line().size = size;
  put_text(block->line().label, label);
  block->line().magic = SmallBlockLine::kMagic;
  os::fault_point();
  return register_block(std::move(block));
}

std::shared_ptr<BlockBase> open_small_block(const BlockHandle& handle, os::Fd file, Access access) {
  const os::FileId id{handle.device, handle.inode};
  std::shared_ptr<Slab> slab = find_slab(id, access);
  if (!slab && !file.valid()) return nullptr;
  const bool inside = handle.offset % 64 == 0 && handle.offset >= kFirstLine + sizeof(SmallBlockLine) &&
                      handle.offset <= kSlabSize && handle.size <= kSlabSize - handle.offset;
  if (!inside) throw Incompatible("the handle of a small block points out of its slab");
  if (!slab) slab = Slab::open(std::move(file), id, access);
  auto block = std::make_shared<SmallBlock>(std::move(slab), handle.offset, handle.size, access);
  if (block->line().magic != SmallBlockLine::kMagic || block->line().size != handle.size) {
    throw Incompatible("the handle of a small block does not fit what is in its slab");
  }
  return register_block(std::move(block));
}

}  // namespace drover::inline v1::shm
