// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "drover/shm/ring.h"
#include "shm/ring_memory.h"

namespace drover::shm {
namespace {

/// A producer that spills what the ring may not hold, with as many results under way as are sure to fit, and a consumer
/// that gives room back as late as it may.
void never_full(std::size_t capacity, unsigned seed) {
  Memory memory(capacity);
  RingProducer producer = memory.producer();
  RingConsumer consumer = memory.consumer();
  const std::size_t most = RingProducer::sure_records(capacity, 16);
  ASSERT_GT(most, 0u);
  std::mt19937_64 random(seed);
  const auto put = [&] {
    const std::size_t size = 16 + align8(random() % (capacity / 8));
    if (producer.may_hold(size)) return put_sized(producer, 1, std::string(size - 16, 'v'));
    std::byte* const place = producer.try_reserve(RingProducer::kSmallRecord);
    if (place == nullptr) return false;
    const RecordHeader header{.position = 1, .item = 0, .kind = static_cast<std::uint8_t>(Kind::kSpilled)};
    std::memcpy(place, &header, sizeof header);
    std::memset(place + sizeof header, 1, 16);
    producer.publish();
    return true;
  };
  std::size_t under_way = 0;
  for (int step = 0; step < 50'000; ++step) {
    const bool fill = under_way == 0 || (under_way < most && random() % 16 != 0);
    if (fill) {
      ASSERT_TRUE(put()) << "seed " << seed << ", step " << step;
      ++under_way;
    }
    if (under_way == most || random() % 8 == 0) {
      for (std::size_t n = random() % (under_way + 1); n > 0; --n, --under_way) {
        Record record;
        ASSERT_EQ(consumer.peek(record), Next::kRecord);
        consumer.pop();
        if (consumer.worth_releasing()) consumer.release();
      }
    }
  }
}

TEST(Ring, ResultsThatAreSureToFitAlwaysFit) {
  for (const std::size_t capacity : {1UL << 10, 1UL << 12, 1UL << 16, 1UL << 18}) {
    for (unsigned seed = 1; seed <= 4; ++seed) never_full(capacity, seed);
  }
}

TEST(Ring, HeadersThatCannotBeAreCorrupt) {
  const std::pair<std::uint64_t, std::uint64_t> heads_and_tails[] = {
      {1 << 20, 0}, {0, 8}, {4, 0}, {13, 0}, {~std::uint64_t{0}, 0}, {264, 0}, {7, ~std::uint64_t{0}}};
  for (const auto& [head, tail] : heads_and_tails) {
    Memory memory(256);
    memory.header->tail = tail & ~std::uint64_t{7};
    RingConsumer consumer = memory.consumer();
    memory.header->head = head;
    Record record;
    EXPECT_EQ(consumer.peek(record), Next::kCorrupt) << head << " " << tail;
    consumer.skip_all();
    EXPECT_EQ(consumer.peek(record), Next::kEmpty);
    consumer.release();
  }
}

TEST(Ring, RecordsThatCannotBeAreCorrupt) {
  const auto first_record = [](Kind kind, std::uint64_t length, std::uint64_t published) {
    Memory memory(256);
    const RecordHeader header{.position = 0, .item = 0, .kind = static_cast<std::uint8_t>(kind)};
    std::memcpy(memory.data.get(), &header, sizeof header);
    std::memcpy(memory.data.get() + 8, &length, sizeof length);
    RingConsumer consumer = memory.consumer();
    memory.header->head = published;
    Record record;
    return consumer.peek(record);
  };
  EXPECT_EQ(first_record(Kind::kSized, 0, 16), Next::kRecord) << "the checker itself";
  EXPECT_EQ(first_record(Kind::kSized, 1, 16), Next::kCorrupt);
  EXPECT_EQ(first_record(Kind::kSized, ~std::uint64_t{0}, 256), Next::kCorrupt);
  EXPECT_EQ(first_record(Kind::kSized, ~std::uint64_t{7}, 256), Next::kCorrupt);
  EXPECT_EQ(first_record(Kind::kError, 241, 256), Next::kCorrupt);
  EXPECT_EQ(first_record(Kind::kSpilled, 0, 16), Next::kCorrupt);
  EXPECT_EQ(first_record(Kind::kSpilledError, 0, 16), Next::kCorrupt);
  EXPECT_EQ(first_record(Kind::kRun, 0, 8), Next::kCorrupt);
  EXPECT_EQ(first_record(Kind::kValue, 0, 8), Next::kCorrupt);
  EXPECT_EQ(first_record(Kind::kPad, 0, 64), Next::kCorrupt);
  EXPECT_EQ(first_record(static_cast<Kind>(7), 0, 64), Next::kCorrupt);
  EXPECT_EQ(first_record(static_cast<Kind>(255), 0, 64), Next::kCorrupt);
}

/// Reads until the ring is empty or corrupt; the payloads are touched.
std::size_t read_all(RingConsumer& consumer) {
  std::size_t sum = 0;
  Record record;
  for (int i = 0; i < 10'000; ++i) {
    if (consumer.peek(record) != Next::kRecord) break;
    for (const std::byte byte : record.payload) sum += static_cast<std::size_t>(byte);
    consumer.pop();
    if (i % 3 == 0) consumer.release();
  }
  RecordHeader header{};
  while (consumer.peek_common(header) != nullptr) consumer.pop();
  consumer.skip_all();
  consumer.release();
  return sum;
}

TEST(Ring, HostileBytesAreNeverReadBeyondTheRing) {
  const unsigned seed = 20261130;
  std::mt19937_64 random(seed);
  for (int round = 0; round < 3000; ++round) {
    Memory memory(512);
    RingProducer producer = memory.producer();
    RingConsumer consumer = memory.consumer(1 + random() % 40);
    for (int i = 0; i < 12; ++i) {
      if (random() % 2 == 0) {
        static_cast<void>(put_value(producer, static_cast<std::uint32_t>(random()), random()));
      } else {
        static_cast<void>(put_sized(producer, 1, std::string(random() % 60, 'x')));
      }
      if (i == 8) read_all(consumer);
    }
    for (int hits = 0; hits < 6; ++hits) {
      const std::size_t at = random() % 512;
      const auto value = random() % 2 == 0 ? random() % 6 : random();
      memory.data[at] = static_cast<std::byte>(value);
    }
    if (random() % 2 == 0) memory.header->head = random() % 3 == 0 ? random() : random() % 2048 / 8 * 8;
    read_all(consumer);
    memory.header->head = random();
    read_all(consumer);
  }
}

}  // namespace
}  // namespace drover::shm
