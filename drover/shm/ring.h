// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "drover/os/futex.h"

namespace drover::inline v1::shm {

/// What a record of a ring says. The first word of each record.
struct RecordHeader {
  enum class Kind : std::uint8_t {
    kPad = 0,      ///< nothing up to the end of the ring
    kValue = 1,    ///< payload of the ring's fixed value size
    kSized = 2,    ///< a word with the length, then the payload
    kSpilled = 3,  ///< two words, length and file offset: the payload lies there
    kError = 4,    ///< as kSized; the payload is an encoded exception
    kSpilledError = 5,
    kRun = 6,  ///< a word with a number: so many items, this one first, are finished and have no value
  };
  std::uint32_t position;  ///< board position the result belongs to
  std::uint32_t item : 24;
  std::uint32_t kind : 8;
};
static_assert(sizeof(RecordHeader) == 8);

/// The shared part of a ring: byte counts that only grow. Thread-safe for one producer and one consumer, which may be
/// different processes; either may die at any instruction.
///   1. Bytes in [tail, head) are records, whole and never written again until tail has passed them.
///   2. Only the producer stores head, after the records' bytes; only the consumer stores tail.
///   3. A producer that is replaced continues at head; what its predecessor wrote beyond it is garbage and overwritten.
struct RingHeader {
  alignas(64) std::atomic<std::uint64_t> head;
  alignas(64) std::atomic<std::uint64_t> tail;
};

constexpr std::size_t align8(std::size_t size) noexcept { return (size + 7) & ~std::size_t{7}; }

/// Writes records. One thread at a time.
class RingProducer {
 public:
  RingProducer() noexcept = default;
  /// `capacity` is a power of two; `data` is 8-aligned.
  RingProducer(RingHeader* header, std::byte* data, std::size_t capacity) noexcept
      : header_(header),
        data_(data),
        capacity_(capacity),
        head_(align8(header->head.load(std::memory_order_acquire))),  // what a broken predecessor left is anything
        tail_(header->tail.load(std::memory_order_acquire)) {}

  /// Whether a record of `size` bytes of variable length may stand in the ring. A larger one has to be spilled, so that
  /// the other half is left to records of kSmallRecord bytes.
  bool may_hold(std::size_t size) noexcept { return size <= capacity_ / 16 && (unread() + size) * 2 <= capacity_; }
  /// So many results always find room in a ring of `capacity` bytes, if those of fixed size take `record` bytes:
  /// whoever hands out work keeps to it, so that no producer ever waits.
  static constexpr std::size_t sure_records(std::size_t capacity, std::size_t record) noexcept {
    // Half is for records of variable length (may_hold); an eighth may be read and not yet released, an eighth goes for
    // padding and for the batch that is being read.
    return capacity / 4 / (record > kSmallRecord ? record : kSmallRecord);
  }
  static constexpr std::size_t kSmallRecord = sizeof(RecordHeader) + 16;  ///< of a spilled result

  /// Room for a record of `size` bytes (a multiple of 8), or nullptr when the ring is full.
  std::byte* try_reserve(std::size_t size) noexcept {
    const std::size_t position = head_ & (capacity_ - 1);
    const std::size_t to_end = capacity_ - position;
    const std::size_t needed = size <= to_end ? size : to_end + size;
    if (!has_room(needed)) return nullptr;
    if (size > to_end) {
      constexpr RecordHeader kPad{.position = 0, .item = 0, .kind = 0};
      std::memcpy(data_ + position, &kPad, sizeof kPad);
      head_ += to_end;
    }
    std::byte* const place = data_ + (head_ & (capacity_ - 1));
    head_ += size;
    os::prefetch_for_write(data_ + ((head_ + 128) & (capacity_ - 1)));
    return place;
  }

  /// Makes all that was reserved visible: from here on these results exist, whatever happens to this process.
  void publish() noexcept { header_->head.store(head_, std::memory_order_release); }

  /// Bytes that the consumer has not released.
  std::uint64_t unread() noexcept {
    tail_ = header_->tail.load(std::memory_order_acquire);
    return head_ - tail_;
  }

 private:
  bool has_room(std::size_t needed) noexcept {
    if (capacity_ - (head_ - tail_) >= needed) return true;
    tail_ = header_->tail.load(std::memory_order_acquire);
    return capacity_ - (head_ - tail_) >= needed;
  }

  RingHeader* header_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t capacity_ = 0;
  std::uint64_t head_ = 0;
  std::uint64_t tail_ = 0;  ///< as last seen
};

/// A record as the consumer sees it. `payload` points into the ring, or is empty and lies in the file.
struct Record {
  RecordHeader header{};
  std::span<const std::byte> payload;
  std::uint64_t spill_offset = 0;
  std::uint64_t spill_length = 0;
  std::uint64_t run_length = 0;
  RecordHeader::Kind kind() const noexcept { return static_cast<RecordHeader::Kind>(header.kind); }
  bool spilled() const noexcept {
    return kind() == RecordHeader::Kind::kSpilled || kind() == RecordHeader::Kind::kSpilledError;
  }
  bool failed() const noexcept {
    return kind() == RecordHeader::Kind::kError || kind() == RecordHeader::Kind::kSpilledError;
  }
};

/// Reads records and believes none of them: the producer may be broken. One thread at a time.
class RingConsumer {
 public:
  RingConsumer() noexcept = default;
  /// `common` is what most records are: values, or runs.
  RingConsumer(RingHeader* header, const std::byte* data, std::size_t capacity, std::size_t value_size,
               RecordHeader::Kind common = RecordHeader::Kind::kValue) noexcept
      : header_(header),
        data_(data),
        capacity_(capacity),
        value_size_(value_size),
        value_record_(sizeof(RecordHeader) + align8(value_size)),
        common_(common),
        common_record_(common == RecordHeader::Kind::kRun ? sizeof(RecordHeader) + 8 : value_record_),
        next_(header->tail.load(std::memory_order_acquire)),
        released_(next_),
        head_(next_) {}

  enum class Next { kRecord, kEmpty, kCorrupt };
  /// Looks at the next record without taking it.
  Next peek(Record& record) noexcept {
    if (next_ == head_) {
      head_ = header_->head.load(std::memory_order_acquire);
      if (next_ == head_) return Next::kEmpty;
    }
    return parse(record);
  }
  /// The same for the common kind: the value, or the word with the run's number, if the next record is one, else
  /// nullptr.
  const std::byte* peek_common(RecordHeader& header) noexcept {
    if (next_ == head_) head_ = header_->head.load(std::memory_order_acquire);
    const std::size_t position = next_ & (capacity_ - 1);
    const std::uint64_t left = head_ - next_;
    if (left < common_record_ || capacity_ - position < common_record_ || left > capacity_ || position % 8 != 0)
      return nullptr;
    std::memcpy(&header, data_ + position, sizeof header);
    if (header.kind != static_cast<std::uint8_t>(common_)) return nullptr;
    size_ = common_record_;
    return data_ + position + sizeof(RecordHeader);
  }
  /// Takes the record that peek showed. Its payload stays valid until release.
  void pop() noexcept { next_ += size_; }

  /// Gives the room of all records taken back to the producer.
  void release() noexcept;
  bool worth_releasing() const noexcept { return next_ - released_ >= capacity_ / 8; }
  bool empty() const noexcept { return next_ == header_->head.load(std::memory_order_acquire); }

  /// Passes over everything, because it cannot be read.
  void skip_all() noexcept { next_ = head_ = header_->head.load(std::memory_order_acquire); }

 private:
  Next parse(Record& record) noexcept;
  Next parse_sized(Record& record, const std::byte* start, std::uint64_t left) noexcept;

  RingHeader* header_ = nullptr;
  const std::byte* data_ = nullptr;
  std::size_t capacity_ = 0;
  std::size_t value_size_ = 0;
  std::uint64_t value_record_ = 0;  ///< bytes of a record with such a value
  RecordHeader::Kind common_ = RecordHeader::Kind::kValue;
  std::uint64_t common_record_ = 0;  ///< bytes of such a record
  std::uint64_t next_ = 0;
  std::uint64_t released_ = 0;
  std::uint64_t head_ = 0;  ///< as last seen
  std::uint64_t size_ = 0;  ///< of the record that peek showed
};

}  // namespace drover::inline v1::shm
