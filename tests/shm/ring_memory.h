// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "drover/shm/ring.h"

namespace drover::shm {

using Kind = RecordHeader::Kind;
using Next = RingConsumer::Next;

/// A ring in this process's heap, so that AddressSanitizer sees each byte beyond its end.
struct Memory {
  explicit Memory(std::size_t size) : capacity(size), data(new std::byte[size]()) {}

  RingProducer producer() { return {header.get(), data.get(), capacity}; }
  RingConsumer consumer(std::size_t value_size = 8) { return {header.get(), data.get(), capacity, value_size}; }

  std::size_t capacity;
  std::unique_ptr<RingHeader> header = std::make_unique<RingHeader>();
  std::unique_ptr<std::byte[]> data;
};

inline bool put_value(RingProducer& ring, std::uint32_t position, std::uint64_t value) {
  std::byte* const place = ring.try_reserve(sizeof(RecordHeader) + 8);
  if (place == nullptr) return false;
  const RecordHeader header{.position = position, .item = 5, .kind = static_cast<std::uint8_t>(Kind::kValue)};
  std::memcpy(place, &header, sizeof header);
  std::memcpy(place + sizeof header, &value, sizeof value);
  ring.publish();
  return true;
}

inline bool put_sized(RingProducer& ring, std::uint32_t position, const std::string& text, Kind kind = Kind::kSized) {
  std::byte* const place = ring.try_reserve(sizeof(RecordHeader) + 8 + align8(text.size()));
  if (place == nullptr) return false;
  const RecordHeader header{.position = position, .item = 0, .kind = static_cast<std::uint8_t>(kind)};
  const std::uint64_t length = text.size();
  std::memcpy(place, &header, sizeof header);
  std::memcpy(place + sizeof header, &length, sizeof length);
  if (length != 0) std::memcpy(place + sizeof header + 8, text.data(), text.size());
  ring.publish();
  return true;
}

inline std::uint64_t value_of(const Record& record) {
  std::uint64_t value = 0;
  EXPECT_EQ(record.payload.size(), sizeof value);
  std::memcpy(&value, record.payload.data(), std::min(sizeof value, record.payload.size()));
  return value;
}

inline std::string text_of(const Record& record) {
  return {reinterpret_cast<const char*>(record.payload.data()), record.payload.size()};
}

}  // namespace drover::shm
