// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "drover/os/fault_point.h"
#include "drover/sync/queue.h"
#include "drover/worker/process.h"
#include "fault/watchdog.h"
#include "pool/shared_counters.h"

namespace drover_test {
namespace {

using drover::Queue;

struct Item {
  int producer = 0, number = 0;
  std::string filling;
};

constexpr int kItems = 6;  // of each producer
constexpr int kProducers = 2, kConsumers = 2;
constexpr std::size_t kPushed = 400;   // counter: pushes of producer P that have returned
constexpr std::size_t kDamaged = 410;  // counter: items that were not as they had been sent
constexpr int kLastPoint = 3000;
constexpr int kEveryPointTo = 50;  // beyond, in growing steps
constexpr int kQuietRuns = 2;      // so many runs without a kill end the enumeration

std::string filling(int producer, int number, std::size_t size) {
  return std::string(number % 2 == 0 ? size : 3, static_cast<char>('a' + producer * kItems + number));
}

void produce(Queue<Item> queue, int producer, const std::string& path, std::size_t size) {
  drover::os::set_fault_role(("producer-" + std::to_string(producer)).c_str());
  for (int i = 0; i < kItems; ++i) {
    queue.push({producer, i, filling(producer, i, size)});
    counters(path)[kPushed + static_cast<std::size_t>(producer)].store(i + 1);
  }
  drover::os::set_fault_role("nobody");
}

void consume(Queue<Item> queue, int consumer, const std::string& path, std::size_t size) {
  drover::os::set_fault_role(("consumer-" + std::to_string(consumer)).c_str());
  for (const Item& item : queue) {
    if (item.filling != filling(item.producer, item.number, size)) counters(path)[kDamaged].fetch_add(1);
    counters(path)[item.producer * kItems + item.number].fetch_add(1);
  }
  drover::os::set_fault_role("nobody");
}

bool was_killed(drover::Process& process) {
  process.join();
  EXPECT_TRUE(process.exit_status()->signal == SIGKILL || process.exit_status()->code == 0);
  return process.exit_status()->signal == SIGKILL;
}

struct Case {
  const char* name;
  const char* victim;
  int capacity;
  std::size_t bytes, size;
};

/// What must be true of a producer's items: those whose push returned came, once, save for what a dead consumer had
/// taken; the one it was pushing when it died may have come; no other did.
void check_producer(const SharedCounters& counts, int producer, bool killed, int& lost) {
  const auto pushed = static_cast<int>(counts[kPushed + static_cast<std::size_t>(producer)]);
  EXPECT_TRUE(killed || pushed == kItems) << "producer " << producer << " pushed " << pushed;
  for (int i = 0; i < kItems; ++i) {
    const std::int64_t count = counts[static_cast<std::size_t>(producer * kItems + i)];
    EXPECT_LE(count, i <= pushed ? 1 : 0) << "producer " << producer << ", item " << i;
    if (i < pushed && count == 0) ++lost;
  }
}

/// Waits for all of them, and checks what they did. True when one was killed.
bool ends_well(Queue<Item>& queue, std::vector<drover::Process>& producers, std::vector<drover::Process>& consumers,
               const SharedCounters& counts) {
  std::vector<bool> dead;
  bool consumer_died = false;
  for (drover::Process& process : producers) dead.push_back(was_killed(process));
  queue.close();
  for (drover::Process& process : consumers) consumer_died = was_killed(process) || consumer_died;
  int lost = 0;
  for (int i = 0; i < kProducers; ++i) check_producer(counts, i, dead[static_cast<std::size_t>(i)], lost);
  EXPECT_LE(lost, consumer_died ? 1 : 0);
  EXPECT_EQ(counts[kDamaged], 0);
  return consumer_died || dead[0] || dead[1];
}

/// True when the victim died at the point.
bool run_with_kill_at(const Case& test, int point) {
  const SharedCounters counts;
  setenv("DROVER_FAULT", (std::string(test.victim) + ":" + std::to_string(point)).c_str(), 1);
  auto queue = Queue<Item>::create({.capacity = test.capacity, .bytes = test.bytes});
  std::vector<drover::Process> producers, consumers;
  for (int i = 0; i < kConsumers; ++i) {
    consumers.push_back(drover::spawn<consume>(queue, i, counts.path(), test.size));
  }
  for (int i = 0; i < kProducers; ++i) {
    producers.push_back(drover::spawn<produce>(queue, i, counts.path(), test.size));
  }
  unsetenv("DROVER_FAULT");
  const bool killed = ends_well(queue, producers, consumers, counts);
  EXPECT_TRUE(queue.finished());
  return killed;
}

class QueueKillPoints : public testing::TestWithParam<Case> {};

TEST_P(QueueKillPoints, CostNoMoreThanTheItemThatIsHandedOver) {
  const Case& test = GetParam();
  int kills = 0, quiet = 0, runs = 0, point = 0;
  for (; quiet < kQuietRuns && point < kLastPoint; point = point < kEveryPointTo ? point + 1 : point * 5 / 4) {
    const std::string what = std::string(test.name) + ": " + test.victim + " killed at point " + std::to_string(point);
    SCOPED_TRACE(what);
    const Watchdog watchdog(what, std::chrono::seconds(30));
    const bool killed = run_with_kill_at(test, point);
    ++runs;
    kills += killed ? 1 : 0;
    quiet = killed ? 0 : quiet + 1;
    if (testing::Test::HasFailure()) break;
  }
  std::printf("%s: %s killed at %d points, up to %d, in %d runs\n", test.name, test.victim, kills, point, runs);
  EXPECT_GT(kills, 0);
}

INSTANTIATE_TEST_SUITE_P(
    All, QueueKillPoints,
    testing::Values(Case{"roomy", "producer-0", 100, 65'536, 50}, Case{"roomy", "consumer-0", 100, 65'536, 50},
                    Case{"tight", "producer-0", 1, 4'096, 50}, Case{"tight", "consumer-0", 1, 4'096, 50},
                    Case{"streamed", "producer-0", 4, 1'024, 4'000}, Case{"streamed", "consumer-0", 4, 1'024, 4'000}),
    [](const auto& test) {
      std::string name = std::string(test.param.name) + "_" + test.param.victim;
      name.replace(name.find('-'), 1, "_");
      return name;
    });

void push_and_stay(Queue<int> queue) {
  queue.push(1);
  for (;;) pause();
}

/// The table of those who use a queue has a place for each process, not for each handle.
TEST(QueueFaults, AreSeenHoweverManyHandlesAProcessHas) {
  auto queue = Queue<int>::create(4);
  std::vector<Queue<int>> handles;
  for (int i = 0; i < 300; ++i) handles.push_back(Queue<int>::adopt(queue.core()->shared_block()));
  drover::Process other = drover::spawn<push_and_stay>(queue);
  EXPECT_EQ(handles.back().pop(), 1);
  other.kill();
  EXPECT_THROW(static_cast<void>(handles.front().pop_for(std::chrono::seconds(10))), drover::OwnerDied);
}

/// Kills that fall anywhere, by the clock: a process in three dies, again and again.
TEST(QueueStorm, LosesNothingThatWasPushedByTheLiving) {
  const std::uint32_t seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(4);
  int round = 0;
  for (; std::chrono::steady_clock::now() < end; ++round) {
    const Watchdog watchdog("storm, seed " + std::to_string(seed), std::chrono::seconds(30));
    const SharedCounters counts;
    auto queue = Queue<Item>::create({.capacity = 3, .bytes = 1'024});
    std::vector<drover::Process> producers, consumers;
    for (int i = 0; i < kConsumers; ++i) consumers.push_back(drover::spawn<consume>(queue, i, counts.path(), 900));
    for (int i = 0; i < kProducers; ++i) producers.push_back(drover::spawn<produce>(queue, i, counts.path(), 900));
    const auto victim = random() % (kProducers + 1);  // one consumer lives, so that what is left is taken
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 8'000));
    (victim < kProducers ? producers[victim] : consumers[0]).kill();
    ends_well(queue, producers, consumers, counts);
    if (HasFailure()) break;
  }
  std::printf("%d rounds\n", round);
}

}  // namespace
}  // namespace drover_test
