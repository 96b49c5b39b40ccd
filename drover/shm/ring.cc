// SPDX-License-Identifier: Apache-2.0
#include "drover/shm/ring.h"

#include "drover/os/fault_point.h"

namespace drover::inline v1::shm {

RingConsumer::Next RingConsumer::parse(Record& record) noexcept {
  for (;;) {
    const std::size_t position = next_ & (capacity_ - 1);
    const std::uint64_t left = head_ - next_;
    if (left > capacity_ || left < sizeof(RecordHeader) || left % 8 != 0 || position % 8 != 0) return Next::kCorrupt;
    const std::byte* const start = data_ + position;
    std::memcpy(&record.header, start, sizeof record.header);
    record.spill_offset = record.spill_length = 0;
    const std::uint64_t contiguous = left < capacity_ - position ? left : capacity_ - position;
    if (record.kind() == RecordHeader::Kind::kValue) {
      size_ = value_record_;
      if (size_ > contiguous) return Next::kCorrupt;
      record.payload = {start + sizeof(RecordHeader), value_size_};
      return Next::kRecord;
    }
    if (record.kind() != RecordHeader::Kind::kPad) return parse_sized(record, start, contiguous);
    if (contiguous != capacity_ - position) return Next::kCorrupt;
    next_ += contiguous;
    if (next_ == head_) return Next::kEmpty;
  }
}

RingConsumer::Next RingConsumer::parse_sized(Record& record, const std::byte* start, std::uint64_t left) noexcept {
  std::uint64_t words[2] = {};
  const bool spilled = record.spilled();
  const std::size_t prefix = sizeof(RecordHeader) + (spilled ? 16 : 8);
  if (left < prefix || record.header.kind > static_cast<std::uint8_t>(RecordHeader::Kind::kRun)) return Next::kCorrupt;
  std::memcpy(words, start + sizeof(RecordHeader), prefix - sizeof(RecordHeader));
  record.spill_length = record.spill_offset = 0;
  if (spilled) {
    record.payload = {};
    record.spill_length = words[0];
    record.spill_offset = words[1];
    size_ = prefix;
    return Next::kRecord;
  }
  if (record.kind() == RecordHeader::Kind::kRun) {
    record.payload = {};
    record.run_length = words[0];
    size_ = prefix;
    return Next::kRecord;
  }
  if (words[0] > left - prefix) return Next::kCorrupt;
  record.payload = {start + prefix, static_cast<std::size_t>(words[0])};
  size_ = prefix + align8(record.payload.size());
  return size_ <= left ? Next::kRecord : Next::kCorrupt;
}

void RingConsumer::release() noexcept {
  if (released_ == next_) return;
  os::fault_point();
  released_ = next_;
  header_->tail.store(next_, std::memory_order_release);
}

}  // namespace drover::inline v1::shm
