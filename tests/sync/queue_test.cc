// SPDX-License-Identifier: Apache-2.0
#include "drover/sync/queue.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "drover/worker/process.h"
#include "harness/deadline.h"
#include "pool/shared_counters.h"

using namespace std::chrono_literals;
using drover::Queue;
using drover_test::SharedCounters;

namespace {

/// Can be neither copied nor default-constructed.
struct Sample {
  explicit Sample(int n) : number(std::make_unique<int>(n)) {}
  std::unique_ptr<int> number;
};

}  // namespace

template <>
struct drover::wire::Codec<Sample> {
  static void encode(Writer& writer, const Sample& sample) { writer.put(*sample.number); }
  static Sample decode(Reader& reader) { return Sample(reader.get<int>("Sample")); }
};

namespace {

struct Empty {};
struct Named {
  std::string name;
  std::vector<int> values;
  bool operator==(const Named&) const = default;
};

/// Throws while it is encoded, or while it is decoded.
struct Trap {
  int where = 0;
};

}  // namespace

template <>
inline constexpr bool drover::enable_memcpy<Trap> = false;
template <>
struct drover::wire::Codec<Trap> {
  static void encode(Writer& writer, const Trap& trap) {
    if (trap.where == 1) throw std::runtime_error("trap while encoding");
    writer.put(trap.where);
  }
  static Trap decode(Reader& reader) {
    const Trap trap{reader.get<int>("Trap")};
    if (trap.where == 2) throw std::runtime_error("trap while decoding");
    return trap;
  }
};

namespace {

TEST(Queue, GivesEachKindOfItemBackInOrder) {
  auto numbers = Queue<int>::create(4);
  for (int i = 0; i < 4; ++i) numbers.push(i);
  EXPECT_FALSE(numbers.try_push(4));
  EXPECT_EQ(numbers.size(), 4U);
  EXPECT_EQ(numbers.capacity(), 4U);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(numbers.pop(), i);
  EXPECT_EQ(numbers.try_pop(), std::nullopt);
  EXPECT_EQ(numbers.pop_for(1ms), std::nullopt);
  EXPECT_FALSE(numbers.finished());

  auto named = Queue<Named>::create();
  named.push({"a", {1, 2, 3}});
  named.push({"", {}});
  EXPECT_EQ(named.pop(), (Named{"a", {1, 2, 3}}));
  EXPECT_EQ(named.pop(), (Named{"", {}}));

  auto samples = Queue<Sample>::create();
  samples.push(Sample(7));
  EXPECT_EQ(*samples.pop()->number, 7);
}

TEST(Queue, OfOneItemOrOfItemsWithoutContentsWorks) {
  auto one = Queue<std::string>::create(1);
  auto empty = Queue<Empty>::create(2);
  for (int i = 0; i < 100; ++i) {
    one.push(std::string(static_cast<std::size_t>(i) * 100, 'x'));
    EXPECT_FALSE(one.push_for("y", 0s));
    EXPECT_EQ(one.pop()->size(), static_cast<std::size_t>(i) * 100);
    EXPECT_TRUE(empty.try_push({}));
    EXPECT_TRUE(empty.try_push({}));
    EXPECT_FALSE(empty.try_push({}));
    EXPECT_TRUE(empty.pop().has_value());
    EXPECT_TRUE(empty.pop().has_value());
    EXPECT_FALSE(empty.try_pop().has_value());
  }
}

TEST(Queue, RefusesShapesThatCannotBe) {
  EXPECT_THROW(Queue<int>::create(0), drover::InvalidArgument);
  EXPECT_THROW(Queue<int>::create(std::size_t{1} << 40U), drover::InvalidArgument);
  EXPECT_THROW(Queue<int>::create({.bytes = std::size_t{1} << 40U}), drover::InvalidArgument);
  EXPECT_THROW(Queue<int>::create("a/b", 3), drover::InvalidArgument);
}

TEST(Queue, WhatIsPushedAfterCloseIsRefusedAndWhatWasBeforeIsDelivered) {
  auto queue = Queue<int>::create();
  queue.push(1);
  queue.push(2);
  queue.close();
  EXPECT_TRUE(queue.closed());
  EXPECT_FALSE(queue.finished());
  EXPECT_THROW(queue.push(3), drover::Cancelled);
  EXPECT_THROW(static_cast<void>(queue.try_push(3)), drover::Cancelled);
  int sum = 0;
  for (int& item : queue) sum = 10 * sum + item;
  EXPECT_EQ(sum, 12);
  EXPECT_TRUE(queue.finished());
  EXPECT_EQ(queue.pop(), std::nullopt);
}

TEST(Queue, AnErrorOfACodecTakesNothingElseWithIt) {
  auto queue = Queue<Trap>::create();
  EXPECT_THROW(queue.push({1}), std::runtime_error);
  queue.push({2});
  queue.push({3});
  EXPECT_THROW(queue.pop(), std::runtime_error);
  EXPECT_EQ(queue.pop()->where, 3);
  EXPECT_EQ(queue.try_pop().has_value(), false);
}

TEST(Queue, AnItemThatIsLargerThanTheQueueIsHandedOverToWhoWaits) {
  auto queue = Queue<std::vector<int>>::create({.bytes = 4096});
  std::vector<int> large(100'000);
  std::iota(large.begin(), large.end(), 0);
  EXPECT_THROW(static_cast<void>(queue.try_push(large)), drover::InvalidArgument);
  std::thread producer([&] {
    for (int i = 0; i < 10; ++i) {
      queue.push(large);
      queue.push({i});
    }
  });
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(queue.pop(), large);
    EXPECT_EQ(queue.pop(), std::vector<int>{i});
  }
  producer.join();
}

TEST(Queue, ByNameItIsTheSameAndAnotherTypeIsRefused) {
  auto queue = Queue<int>::create("drover-test-queue", 3);
  EXPECT_EQ(queue.name(), "drover-test-queue");
  auto same = Queue<int>::open("drover-test-queue");
  same.push(5);
  EXPECT_EQ(queue.pop(), 5);
  EXPECT_EQ(Queue<int>::open_or_create("drover-test-queue", 100).capacity(), 3U);
  try {
    Queue<double>::open("drover-test-queue");
    FAIL();
  } catch (const drover::Incompatible& error) {
    EXPECT_NE(std::string(error.what()).find("Queue<int>"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("Queue<double>"), std::string::npos) << error.what();
  }
  EXPECT_THROW(Queue<int>::create("drover-test-queue"), drover::Error);
  queue.unlink();
  EXPECT_THROW(Queue<int>::open("drover-test-queue"), drover::Error);
  same.push(6);
  EXPECT_EQ(queue.pop(), 6);
}

struct Item {
  int producer = 0, number = 0;
};

void produce(Queue<Item> queue, int producer, int count) {
  for (int i = 0; i < count; ++i) queue.push({producer, i});
}
void consume(Queue<Item> queue, const std::string& path, int count) {
  std::map<int, int> last;
  for (const Item& item : queue) {
    if (last.contains(item.producer) && last[item.producer] >= item.number) std::abort();  // out of order
    last[item.producer] = item.number;
    drover_test::counters(path)[item.producer * count + item.number].fetch_add(1);
  }
}

TEST(Queue, ManyProcessesGetEachItemOnceAndInOrder) {
  constexpr int kCount = 120, kProducers = 3;
  for (const int capacity : {1, 3, 1000}) {
    const SharedCounters seen;
    auto queue = Queue<Item>::create(capacity);
    std::vector<drover::Process> producers, consumers;
    for (int i = 0; i < 2; ++i) consumers.push_back(drover::spawn<consume>(queue, seen.path(), kCount));
    for (int i = 0; i < kProducers; ++i) producers.push_back(drover::spawn<produce>(queue, i, kCount));
    for (drover::Process& process : producers) process.join();
    queue.close();
    for (drover::Process& process : consumers) {
      process.join();
      EXPECT_EQ(process.exit_status()->code, 0);
    }
    for (std::size_t i = 0; i < kCount * kProducers; ++i) ASSERT_EQ(seen[i], 1) << i;
  }
}

void answer(Queue<Queue<std::string>> calls) {
  for (Queue<std::string>& reply : calls) reply.push("answer");
}

TEST(Queue, AQueueTravelsInAQueue) {
  auto calls = Queue<Queue<std::string>>::create();
  drover::Process server = drover::spawn<answer>(calls);
  std::vector<Queue<std::string>> replies;
  for (int i = 0; i < 10; ++i) {
    replies.push_back(Queue<std::string>::create(2));
    calls.push(replies.back());
  }
  for (auto& reply : replies) EXPECT_EQ(reply.pop(), "answer");
  calls.close();
  server.join();
  EXPECT_EQ(drover::shm::release_received(), 0U);
}

void wait_for_item(Queue<int> queue, const std::string& path) {
  drover_test::counters(path)[0].fetch_add(1);
  const auto item = queue.pop();
  drover_test::counters(path)[1].store(item ? *item : -1);
}

TEST(Queue, CloseWakesProcessesThatWait) {
  const SharedCounters state;
  auto queue = Queue<int>::create();
  drover::Process consumer = drover::spawn<wait_for_item>(queue, state.path());
  EXPECT_TRUE(drover_test::eventually(5s, [&] { return state[0] == 1; }));
  queue.close();
  consumer.join();
  EXPECT_EQ(state[1], -1);
}

void push_and_die(Queue<int> queue, int count) {
  for (int i = 0; i < count; ++i) queue.push(i);
  ::raise(SIGKILL);
}

TEST(Queue, WhoWaitsForADeadProducerIsToldAfterTheLastItem) {
  auto queue = Queue<int>::create();
  drover::Process producer = drover::spawn<push_and_die>(queue, 2);
  EXPECT_EQ(queue.pop(), 0);
  EXPECT_EQ(queue.pop(), 1);
  try {
    static_cast<void>(queue.pop());
    FAIL();
  } catch (const drover::OwnerDied& error) {
    EXPECT_NE(std::string(error.what()).find("process " + std::to_string(producer.pid()) + ","), std::string::npos)
        << error.what();
  }
  // It is told once: another producer may come.
  EXPECT_EQ(queue.pop_for(50ms), std::nullopt);
}

void pop_and_die(Queue<int> queue) {
  static_cast<void>(queue.pop());
  ::raise(SIGKILL);
}

TEST(Queue, WhoWaitsForADeadConsumerIsTold) {
  auto queue = Queue<int>::create(2);
  drover::Process consumer = drover::spawn<pop_and_die>(queue);
  const auto fill = [&] {
    for (int i = 0; i < 4; ++i) queue.push(i);
  };
  EXPECT_THROW(fill(), drover::OwnerDied);
}

TEST(Queue, TwoConsumersAreBothToldOfTheOnlyProducersDeath) {
  auto queue = Queue<int>::create();
  const SharedCounters state;
  drover::Process other = drover::spawn<wait_for_item>(queue, state.path());
  EXPECT_TRUE(drover_test::eventually(5s, [&] { return state[0] == 1; }));
  drover::Process producer = drover::spawn<push_and_die>(queue, 0);
  producer.join();
  EXPECT_EQ(queue.try_pop(), std::nullopt);
  // One that died before it did anything with the queue counts too, once it had a handle.
  EXPECT_THROW(static_cast<void>(queue.pop()), drover::OwnerDied);
  other.join();
  EXPECT_EQ(other.exit_status()->code, 1);
}

TEST(Queue, TenAtOnceDoNotMixUpTheirItems) {
  std::vector<Queue<Item>> queues;
  std::vector<drover::Process> producers;
  for (int i = 0; i < 10; ++i) {
    queues.push_back(Queue<Item>::create(7));
    producers.push_back(drover::spawn<produce>(queues.back(), i, 50));
  }
  for (int n = 0; n < 50; ++n) {
    for (int i = 0; i < 10; ++i) {
      const auto item = queues[static_cast<std::size_t>(i)].pop();
      ASSERT_EQ(item->producer, i);
      ASSERT_EQ(item->number, n);
    }
  }
}

}  // namespace
