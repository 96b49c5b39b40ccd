// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "drover/drover.h"
#include "harness/deadline.h"
#include "pool/map_functions.h"
#include "pool/shared_counters.h"

using namespace std::chrono_literals;
using namespace map_test;
using drover_test::SharedCounters;

namespace {

TEST_F(Map, SeveralAtOnceInOneThread) {
  auto a = pool.map<square>(drover::range(0, 3000));
  auto b = pool.map<repeat>(drover::range(0, 3000), {.ordered = false});
  auto c = pool.map<scaled>(std::vector<std::vector<double>>(3000, {1.0, 2.0}));
  auto at_a = a.begin();
  auto at_b = b.begin();
  auto at_c = c.begin();
  for (int i = 0; i < 3000; ++i, ++at_a, ++at_b, ++at_c) {
    ASSERT_EQ(*at_a, i * i);
    ASSERT_EQ(*at_b, repeat(static_cast<int>(at_b.index())));
    ASSERT_EQ((*at_c)[1], 4.0);
  }
  EXPECT_TRUE(at_a == a.end() && at_b == b.end() && at_c == c.end());
}

TEST_F(Map, SeveralAtOnceFromSeveralThreads) {
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 20; ++round) {
        int expected = 0;
        for (const int value : pool.map<square>(drover::range(0, 500 + t)))
          good += value == expected * expected, ++expected;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 20 * (500 + 501 + 502 + 503));
}

TEST_F(Map, SixtyThreeAtOnceAndAClearErrorForOneMore) {
  std::vector<drover::Results<int>> all;
  for (int i = 0; i < 63; ++i) all.push_back(pool.map<square>(drover::range(i, i + 50)));
  try {
    auto one_more = pool.map<square>(drover::range(0, 1));
    FAIL() << "no error";
  } catch (const drover::InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("63 maps at once"), std::string::npos) << error.what();
  }
  all.erase(all.begin());
  EXPECT_EQ(pool.map<square>(drover::range(0, 4)).collect().size(), 4u) << "room again";
  for (int i = 1; i < 63; ++i) EXPECT_EQ(*all[static_cast<std::size_t>(i) - 1].begin(), i * i);
}

TEST_F(Map, ResultsDroppedEarlyTenThousandTimes) {
  std::vector<int> inputs = numbers(0, 40);
  for (int round = 0; round < 10'000; ++round) {
    if (round % 3 == 0) {
      auto results = pool.map<square>(inputs, {.ordered = round % 2 == 0});
      ASSERT_EQ(*results.begin() % 1, 0);
    } else if (round % 3 == 1) {
      static_cast<void>(pool.map<repeat>(drover::range(0, 100)));
    } else {
      ASSERT_EQ(pool.map<square>(drover::range(round, round + 2)).collect()[1], (round + 1) * (round + 1));
    }
  }
  EXPECT_EQ(pool.map<square>(inputs).collect().size(), 40u);
}

TEST_F(Map, DroppedResultsCancelWhatHasNotBegun) {
  SharedCounters shared;
  {
    auto results = pool.map<gated>(std::vector<std::string>(1000, shared.path()), {.chunk = 1, .window = 900});
    ASSERT_TRUE(drover_test::eventually(10s, [&] { return shared[0] == 3; }));
  }
  shared[1] = 1;
  EXPECT_EQ(pool.map<square>(drover::range(0, 100)).collect().size(), 100u);
  EXPECT_EQ(shared[0], 3);
}

TEST(MapPool, EndsWhileDroppedResultsStillRun) {  // the harness sees what stays
  SharedCounters shared;
  {
    drover::Pool pool({.workers = 2});
    static_cast<void>(pool.map<gated>(std::vector<std::string>(8, shared.path())));
    ASSERT_TRUE(drover_test::eventually(10s, [&] { return shared[0] >= 2 || shared[0] == 0; }));
    auto more = pool.map<gated>(std::vector<std::string>(8, shared.path()));
    ASSERT_TRUE(drover_test::eventually(10s, [&] { return shared[0] >= 2; }));
    { const auto dropped = std::move(more); }
    shared[1] = 1;
  }
  EXPECT_EQ(shared[0], shared[2]) << "what had begun was finished";
}

TEST(MapPool, EndsAfterItsGraceWhileATaskHangs) {
  SharedCounters shared;
  const auto begin = std::chrono::steady_clock::now();
  {
    drover::Pool pool({.workers = 2, .grace = 50ms});
    auto results = pool.map<gated>(std::vector<std::string>(8, shared.path()));
    ASSERT_TRUE(drover_test::eventually(10s, [&] { return shared[0] == 2; }));
    { const auto dropped = std::move(results); }
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
}

TEST(MapPool, ResultsThatOutliveItEndInCancelled) {
  SharedCounters shared;
  std::optional<drover::Pool> pool(std::in_place, drover::PoolOptions{.workers = 2});
  auto results = pool->map<gated>(std::vector<std::string>(5000, shared.path()), {.chunk = 1, .window = 8});
  ASSERT_TRUE(drover_test::eventually(10s, [&] { return shared[0] == 2; }));
  shared[1] = 1;
  pool.reset();
  int seen = 0;
  EXPECT_THROW(for ([[maybe_unused]] const int value : results)++ seen, drover::Cancelled);
  EXPECT_LE(seen, 8);
  EXPECT_GE(seen, 2) << "what was finished is delivered";
}

TEST_F(Map, ASlowConsumerSlowsTheWorkersDown) {
  for (const std::size_t window : {1UL, 10UL}) {
    SharedCounters shared;
    auto results =
        pool.map<count_start>(std::vector<std::string>(200, shared.path()), {.ordered = false, .window = window});
    std::int64_t delivered = 0;
    for ([[maybe_unused]] const int value : results) {
      ++delivered;
      if (delivered < 20) std::this_thread::sleep_for(2ms);  // time to run ahead, if they did
      ASSERT_LE(shared[0], delivered + static_cast<std::int64_t>(window));
    }
    EXPECT_EQ(delivered, 200);
  }
}

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kKeepsFreedMemory = true;  // AddressSanitizer's quarantine
#else
constexpr bool kKeepsFreedMemory = false;
#endif

std::size_t resident_kib() {
  std::ifstream file("/proc/self/statm");
  std::size_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * 4;
}

TEST_F(Map, MemoryStaysConstantWhileAMillionResultsStream) {
  if (kKeepsFreedMemory) GTEST_SKIP();
  for (const bool ordered : {true, false}) {
    std::size_t before = 0, count = 0;
    for ([[maybe_unused]] const auto value : pool.map<twice>(drover::range(0, 1'000'000), {.ordered = ordered})) {
      if (++count == 200'000) before = resident_kib();
    }
    EXPECT_EQ(count, 1'000'000u);
    EXPECT_LT(resident_kib(), before + 8192) << ordered;
  }
}

TEST_F(Map, MemoryStaysConstantWhileLargeResultsStream) {
  if (kKeepsFreedMemory) GTEST_SKIP();
  std::size_t before = 0, count = 0;
  std::vector<double> input(20'000, 1.0);
  std::vector<std::vector<double>> few(8, input);
  for (int round = 0; round < 60; ++round) {
    for ([[maybe_unused]] const auto& value : pool.map<scaled>(few)) ++count;
    if (round == 15) before = resident_kib();
  }
  EXPECT_EQ(count, 480u);
  EXPECT_LT(resident_kib(), before + 16'384);
}

TEST_F(Map, NestedPoolsWorkInWorkers) {
  EXPECT_EQ(pool.map<nested_sum>(std::vector<int>{3, 4, 5, 6}).collect(), (std::vector<int>{5, 14, 30, 55}));
}

TEST(Range, ANegativeBoundNeedsASignedType) {
  const std::vector<int> v(5);
  EXPECT_THROW(static_cast<void>(drover::range(-5, v.size())), drover::InvalidArgument);
  EXPECT_THROW(static_cast<void>(drover::range(5U, -1)), drover::InvalidArgument);
  EXPECT_EQ(drover::range(0, v.size()).size(), 5U);
  EXPECT_EQ(drover::range(-5, static_cast<unsigned char>(3)).size(), 8U);
  EXPECT_EQ(drover::range(-5, std::int64_t{-2}).size(), 3U);
  EXPECT_EQ(drover::range(3, -3).size(), 0U);
}

TEST_F(Map, OptionsTakeAllIntegerTypes) {
  const int i = 2;
  const long l = 3;
  const std::size_t s = 4;
  EXPECT_EQ(pool.map<square>(drover::range(0, 9), {.chunk = i, .window = l, .retries = s}).collect().size(), 9u);
  EXPECT_THROW(static_cast<void>(pool.map<square>(drover::range(0, 9), {.chunk = -1})), drover::InvalidArgument);
  EXPECT_THROW(static_cast<void>(pool.map<square>(drover::range(0, 9), {.timeout = -1s})), drover::InvalidArgument);
}

}  // namespace
