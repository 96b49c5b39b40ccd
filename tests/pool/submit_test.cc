// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "drover/drover.h"
#include "harness/deadline.h"
#include "pool/shared_counters.h"

using namespace std::chrono_literals;
using drover_test::counters;
using drover_test::SharedCounters;

namespace {

struct Point {
  double x = 0, y = 0;
  bool operator==(const Point&) const = default;
};
struct Body {
  std::string name;
  std::vector<Point> path;
  std::optional<int> mass;
  std::map<std::string, std::variant<int, std::string>> notes;
  bool operator==(const Body&) const = default;
};

double area(double width, double height) { return width * height; }
void nothing() {}
int add(int a, int b) { return a + b; }
bool negate_it(bool value) { return !value; }
char next_char(char c) { return static_cast<char>(c + 1); }
std::string greet(const std::string& name, std::string_view mark) { return "hello " + name + std::string(mark); }
double total(std::span<const double> values) { return std::accumulate(values.begin(), values.end(), 0.0); }
Body moved_by(Body body, const Point& by) {
  for (Point& point : body.path) point = {point.x + by.x, point.y + by.y};
  return body;
}
std::array<char, 24> just_inline() { return {'a'}; }
std::array<char, 25> just_not_inline(std::array<char, 65> text) { return {text[64]}; }
std::string large(std::size_t size) { return std::string(size, 'L'); }
std::size_t length(const std::string& text) { return text.size(); }
std::string same(std::string text) { return text; }
int pid_of_worker() { return getpid(); }
void sleep_a_little() { std::this_thread::sleep_for(1ms); }
int throw_it() { throw std::out_of_range("thrown"); }
int gated(const std::string& path, int value) {
  counters(path)[0].fetch_add(1);
  drover_test::pass_gate(counters(path)[1]);
  counters(path)[2].fetch_add(1);
  return value;
}
int hang_at_first(const std::string& path, int times) {
  if (counters(path)[0].fetch_add(1) < times) std::this_thread::sleep_for(60s);
  return getpid();
}
int exit_at_first(const std::string& path, int times) {
  if (counters(path)[0].fetch_add(1) < times) _exit(9);
  return 5;
}
std::unique_ptr<int> boxed(std::unique_ptr<int> value) { return std::make_unique<int>(*value + 1); }

class Submit : public testing::Test {
 protected:
  drover::Pool pool{{.workers = 2}};
};

TEST_F(Submit, CarriesAllKindsOfValues) {
  EXPECT_EQ(pool.submit<area>(2.0, 3.5).get(), 7.0);
  pool.submit<nothing>().get();
  EXPECT_EQ(pool.submit<negate_it>(true).get(), false);
  EXPECT_EQ(pool.submit<next_char>('a').get(), 'b');
  EXPECT_EQ(pool.submit<same>("").get(), "");
  EXPECT_EQ(*pool.submit<boxed>(std::make_unique<int>(4)).get(), 5);
  EXPECT_EQ(pool.submit<just_inline>().get()[0], 'a');
  std::array<char, 65> text{};
  text[64] = 'z';
  EXPECT_EQ(pool.submit<just_not_inline>(text).get()[0], 'z');
  const Body body{"moon", {{1, 2}, {3, 4}}, 7, {{"a", 1}, {"b", "two"}}};
  Body expected = body;
  expected.path = {{2, 3}, {4, 5}};
  EXPECT_EQ(pool.submit<moved_by>(body, Point{1, 1}).get(), expected);
}

TEST_F(Submit, ConvertsArgumentsInTheCaller) {
  EXPECT_EQ(pool.submit<area>(2, 3).get(), 6.0);
  EXPECT_EQ(pool.submit<greet>("you", "!").get(), "hello you!");
  EXPECT_EQ(pool.submit<greet>(std::string("you"), std::string("?")).get(), "hello you?");
  const std::vector<double> values = {1, 2, 3.5};
  EXPECT_EQ(pool.submit<total>(values).get(), 6.5);
  EXPECT_EQ(pool.submit<total>(std::vector<double>{}).get(), 0.0);
}

TEST_F(Submit, CarriesTenMebibytesBothWays) {
  const std::string text(10 << 20, 'x');
  EXPECT_EQ(pool.submit<length>(text).get(), text.size());
  EXPECT_EQ(pool.submit<large>(text.size()).get(), std::string(text.size(), 'L'));
  EXPECT_EQ(pool.submit<same>(text).get(), text);
}

TEST_F(Submit, AnErrorIsThrownByGet) {
  auto future = pool.submit<throw_it>();
  future.wait();
  EXPECT_TRUE(future.ready());
  EXPECT_THROW(future.get(), std::out_of_range);
  EXPECT_FALSE(future.valid());
}

TEST_F(Submit, ReadyAndWaitForTellWhetherItIsThere) {
  SharedCounters shared;
  auto future = pool.submit<gated>(shared.path(), 5);
  EXPECT_TRUE(future.valid());
  EXPECT_FALSE(future.ready());
  EXPECT_FALSE(future.wait_for(0s));
  EXPECT_FALSE(future.wait_for(20ms));
  shared[1] = 1;
  EXPECT_TRUE(future.wait_for(10s));
  EXPECT_TRUE(future.ready());
  EXPECT_TRUE(future.wait_for(0s));
  EXPECT_EQ(future.get(), 5);
}

TEST_F(Submit, AVeryLongWaitIsAWaitForEver) {
  for (const drover::Duration wait : {drover::Duration(1e10), drover::Duration(1e300), drover::Duration::max(),
                                      drover::Duration(std::numeric_limits<double>::infinity())}) {
    SharedCounters shared;
    auto future = pool.submit<gated>(shared.path(), 5);
    ASSERT_TRUE(drover_test::eventually(10s, [&] { return shared[0] == 1; }));
    std::thread opener([&] {
      std::this_thread::sleep_for(20ms);  // either order is right; this one finds the overflow
      shared[1] = 1;
    });
    EXPECT_TRUE(future.wait_for(wait)) << wait.count();
    opener.join();
    future.wait();
  }
}

TEST_F(Submit, GetTwiceIsAnInvalidArgument) {
  auto future = pool.submit<area>(1.0, 1.0);
  future.get();
  EXPECT_FALSE(future.valid());
  EXPECT_THROW(future.get(), drover::InvalidArgument);
  EXPECT_THROW(static_cast<void>(future.ready()), drover::InvalidArgument);
  EXPECT_THROW(static_cast<void>(future.wait_for(1s)), drover::InvalidArgument);
  EXPECT_THROW(future.cancel(), drover::InvalidArgument);
  drover::Future<double> none;
  EXPECT_THROW(none.get(), drover::InvalidArgument);
}

TEST_F(Submit, AMovedFutureTakesItsTaskAlong) {
  auto future = pool.submit<area>(2.0, 2.0);
  drover::Future<double> other = std::move(future);
  EXPECT_FALSE(future.valid());
  EXPECT_EQ(other.get(), 4.0);
}

TEST_F(Submit, AQueuedTaskCanBeCancelledAndARunningOneCannot) {
  SharedCounters shared;
  std::vector<drover::Future<int>> running;
  for (int i = 0; i < 2; ++i) running.push_back(pool.submit<gated>(shared.path(), i));
  ASSERT_TRUE(drover_test::eventually(10s, [&] { return shared[0] == 2; }));
  auto queued = pool.submit<gated>(shared.path(), 2);
  EXPECT_TRUE(queued.cancel());
  EXPECT_TRUE(queued.cancel()) << "still so";
  EXPECT_TRUE(queued.ready());
  EXPECT_THROW(queued.get(), drover::Cancelled);
  EXPECT_FALSE(running[0].cancel());
  shared[1] = 1;
  EXPECT_EQ(running[0].get(), 0);
  EXPECT_EQ(running[1].get(), 1);
  auto done = pool.submit<area>(1.0, 1.0);
  done.wait();
  EXPECT_FALSE(done.cancel());
  EXPECT_EQ(done.get(), 1.0);
  EXPECT_EQ(shared[0], 2);
}

TEST_F(Submit, DroppedFuturesRunAllTheSame) {
  SharedCounters shared;
  shared[1] = 1;
  for (int i = 0; i < 1000; ++i) static_cast<void>(pool.submit<gated>(shared.path(), i));
  EXPECT_TRUE(drover_test::eventually(20s, [&] { return shared[2] == 1000; }));
}

TEST_F(Submit, AHundredThousandOutstandingTakenInAnyOrder) {
  constexpr int kCount = 100'000;
  std::vector<drover::Future<int>> futures;
  for (int i = 0; i < kCount; ++i) futures.push_back(pool.submit<add>(i, 1));
  std::vector<int> order(kCount);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(11));
  for (const int i : order) ASSERT_EQ(futures[static_cast<std::size_t>(i)].get(), i + 1);
}

TEST_F(Submit, ManyRoundsOfHeldAndTakenFutures) {
  std::vector<drover::Future<int>> held;
  for (int i = 0; i < 30'000; ++i) {
    if (i % 1000 < 20) held.push_back(pool.submit<add>(i, i));
    ASSERT_EQ(pool.submit<add>(i, 2).get(), i + 2);
  }
  for (std::size_t i = 0; i < held.size(); ++i) ASSERT_EQ(held[i].get() % 2, 0);
}

TEST_F(Submit, FromFourThreads) {
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 1500; ++i) {
        auto first = pool.submit<add>(i, t);
        auto second = pool.submit<same>(std::string(static_cast<std::size_t>(i % 200), 'x'));
        good += first.get() == i + t;
        good += second.get().size() == static_cast<std::size_t>(i % 200);
        if (i % 10 == 0) static_cast<void>(pool.submit<add>(1, 1));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 4 * 1500 * 2);
}

TEST_F(Submit, BesideAMap) {
  auto results = pool.map<large>(std::vector<std::size_t>(2000, 3000), {.window = 10});
  int i = 0;
  for (const std::string& value : results) {
    ASSERT_EQ(value.size(), 3000u);
    ASSERT_EQ(pool.submit<add>(i, 1).get(), i + 1);
    ++i;
  }
}

TEST(SubmitPool, FuturesThatOutliveItAreCancelledUnlessTheyWereFinished) {
  SharedCounters shared;
  std::optional<drover::Pool> pool(std::in_place, drover::PoolOptions{.workers = 1, .grace = 20s});
  auto finished = pool->submit<add>(1, 2);
  finished.wait();
  auto running = pool->submit<gated>(shared.path(), 1);
  ASSERT_TRUE(drover_test::eventually(10s, [&] { return shared[0] == 1; }));
  for (int i = 0; i < 5000; ++i) static_cast<void>(pool->submit<sleep_a_little>());
  auto queued = pool->submit<add>(1, 1);  // five seconds behind
  shared[1] = 1;
  pool.reset();
  EXPECT_EQ(finished.get(), 3);
  EXPECT_EQ(running.get(), 1);
  EXPECT_TRUE(queued.ready());
  EXPECT_THROW(queued.get(), drover::Cancelled);
}

TEST(SubmitPool, WhatRunsBeyondItsGraceIsCancelled) {
  SharedCounters shared;
  std::optional<drover::Pool> pool(std::in_place, drover::PoolOptions{.workers = 1, .grace = 0s});
  auto running = pool->submit<gated>(shared.path(), 1);
  ASSERT_TRUE(drover_test::eventually(10s, [&] { return shared[0] == 1; }));
  pool.reset();
  EXPECT_THROW(running.get(), drover::Cancelled);
}

TEST(SubmitPool, ADroppedFutureOfAPoolThatIsGoneIsHarmless) {
  std::optional<drover::Pool> pool(std::in_place, drover::PoolOptions{.workers = 1});
  auto future = pool->submit<large>(std::size_t{100'000});
  pool.reset();
}

TEST_F(Submit, ATimeLimitKillsAndReplacesTheWorker) {
  SharedCounters shared;
  try {
    pool.with({.timeout = 100ms}).submit<hang_at_first>(shared.path(), 1).get();
    FAIL() << "no Timeout";
  } catch (const drover::Timeout& error) {
    EXPECT_NE(std::string(error.what()).find("hang_at_first"), std::string::npos) << error.what();
  }
  EXPECT_TRUE(drover_test::eventually(5s, [&] {
    std::size_t restarts = 0, ready = 0;
    for (const auto& worker : pool.stats().workers) restarts += worker.restarts, ready += worker.ready;
    return restarts == 1 && ready == 2;
  }));
  EXPECT_EQ(pool.submit<add>(1, 1).get(), 2);
}

TEST_F(Submit, ATimeLimitIsKeptInAPoolThatWasIdle) {
  SharedCounters shared;
  for (int round = 0; round < 5; ++round) {
    ASSERT_TRUE(drover_test::eventually(10s, [&] {
      return std::ranges::all_of(pool.stats().workers, [](const auto& worker) { return worker.ready; });
    }));
    const auto begin = std::chrono::steady_clock::now();
    auto future = pool.with({.timeout = 20ms}).submit<hang_at_first>(shared.path(), 100);
    EXPECT_THROW(future.get(), drover::Timeout);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 500ms);
  }
  for (int round = 0; round < 3; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    auto results =
        pool.map<hang_at_first>(std::vector<std::pair<std::string, int>>{{shared.path(), 100}}, {.timeout = 20ms});
    EXPECT_THROW(static_cast<void>(results.collect()), drover::Timeout);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 500ms);
  }
}

TEST_F(Submit, ATaskWithinItsTimeLimitIsLeftAlone) {
  EXPECT_EQ(pool.with({.timeout = 10s}).submit<add>(1, 1).get(), 2);
  EXPECT_EQ(pool.submit<pid_of_worker>().get() > 0, true);
}

TEST_F(Submit, RetriesAfterATimeLimit) {
  SharedCounters shared;
  EXPECT_GT(pool.with({.retries = 2, .timeout = 100ms}).submit<hang_at_first>(shared.path(), 2).get(), 0);
  EXPECT_EQ(shared[0], 3);
}

TEST_F(Submit, RetriesAfterADeath) {
  SharedCounters shared;
  EXPECT_EQ(pool.with({.retries = 2}).submit<exit_at_first>(shared.path(), 2).get(), 5);
  EXPECT_EQ(shared[0], 3);
  shared[0] = 0;
  EXPECT_THROW(pool.with({.retries = 1}).submit<exit_at_first>(shared.path(), 2).get(), drover::WorkerLost);
}

/// Submits small tasks all the time; the longest that one submit took.
class SmallSubmits {
 public:
  SmallSubmits(drover::detail::PoolCore& core, std::uint32_t function)
      : thread_([this, &core, function] {
          while (!stop_) {
            const auto begin = std::chrono::steady_clock::now();
            core.submits().detach(core.submits().submit(function, {}, {}, {}));
            longest_ = std::max(longest_, std::chrono::steady_clock::now() - begin);
            begun_ = true;
            std::this_thread::sleep_for(1ms);
          }
        }) {}
  bool begun() const { return begun_; }
  std::chrono::nanoseconds stop() {
    stop_ = true;
    thread_.join();
    return longest_;
  }

 private:
  std::atomic<bool> stop_{false}, begun_{false};
  std::chrono::nanoseconds longest_{0};
  std::thread thread_;
};

TEST_F(Submit, OthersNeedNotWaitWhileALargeArgumentIsCopied) {
  namespace detail = drover::detail;
  detail::PoolCore core({.workers = 1});
  const std::uint32_t function = drover::wire::Registered<&nothing, &detail::submit_thunk<&nothing>>::index();
  const std::vector<std::byte> large(std::size_t{128} << 20);
  bool waited = true;
  for (int attempt = 0; waited && attempt < 5; ++attempt) {  // on a busy machine a thread may wait for a core
    SmallSubmits others(core, function);
    ASSERT_TRUE(drover_test::eventually(10s, [&] { return others.begun(); }));
    const auto begin = std::chrono::steady_clock::now();
    core.submits().detach(core.submits().submit(function, large, {}, {}));
    const auto copying = std::chrono::steady_clock::now() - begin;
    waited = others.stop() > copying / 2;
  }
  EXPECT_FALSE(waited);
}

TEST_F(Submit, AnExceptionIsNoReasonForARetry) {
  EXPECT_THROW(pool.with({.retries = 5}).submit<throw_it>().get(), std::out_of_range);
}

TEST_F(Submit, RefusesOptionsThatMeanNothing) {
  EXPECT_THROW(static_cast<void>(pool.with({.timeout = -1s})), drover::InvalidArgument);
  EXPECT_THROW(static_cast<void>(pool.with({.retries = -1})), drover::InvalidArgument);
}

}  // namespace
