// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "sync/byte_channel_memory.h"

namespace drover_test {
namespace {

using std::chrono::milliseconds;

/// What producer P sends as its N-th record: "P N " and a filling whose length and text follow from both.
std::string record(int producer, int number, std::size_t largest) {
  std::string text = std::to_string(producer) + " " + std::to_string(number) + " ";
  const auto seed = static_cast<std::size_t>(producer * 7919 + number);
  const std::size_t filling = seed * 2654435761U % (largest + 1);
  for (std::size_t i = 0; i < filling; ++i) text += static_cast<char>('a' + (seed + i) % 26);
  return text;
}

/// Checks what several consumers got: each record once, whole, and each producer's in order for each consumer.
class Checker {
 public:
  Checker(int producers, int records, std::size_t largest)
      : largest_(largest),
        seen_(static_cast<std::size_t>(producers), std::vector<int>(static_cast<std::size_t>(records))) {}

  std::string complaint(const std::vector<std::vector<std::string>>& consumers) {
    for (const auto& got : consumers) {
      std::vector<int> last(seen_.size(), -1);
      for (const std::string& text : got) {
        const int producer = std::atoi(text.c_str());
        const int number = std::atoi(text.c_str() + std::min(text.find(' '), text.size()));
        if (text != record(producer, number, largest_)) return "a record that nobody sent: " + text.substr(0, 40);
        if (number <= last.at(static_cast<std::size_t>(producer))) return "out of order: " + text.substr(0, 40);
        last[static_cast<std::size_t>(producer)] = number;
        ++seen_[static_cast<std::size_t>(producer)].at(static_cast<std::size_t>(number));
      }
    }
    for (const auto& counts : seen_) {
      for (const int count : counts) {
        if (count != 1) return "a record came " + std::to_string(count) + " times";
      }
    }
    return "";
  }

 private:
  std::size_t largest_;
  std::vector<std::vector<int>> seen_;
};

TEST(ByteChannelChecker, SeesWhatIsMissingDoubledChangedAndOutOfOrder) {
  const auto complaint = [](const std::vector<std::vector<std::string>>& got) {
    return Checker(1, 2, 5).complaint(got);
  };
  const std::string a = record(0, 0, 5), b = record(0, 1, 5);
  EXPECT_EQ(complaint({{a, b}}), "");
  EXPECT_EQ(complaint({{b}, {a}}), "");
  EXPECT_NE(complaint({{a}}), "");
  EXPECT_NE(complaint({{a, b}, {b}}), "");
  EXPECT_NE(complaint({{b, a}}), "");
  EXPECT_NE(complaint({{a, b + "x"}}), "");
}

struct Setting {
  int producers, consumers, records;
  std::size_t ring, largest;
  std::uint32_t items;
};

void run(const Setting& setting) {
  const Memory memory(setting.ring, setting.items);
  std::vector<std::thread> producers, consumers;
  std::vector<std::vector<std::string>> got(static_cast<std::size_t>(setting.consumers));
  for (auto& texts : got) {
    consumers.emplace_back([&memory, &texts] {
      std::string text;
      while (get(memory.view(), text, for_ever()) == ChannelResult::kDone) texts.push_back(text);
    });
  }
  for (int p = 0; p < setting.producers; ++p) {
    producers.emplace_back([&memory, &setting, p] {
      for (int i = 0; i < setting.records; ++i) {
        ASSERT_EQ(put(memory.view(), record(p, i, setting.largest), for_ever()), ChannelResult::kDone);
      }
    });
  }
  for (std::thread& thread : producers) thread.join();
  memory.view().close();
  for (std::thread& thread : consumers) thread.join();
  EXPECT_EQ(Checker(setting.producers, setting.records, setting.largest).complaint(got), "");
}

TEST(ByteChannelThreads, OneToOne) { run({1, 1, 20'000, 1024, 40, 1'000}); }
TEST(ByteChannelThreads, OneToOneWithRoomForOneItem) { run({1, 1, 2'000, 1024, 40, 1}); }
TEST(ByteChannelThreads, ManyToMany) { run({3, 3, 3'000, 1024, 60, 1'000}); }
TEST(ByteChannelThreads, ManyToManyWithRoomForOneItem) { run({3, 3, 500, 256, 60, 1}); }
TEST(ByteChannelThreads, RecordsLargerThanTheRingBetweenSmallOnes) { run({2, 2, 400, 512, 3'000, 1'000}); }
TEST(ByteChannelThreads, LargeRecordsWithRoomForOneItem) { run({2, 2, 100, 256, 2'000, 1}); }

TEST(ByteChannelThreads, AStreamedRecordThatIsGivenUpIsNotDelivered) {
  const Memory memory(256);
  EXPECT_EQ(put(memory.view(), std::string(5'000, 'x'), for_some(milliseconds(20))), ChannelResult::kTimedOut);
  std::thread producer([&] { EXPECT_EQ(put(memory.view(), "small", for_ever()), ChannelResult::kDone); });
  EXPECT_EQ(get(memory.view(), for_ever()), "small");
  producer.join();
}

TEST(ByteChannelThreads, AConsumerInTheMiddleOfARecordThatIsGivenUpGoesOnWaiting) {
  const Memory memory(256);
  auto channel = memory.view();
  const auto patience = for_ever();
  std::thread producer([&] {
    EXPECT_EQ(put(memory.view(), std::string(5'000, 'x'), for_some(milliseconds(20))), ChannelResult::kTimedOut);
  });
  {
    sync::ChannelRead read(channel, patience);
    ASSERT_EQ(read.begin(), ChannelResult::kDone);
    ASSERT_TRUE(read.streamed());
    producer.join();
    while (read.next()) {
    }
    EXPECT_EQ(put(memory.view(), "next", at_once()), ChannelResult::kDone);
    EXPECT_EQ(read.begin(), ChannelResult::kDone);
    EXPECT_EQ(read.bytes().size(), 4U);
    read.finish();
  }
  EXPECT_EQ(get(memory.view()), std::nullopt);
}

TEST(ByteChannelThreads, TimeOutsOnBothSidesLoseNothing) {
  const Memory memory(256, 2);
  constexpr int kRecords = 300;
  std::vector<std::vector<std::string>> got(1);
  std::thread producer([&] {
    for (int i = 0; i < kRecords; ++i) {
      while (put(memory.view(), record(0, i, 50), for_some(milliseconds(i % 2))) != ChannelResult::kDone) {
      }
    }
    memory.view().close();
  });
  std::string text;
  for (int i = 0;; ++i) {
    const ChannelResult result = get(memory.view(), text, for_some(milliseconds(i % 2)));
    if (result == ChannelResult::kClosed) break;
    if (result == ChannelResult::kDone) got[0].push_back(text);
  }
  producer.join();
  EXPECT_EQ(Checker(1, kRecords, 50).complaint(got), "");
}

}  // namespace
}  // namespace drover_test
