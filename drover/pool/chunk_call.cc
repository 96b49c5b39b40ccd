// SPDX-License-Identifier: Apache-2.0
#include "drover/pool/chunk_call.h"

#include <chrono>

#include "drover/pool/task_error.h"

namespace drover::inline v1::detail {

using Kind = shm::RecordHeader::Kind;

std::uint64_t now_ns() noexcept {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

IdleTime::IdleTime(WorkerSlot& worker) noexcept : worker_(worker), since_(now_ns()) {
  worker_.idle_since_ns.store(since_, std::memory_order_relaxed);
}

IdleTime::~IdleTime() {
  worker_.idle_ns.fetch_add(now_ns() - since_, std::memory_order_relaxed);
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
  if (size > ring_.max_record()) {
    if (!failed) return spill(bytes);
    bytes = bytes.first(0);  // an error too long for the ring arrives without its text
  }
  std::byte* const place = reserve(sizeof(shm::RecordHeader) + 8 + shm::align8(bytes.size()));
  if (place == nullptr) return;
  write_header(place, failed ? Kind::kError : Kind::kSized);
  const std::uint64_t length = bytes.size();
  std::memcpy(place + sizeof(shm::RecordHeader), &length, sizeof length);
  if (length != 0) std::memcpy(place + sizeof(shm::RecordHeader) + 8, bytes.data(), bytes.size());
  publish();
}

void ChunkCall::spill(std::span<const std::byte> bytes) {
  std::uint64_t words[2] = {bytes.size(), 0};
  try {
    words[1] = segment_.store(bytes);
  } catch (...) {
    return put_error(std::current_exception());
  }
  std::byte* const place = reserve(sizeof(shm::RecordHeader) + sizeof words);
  if (place == nullptr) return segment_.discard(words[1], os::round_to_page(words[0]));
  write_header(place, Kind::kSpilled);
  std::memcpy(place + sizeof(shm::RecordHeader), words, sizeof words);
  publish();
}

void ChunkCall::put_error(const std::exception_ptr& error) {
  const EncodedError encoded(error);
  put_bytes(encoded.bytes(), true);
}

std::byte* ChunkCall::wait_for_room(std::size_t size) noexcept {
  const IdleTime idle(worker_);
  for (;;) {
    job_.doorbell.ring();
    const auto unwanted = [&] { return job_.closed.load(std::memory_order_relaxed) != 0; };
    ring_.wait_for_room(size, unwanted);
    if (std::byte* const place = ring_.try_reserve(size)) return place;
    if (unwanted()) return nullptr;
  }
}

void ChunkCall::ring_doorbell() noexcept {
  const std::uint32_t wanted = job_.doorbell.hint();
  if (wanted != 0 && ring_.unread() >= wanted) job_.doorbell.ring();
}

}  // namespace drover::inline v1::detail
