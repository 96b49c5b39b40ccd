// SPDX-License-Identifier: Apache-2.0
#include "drover/pool/chunk_call.h"

#include <chrono>

namespace drover::inline v1::detail {

using Kind = shm::RecordHeader::Kind;

std::uint64_t now_ns() noexcept {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

IdleTime::IdleTime(WorkerSlot& worker) noexcept : worker_(worker), since_(now_ns()) {
  worker_.idle_since_ns.store(since_, std::memory_order_relaxed);
}

IdleTime::~IdleTime() {
  const std::uint64_t before = worker_.idle_ns.load(std::memory_order_relaxed);  // this worker alone writes it
  worker_.idle_ns.store(before + now_ns() - since_, std::memory_order_relaxed);
  worker_.idle_since_ns.store(0, std::memory_order_relaxed);
}

void start_task_clock(WorkerSlot& worker, std::uint64_t limit_ns) noexcept {
  worker.deadline_ns.store(now_ns() + limit_ns, std::memory_order_relaxed);
}

void stop_task_clock(WorkerSlot& worker) noexcept {
  if (worker.deadline_ns.exchange(0, std::memory_order_acq_rel) != kTimeIsOver) return;
  const os::FutexWord never{0};
  for (;;) os::futex_wait(never, 0);
}

void ChunkCall::put_bytes(std::span<const std::byte> bytes, bool failed) {
  const std::size_t size = sizeof(shm::RecordHeader) + 8 + shm::align8(bytes.size());
  if (!ring_.may_hold(size)) return spill(bytes, failed);
  std::byte* const place = reserve(size);
  write_header(place, failed ? Kind::kError : Kind::kSized);
  const std::uint64_t length = bytes.size();
  std::memcpy(place + sizeof(shm::RecordHeader), &length, sizeof length);
  if (length != 0) std::memcpy(place + sizeof(shm::RecordHeader) + 8, bytes.data(), bytes.size());
  publish();
}

void ChunkCall::spill(std::span<const std::byte> bytes, bool failed) {
  end_item();  // a worker that is to be killed shall not take memory first
  std::uint64_t words[2] = {bytes.size(), 0};
  try {
    words[1] = segment_.store(bytes);
  } catch (...) {
    end_worker_without_memory(std::current_exception());
    if (!failed) return put_error(std::current_exception());
    end_worker("there is no memory even for the text of an error");
  }
  std::byte* const place = reserve(sizeof(shm::RecordHeader) + sizeof words);
  write_header(place, failed ? Kind::kSpilledError : Kind::kSpilled);
  std::memcpy(place + sizeof(shm::RecordHeader), words, sizeof words);
  publish();
}

void ChunkCall::publish_count() noexcept {
  if (counted_ == item_) return;
  std::byte* const place = ring_.try_reserve(sizeof(shm::RecordHeader) + 8);
  if (place == nullptr) no_room();
  const shm::RecordHeader header{
      .position = position_, .item = counted_ & 0xffffff, .kind = static_cast<std::uint8_t>(Kind::kRun)};
  const std::uint64_t items = item_ - counted_;
  std::memcpy(place, &header, sizeof header);
  std::memcpy(place + sizeof header, &items, sizeof items);
  os::fault_point();
  ring_.publish();
  os::fault_point();
  counted_ = item_;
  hint_doorbell();
}

void ChunkCall::put_error(const std::exception_ptr& error) {
  end_item();
  const EncodedError encoded(error);
  const bool counting = job_.value_size == kNoValue;
  if (counting) publish_count();
  put_bytes(encoded.bytes(), true);
  if (!counting) return;
  counted_ = item_;
  worker_.progress.store(item_, std::memory_order_release);  // after its record: a failed item is not merely counted
}

void ChunkCall::put_error_for_all(const std::exception_ptr& error) {
  for (std::uint32_t i = 0; i < count && begin_item(); ++i) put_error(error);
}

/// The window of a map is smaller than its rings (RingProducer::sure_records), so this means damaged memory.
std::byte* ChunkCall::no_room() noexcept {
  end_worker("a result ring is full, which cannot be unless something wrote over shared memory");
}

void ChunkCall::ring_if_unread(std::uint32_t bytes) noexcept {
  if (ring_.unread() >= bytes) job_.doorbell.ring();
}

}  // namespace drover::inline v1::detail
