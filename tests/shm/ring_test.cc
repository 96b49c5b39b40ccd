// SPDX-License-Identifier: Apache-2.0
#include "drover/shm/ring.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "shm/ring_memory.h"

namespace drover::shm {
namespace {

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

TEST(Ring, TheShortWayOfARingOfRunsShowsTheirNumbersAndNothingElse) {
  Memory memory(256);
  RingProducer producer = memory.producer();
  RingConsumer consumer(memory.header.get(), memory.data.get(), 256, 0, Kind::kRun);
  RecordHeader header{};
  for (std::uint64_t i = 1; i < 100; ++i) {
    const bool run = i % 3 != 0;
    const Kind kind = run ? Kind::kRun : Kind::kError;
    std::byte* const place = producer.try_reserve(16);
    const RecordHeader written{.position = 5, .item = 0, .kind = static_cast<std::uint8_t>(kind)};
    const std::uint64_t word = run ? i : 0;  // an error without text
    std::memcpy(place, &written, sizeof written);
    std::memcpy(place + 8, &word, sizeof word);
    producer.publish();
    const std::byte* const number = consumer.peek_common(header);
    ASSERT_EQ(number != nullptr, run) << i;
    if (run) {
      EXPECT_EQ(std::memcmp(number, &i, sizeof i), 0);
    } else {
      Record record;  // also after a pad
      ASSERT_EQ(consumer.peek(record), Next::kRecord);
    }
    consumer.pop();
    consumer.release();
  }
}

TEST(Ring, TheShortWayShowsValuesAndNothingElse) {
  Memory memory(256);
  RingProducer producer = memory.producer();
  RingConsumer consumer = memory.consumer();
  RecordHeader header{};
  EXPECT_EQ(consumer.peek_common(header), nullptr);
  for (std::uint64_t i = 0; i < 200; ++i) {
    const bool value = i % 3 != 0;
    ASSERT_TRUE(value ? put_value(producer, 7, i) : put_sized(producer, 7, std::string(i % 20, 'x')));
    const std::byte* const payload = consumer.peek_common(header);
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
