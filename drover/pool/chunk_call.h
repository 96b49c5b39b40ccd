// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <span>

#include "drover/pool/segment.h"
#include "drover/pool/task_error.h"
#include "drover/wire/reader.h"

namespace drover::inline v1::detail {

/// Nanoseconds of the steady clock.
std::uint64_t now_ns() noexcept;

/// WorkerSlot::deadline_ns of a task whose time is over: the parent has decided to kill the worker.
inline constexpr std::uint64_t kTimeIsOver = ~std::uint64_t{0};

/// Worker side: a task begins that may take so long.
void start_task_clock(WorkerSlot& worker, std::uint64_t limit_ns) noexcept;
/// The task is over, its result not yet published. Does not return when the parent has decided otherwise.
void stop_task_clock(WorkerSlot& worker) noexcept;

/// A worker's hands on the chunks of a map, one after the other: the inputs, and where each result goes. The thunk of
/// the mapped function gets it. Worker side, one thread.
class ChunkCall {
 public:
  /// What is the same for all chunks of the job. Everything outlives the call.
  ChunkCall(PoolSegment& segment, JobSlot& job, std::size_t job_number, const shm::RingProducer& results,
            WorkerSlot& worker)
      : segment_(segment),
        job_(job),
        worker_(worker),
        ring_(results),
        progress_base_(1 + (std::uint64_t{job_number} << 32)) {}

  /// This worker has claimed `entry`, at that board position. Inputs that are no index range: see `inputs`.
  void begin(const ChunkEntry& entry, std::uint32_t board_position) noexcept {
    base = job_.base + static_cast<std::int64_t>(entry.first);
    count = entry.count;
    position_ = board_position;
    item_ = 0;
  }

  wire::Reader inputs{{}};  ///< encoded inputs, when they are no index range
  std::uint32_t skip = 0;   ///< so many of them are finished already
  std::int64_t base = 0;    ///< first value, when they are
  std::uint32_t count = 0;

  /// The next encoded input, which nothing that is wrong with those before it can spoil.
  std::span<const std::byte> next_input() {
    const auto length = inputs.get<std::uint64_t>("input");
    const std::span<const std::byte> bytes = inputs.take(length, "input");
    if (inputs.remaining() != 0) inputs.align(wire::kMessageAlignment, "input");
    return bytes;
  }

  /// Before each item: false when nobody wants the rest.
  bool begin_item() noexcept {
    if (job_.closed.load(std::memory_order_relaxed) != 0) return false;
    if (job_.timeout_ns != 0) start_task_clock(worker_, job_.timeout_ns);
    return true;
  }

  /// The item's result, as the bytes of a value whose size every value of the job has.
  template <std::size_t kSize>
  void put_fixed(const void* value) noexcept {
    constexpr std::size_t kRecord = sizeof(shm::RecordHeader) + shm::align8(kSize);
    std::byte* const place = reserve(kRecord);
    write_header(place, shm::RecordHeader::Kind::kValue);
    std::memcpy(place + sizeof(shm::RecordHeader), value, kSize);
    publish();
  }
  /// The item's result, or its encoded exception, as any number of bytes.
  void put_bytes(std::span<const std::byte> bytes, bool failed);
  void put_error(const std::exception_ptr& error);
  /// Nothing can be run, because the inputs are not to be had: each item has this error.
  void put_error_for_all(const std::exception_ptr& error);

  /// For results without a value (kNoValue) the worker's own line counts what is finished, and the ring hears of many
  /// at once.
  void begin_counting() noexcept {
    counted_ = 0;
    worker_.progress.store(0, std::memory_order_relaxed);
    worker_.progress_at.store(progress_base_ + position_, std::memory_order_release);
  }
  void count_item() noexcept {
    end_item();
    os::fault_point();
    worker_.progress.store(++item_, std::memory_order_release);
    os::fault_point();
    if (job_.doorbell.hint() == 1)
      publish_count();  // the caller waits for any result; more than one can wait for the end
  }
  void publish_count() noexcept;
  void end_counting() noexcept {
    publish_count();
    worker_.progress_at.store(0, std::memory_order_release);
  }

  /// Items whose result is out; fewer than count when nobody wanted the rest.
  std::uint32_t finished() const noexcept { return item_; }

  /// Wakes a caller for whom there is enough in the ring, even one who fell asleep as the last result was published.
  void ring_doorbell() noexcept {
    if (const std::uint32_t wanted = job_.doorbell.wanted()) ring_if_unread(wanted);
  }
  /// Wakes one who wanted more than there is: no more are coming from here.
  void ring_doorbell_for_any() noexcept {
    if (job_.doorbell.wanted() != 0) ring_if_unread(1);
  }

 private:
  /// The item is over, its result not yet published.
  void end_item() const noexcept {
    end_if_forked();
    if (job_.timeout_ns != 0) stop_task_clock(worker_);
  }
  std::byte* reserve(std::size_t size) noexcept {
    end_item();
    std::byte* const place = ring_.try_reserve(size);
    return place != nullptr ? place : no_room();
  }
  void write_header(std::byte* place, shm::RecordHeader::Kind kind) const noexcept {
    const shm::RecordHeader header{
        .position = position_, .item = item_ & 0xffffff, .kind = static_cast<std::uint8_t>(kind)};
    std::memcpy(place, &header, sizeof header);
  }
  void publish() noexcept {
    os::fault_point();
    ring_.publish();
    os::fault_point();
    ++item_;
    hint_doorbell();
  }
  /// A hint only: a caller that falls asleep at this very moment is woken by the next item, or at the chunk's end.
  void hint_doorbell() noexcept {
    if (const std::uint32_t wanted = job_.doorbell.hint()) ring_if_unread(wanted);
  }
  void ring_if_unread(std::uint32_t bytes) noexcept;
  [[noreturn]] static std::byte* no_room() noexcept;
  void spill(std::span<const std::byte> bytes, bool failed);

  PoolSegment& segment_;
  JobSlot& job_;
  WorkerSlot& worker_;
  shm::RingProducer ring_;
  const std::uint64_t progress_base_;  ///< WorkerSlot::progress_at of position 0
  std::uint32_t position_ = 0;
  std::uint32_t item_ = 0;
  std::uint32_t counted_ = 0;  ///< items that the ring has heard of, where they are only counted
};

/// Adds the time spent since construction to the worker's idle time.
class IdleTime {
 public:
  explicit IdleTime(WorkerSlot& worker) noexcept;
  ~IdleTime();
  IdleTime(const IdleTime&) = delete;
  IdleTime& operator=(const IdleTime&) = delete;

 private:
  WorkerSlot& worker_;
  std::uint64_t since_;
};

}  // namespace drover::inline v1::detail
