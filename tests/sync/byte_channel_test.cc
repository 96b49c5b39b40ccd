// SPDX-License-Identifier: Apache-2.0
#include "drover/sync/byte_channel.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <thread>
#include <vector>

#include "sync/byte_channel_memory.h"

namespace drover_test {
namespace {

using std::chrono::milliseconds;

std::string text_of(std::size_t size, std::size_t seed) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>('a' + (i + seed) % 26);
  return text;
}

TEST(ByteChannel, KeepsTheOrderOfRecordsOfAllSizes) {
  const Memory memory(1024);
  for (std::size_t size = 0; size < 320; ++size) {
    ASSERT_EQ(put(memory.view(), text_of(size, size), at_once()), ChannelResult::kDone) << size;
    if (size % 2 == 0) continue;
    EXPECT_EQ(get(memory.view()), text_of(size - 1, size - 1));
    EXPECT_EQ(get(memory.view()), text_of(size, size));
  }
  EXPECT_EQ(get(memory.view()), std::nullopt);
  EXPECT_EQ(memory.view().size(), 0U);
}

TEST(ByteChannel, IsFullWhenItHasAsManyRecordsAsItMay) {
  const Memory memory(1024, 3);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(put(memory.view(), "", at_once()), ChannelResult::kDone);
  EXPECT_EQ(put(memory.view(), "", at_once()), ChannelResult::kTimedOut);
  EXPECT_EQ(put(memory.view(), "", for_some(milliseconds(1))), ChannelResult::kTimedOut);
  EXPECT_EQ(memory.view().size(), 3U);
  EXPECT_EQ(get(memory.view()), "");
  EXPECT_EQ(put(memory.view(), "x", at_once()), ChannelResult::kDone);
}

TEST(ByteChannel, IsFullWhenItsBytesAreUsedAndNeverWritesOverWhatIsUnread) {
  const Memory memory(256);
  for (std::size_t size = 1; size <= memory.view().largest_whole(); ++size) {
    std::vector<std::string> sent;
    while (put(memory.view(), text_of(size, sent.size()), at_once()) == ChannelResult::kDone) {
      sent.push_back(text_of(size, sent.size()));
    }
    ASSERT_FALSE(sent.empty()) << size;
    for (const std::string& text : sent) EXPECT_EQ(get(memory.view()), text);
  }
}

TEST(ByteChannel, RefusesARecordLargerThanHalfOfItUnlessItIsStreamed) {
  const Memory memory(256);
  EXPECT_EQ(put(memory.view(), text_of(memory.view().largest_whole() + 1, 0), at_once()), ChannelResult::kTooLarge);
  EXPECT_EQ(get(memory.view()), std::nullopt);
}

TEST(ByteChannel, ARecordThatIsNotFinishedStaysForTheNextConsumer) {
  const Memory memory(256);
  ASSERT_EQ(put(memory.view(), "again", at_once()), ChannelResult::kDone);
  {
    auto channel = memory.view();
    const auto patience = at_once();
    sync::ChannelRead read(channel, patience);
    ASSERT_EQ(read.begin(), ChannelResult::kDone);
    EXPECT_EQ(read.bytes().size(), 5U);
  }
  EXPECT_EQ(get(memory.view()), "again");
  EXPECT_EQ(get(memory.view()), std::nullopt);
}

TEST(ByteChannel, ARecordThatIsNotCommittedIsNotThere) {
  const Memory memory(256);
  {
    auto channel = memory.view();
    const auto patience = at_once();
    sync::ChannelWrite write(channel, patience);
    ASSERT_EQ(write.begin(5), ChannelResult::kDone);
  }
  EXPECT_EQ(get(memory.view()), std::nullopt);
  EXPECT_EQ(put(memory.view(), "next", at_once()), ChannelResult::kDone);
  EXPECT_EQ(get(memory.view()), "next");
}

TEST(ByteChannel, GivesTheRoomThatIsThereWhateverIsInIt) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const Memory memory(256, 8);
    std::vector<std::string> expected;
    for (int i = 0; i < 40; ++i) {
      auto channel = memory.view();
      const auto patience = at_once();
      sync::ChannelWrite write(channel, patience);
      ASSERT_EQ(write.begin_with_what_is_there(), ChannelResult::kDone);
      if (write.room().data() == nullptr) {
        ASSERT_FALSE(expected.empty());
      } else {
        const std::string text = text_of(random() % (write.room().size() + 1), random());
        std::memcpy(write.room().data(), text.data(), text.size());
        write.commit(text.size());
        expected.push_back(text);
      }
      if (expected.empty() || random() % 2 == 0) continue;
      ASSERT_EQ(get(memory.view()), expected.front()) << "seed " << seed;
      expected.erase(expected.begin());
    }
  }
}

TEST(ByteChannel, ThreadThatIsInsideIsToldInsteadOfWaitingForItself) {
  const Memory memory(256);
  auto channel = memory.view();
  const auto patience = for_ever();
  sync::ChannelWrite write(channel, patience);
  ASSERT_EQ(write.begin(5), ChannelResult::kDone);
  EXPECT_EQ(put(memory.view(), "x", for_ever()), ChannelResult::kReentered);
}

TEST(ByteChannel, GivesWhatItHoldsAfterItIsClosedAndThenSaysSo) {
  const Memory memory(256);
  ASSERT_EQ(put(memory.view(), "last", at_once()), ChannelResult::kDone);
  memory.view().close();
  memory.view().close();
  std::string text;
  EXPECT_EQ(put(memory.view(), "late", at_once()), ChannelResult::kClosed);
  EXPECT_EQ(get(memory.view(), text, for_ever()), ChannelResult::kDone);
  EXPECT_EQ(text, "last");
  EXPECT_EQ(get(memory.view(), text, for_ever()), ChannelResult::kClosed);
  EXPECT_EQ(get(memory.view(), text, at_once()), ChannelResult::kClosed);
}

TEST(ByteChannel, AConsumerFinishesAClosingWhoseCloserDied) {
  const Memory memory(256);
  memory.header->state = sync::ChannelHeader::kClosing;
  std::string text;
  EXPECT_EQ(get(memory.view(), text, for_ever()), ChannelResult::kClosed);
  EXPECT_EQ(memory.header->state, sync::ChannelHeader::kClosed);
}

TEST(ByteChannel, CloseWakesAllWhoWait) {
  const Memory empty(256), full(256, 1);
  ASSERT_EQ(put(full.view(), "", at_once()), ChannelResult::kDone);
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      std::string text;
      EXPECT_EQ(get(empty.view(), text, for_ever()), ChannelResult::kClosed);
      EXPECT_EQ(put(full.view(), "x", for_ever()), ChannelResult::kClosed);
    });
  }
  empty.view().close();
  full.view().close();
  for (std::thread& thread : threads) thread.join();
}

TEST(ByteChannel, AskedForADeadlineItKeepsIt) {
  const Memory memory(256);
  std::string text;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(get(memory.view(), text, for_some(milliseconds(30))), ChannelResult::kTimedOut);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(30));
}

TEST(ByteChannel, StopsWaitingWhenItIsSaidToBeInVain) {
  const Memory memory(256);
  std::string text;
  auto patience = for_ever();
  patience.deserted = [](void*, std::uint64_t) { return true; };
  EXPECT_EQ(get(memory.view(), text, patience), ChannelResult::kDeserted);
}

}  // namespace
}  // namespace drover_test
