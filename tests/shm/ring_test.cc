// SPDX-License-Identifier: Apache-2.0
#include "drover/shm/ring.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace drover::shm {
namespace {

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

bool put_value(RingProducer& ring, std::uint32_t position, std::uint64_t value) {
  std::byte* const place = ring.try_reserve(sizeof(RecordHeader) + 8);
  if (place == nullptr) return false;
  const RecordHeader header{.position = position, .item = 5, .kind = static_cast<std::uint8_t>(Kind::kValue)};
  std::memcpy(place, &header, sizeof header);
  std::memcpy(place + sizeof header, &value, sizeof value);
  ring.publish();
  return true;
}

bool put_sized(RingProducer& ring, std::uint32_t position, const std::string& text, Kind kind = Kind::kSized) {
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

std::uint64_t value_of(const Record& record) {
  std::uint64_t value = 0;
  EXPECT_EQ(record.payload.size(), sizeof value);
  std::memcpy(&value, record.payload.data(), std::min(sizeof value, record.payload.size()));
  return value;
}

std::string text_of(const Record& record) {
  return {reinterpret_cast<const char*>(record.payload.data()), record.payload.size()};
}

TEST(Ring, IsEmptyAtFirst) {
  Memory memory(256);
  RingConsumer consumer = memory.consumer();
  Record record;
  EXPECT_TRUE(consumer.empty());
  EXPECT_EQ(consumer.peek(record), Next::kEmpty);
}

TEST(Ring, KeepsARecordThatIsNotRead) {
  Memory memory(256);
  RingProducer producer = memory.producer();
  RingConsumer consumer = memory.consumer();
  ASSERT_TRUE(put_value(producer, 7, 42));
  Record record;
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(consumer.peek(record), Next::kRecord);
    EXPECT_EQ(record.kind(), Kind::kValue);
    EXPECT_EQ(record.header.position, 7u);
    EXPECT_EQ(record.header.item, 5u);
    EXPECT_EQ(value_of(record), 42u);
  }
  consumer.pop();
  EXPECT_EQ(consumer.peek(record), Next::kEmpty);
}

TEST(Ring, ShowsNothingBeforePublish) {
  Memory memory(256);
  RingProducer producer = memory.producer();
  RingConsumer consumer = memory.consumer();
  ASSERT_NE(producer.try_reserve(16), nullptr);
  EXPECT_TRUE(consumer.empty());
  producer.publish();
  EXPECT_FALSE(consumer.empty());
}

TEST(Ring, IsFullAtItsCapacityAndHasRoomAfterRelease) {
  Memory memory(256);
  RingProducer producer = memory.producer();
  RingConsumer consumer = memory.consumer();
  for (std::uint64_t i = 0; i < 16; ++i) ASSERT_TRUE(put_value(producer, 0, i));
  EXPECT_FALSE(put_value(producer, 0, 16));
  EXPECT_EQ(producer.unread(), 256u);
  Record record;
  ASSERT_EQ(consumer.peek(record), Next::kRecord);
  consumer.pop();
  EXPECT_FALSE(put_value(producer, 0, 16)) << "taken is not released";
  consumer.release();
  EXPECT_TRUE(put_value(producer, 0, 16));
  for (std::uint64_t i = 1; i <= 16; ++i) {
    ASSERT_EQ(consumer.peek(record), Next::kRecord);
    EXPECT_EQ(value_of(record), i);
    consumer.pop();
  }
  EXPECT_TRUE(consumer.empty());
}

TEST(Ring, PadsTheEndWhereARecordDoesNotFit) {
  Memory memory(256);
  RingProducer producer = memory.producer();
  RingConsumer consumer = memory.consumer();
  Record record;
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(put_sized(producer, 0, std::string(40, 'a')));  // 56 bytes each: 224
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(consumer.peek(record), Next::kRecord);
    consumer.pop();
  }
  consumer.release();
  ASSERT_TRUE(put_sized(producer, 9, std::string(40, 'b')));
  EXPECT_EQ(producer.unread(), 32u + 56u);
  ASSERT_EQ(consumer.peek(record), Next::kRecord);
  EXPECT_EQ(record.header.position, 9u);
  EXPECT_EQ(text_of(record), std::string(40, 'b'));
  EXPECT_EQ(record.payload.data(), memory.data.get() + 16);
}

TEST(Ring, AnEndThatIsOnlyPaddedYetIsEmpty) {
  Memory memory(256);
  memory.header->head = 256;  // a producer that published a pad and died before its record
  memory.header->tail = 240;
  RingConsumer consumer = memory.consumer();
  Record record;
  EXPECT_EQ(consumer.peek(record), Next::kEmpty);
  RingProducer next = memory.producer();
  ASSERT_TRUE(put_value(next, 3, 1));
  ASSERT_EQ(consumer.peek(record), Next::kRecord);
  EXPECT_EQ(record.header.position, 3u);
}

TEST(Ring, CarriesEverySizeUpToHalfOfIt) {
  Memory memory(1024);
  RingProducer producer = memory.producer();
  RingConsumer consumer = memory.consumer();
  const std::size_t largest = 512 - sizeof(RecordHeader) - 8;
  for (std::size_t size = 0; size <= largest; ++size) {
    const std::string text(size, static_cast<char>('a' + size % 26));
    ASSERT_TRUE(put_sized(producer, static_cast<std::uint32_t>(size), text, Kind::kError)) << size;
    Record record;
    ASSERT_EQ(consumer.peek(record), Next::kRecord) << size;
    EXPECT_EQ(record.kind(), Kind::kError);
    EXPECT_EQ(text_of(record), text);
    consumer.pop();
    consumer.release();
  }
}

TEST(Ring, CarriesValuesOfOddSizes) {
  for (const std::size_t size : {1, 3, 8, 12, 24}) {
    Memory memory(256);
    RingProducer producer = memory.producer();
    RingConsumer consumer = memory.consumer(size);
    for (int round = 0; round < 40; ++round) {
      std::byte* const place = producer.try_reserve(sizeof(RecordHeader) + align8(size));
      ASSERT_NE(place, nullptr);
      const RecordHeader header{.position = 1, .item = 0, .kind = static_cast<std::uint8_t>(Kind::kValue)};
      std::memcpy(place, &header, sizeof header);
      std::memset(place + sizeof header, round, size);
      producer.publish();
      Record record;
      ASSERT_EQ(consumer.peek(record), Next::kRecord);
      ASSERT_EQ(record.payload.size(), size);
      EXPECT_EQ(record.payload.back(), static_cast<std::byte>(round));
      consumer.pop();
      consumer.release();
    }
  }
}

TEST(Ring, CarriesWhereASpilledValueLies) {
  Memory memory(256);
  RingProducer producer = memory.producer();
  std::byte* const place = producer.try_reserve(24);
  const RecordHeader header{.position = 2, .item = 1, .kind = static_cast<std::uint8_t>(Kind::kSpilled)};
  const std::uint64_t words[2] = {1 << 20, 4096};
  std::memcpy(place, &header, sizeof header);
  std::memcpy(place + 8, words, sizeof words);
  producer.publish();
  RingConsumer consumer = memory.consumer();
  Record record;
  ASSERT_EQ(consumer.peek(record), Next::kRecord);
  EXPECT_EQ(record.kind(), Kind::kSpilled);
  EXPECT_EQ(record.spill_length, 1u << 20);
  EXPECT_EQ(record.spill_offset, 4096u);
  EXPECT_TRUE(record.payload.empty());
  consumer.pop();
  EXPECT_TRUE(consumer.empty());
}

TEST(Ring, APlainRecordHasNoSpillLeftOverFromTheOneBefore) {
  Memory memory(256);
  RingProducer producer = memory.producer();
  std::byte* const place = producer.try_reserve(24);
  const RecordHeader header{.position = 2, .item = 1, .kind = static_cast<std::uint8_t>(Kind::kSpilled)};
  const std::uint64_t words[2] = {1 << 20, 4096};
  std::memcpy(place, &header, sizeof header);
  std::memcpy(place + 8, words, sizeof words);
  producer.publish();
  ASSERT_TRUE(put_value(producer, 3, 1));
  RingConsumer consumer = memory.consumer();
  Record record;
  ASSERT_EQ(consumer.peek(record), Next::kRecord);
  consumer.pop();
  ASSERT_EQ(consumer.peek(record), Next::kRecord);
  EXPECT_EQ(record.kind(), Kind::kValue);
  EXPECT_EQ(record.spill_length, 0u) << "the same Record object is used for one after the other";
}

TEST(Ring, CarriesTheLengthOfARun) {
  Memory memory(256);
  RingProducer producer = memory.producer();
  std::byte* const place = producer.try_reserve(16);
  const RecordHeader header{.position = 2, .item = 3, .kind = static_cast<std::uint8_t>(Kind::kRun)};
  const std::uint64_t length = 1000;
  std::memcpy(place, &header, sizeof header);
  std::memcpy(place + 8, &length, sizeof length);
  producer.publish();
  RingConsumer consumer = memory.consumer();
  Record record;
  ASSERT_EQ(consumer.peek(record), Next::kRecord);
  EXPECT_EQ(record.kind(), Kind::kRun);
  EXPECT_EQ(record.run_length, 1000u);
  EXPECT_EQ(record.header.item, 3u);
  consumer.pop();
  EXPECT_TRUE(consumer.empty());
}

TEST(Ring, TheShortWayShowsValuesAndNothingElse) {
  Memory memory(256);
  RingProducer producer = memory.producer();
  RingConsumer consumer = memory.consumer();
  RecordHeader header{};
  EXPECT_EQ(consumer.peek_value(header), nullptr);
  for (std::uint64_t i = 0; i < 200; ++i) {
    const bool value = i % 3 != 0;
    ASSERT_TRUE(value ? put_value(producer, 7, i) : put_sized(producer, 7, std::string(i % 20, 'x')));
    const std::byte* const payload = consumer.peek_value(header);
    Record record;
    if (payload == nullptr) {  // also a value behind a pad
      ASSERT_EQ(consumer.peek(record), Next::kRecord);
      EXPECT_EQ(record.kind(), value ? Kind::kValue : Kind::kSized);
    } else {
      ASSERT_TRUE(value);
      EXPECT_EQ(header.position, 7u);
      EXPECT_EQ(std::memcmp(payload, &i, sizeof i), 0);
    }
    consumer.pop();
    consumer.release();
  }
}

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

TEST(Ring, AReplacedProducerGoesOnAtThePublishedHead) {
  Memory memory(256);
  RingConsumer consumer = memory.consumer();
  {
    RingProducer dead = memory.producer();
    ASSERT_TRUE(put_value(dead, 1, 1));
    std::byte* const garbage = dead.try_reserve(16);
    std::memset(garbage, 0xff, 16);
  }
  RingProducer next = memory.producer();
  ASSERT_TRUE(put_value(next, 2, 2));
  Record record;
  for (std::uint64_t i = 1; i <= 2; ++i) {
    ASSERT_EQ(consumer.peek(record), Next::kRecord);
    EXPECT_EQ(value_of(record), i);
    consumer.pop();
  }
  EXPECT_TRUE(consumer.empty());
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
  while (consumer.peek_value(header) != nullptr) consumer.pop();
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

TEST(RingThreads, EverythingArrivesOnceAndInOrder) {
  Memory memory(4096);
  constexpr std::uint64_t kRecords = 60'000;
  std::thread worker([&memory] {
    RingProducer producer = memory.producer();
    std::mt19937 random(7);
    for (std::uint64_t i = 0; i < kRecords;) {
      const std::size_t size = 16 + align8(random() % 200);
      const std::string text = std::to_string(i) + std::string(size - 16, '.');
      if (put_sized(producer, static_cast<std::uint32_t>(i), text)) {
        ++i;
      } else {
        std::this_thread::yield();
      }
    }
  });
  RingConsumer consumer = memory.consumer();
  for (std::uint64_t i = 0; i < kRecords;) {
    Record record;
    const Next next = consumer.peek(record);
    ASSERT_NE(next, Next::kCorrupt);
    if (next == Next::kEmpty) {
      consumer.release();
      std::this_thread::yield();
      continue;
    }
    ASSERT_EQ(record.header.position, i);
    ASSERT_TRUE(text_of(record).starts_with(std::to_string(i)));
    consumer.pop();
    if (consumer.worth_releasing()) consumer.release();
    ++i;
  }
  worker.join();
  EXPECT_TRUE(consumer.empty());
}

}  // namespace
}  // namespace drover::shm
