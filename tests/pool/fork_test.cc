// SPDX-License-Identifier: Apache-2.0
// A fork of the program has copies of pools, results and futures, whose destructors run when it unwinds.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "drover/drover.h"
#include "harness/deadline.h"
#include "harness/in_fork.h"
#include "pool/shared_counters.h"

using namespace std::chrono_literals;
using drover_test::counters;
using drover_test::eventually;
using drover_test::in_fork;
using drover_test::is_refused;
using drover_test::SharedCounters;

namespace {

int same(int i) { return i; }
int gated(const std::string& path, int value) {
  counters(path)[0].fetch_add(1);
  drover_test::pass_gate(counters(path)[1]);
  return value;
}
std::vector<int> large(int i) { return std::vector<int>(100'000, i); }

TEST(Fork, DroppingResultsThereTakesNothingFromTheParent) {
  SharedCounters shared;
  drover::Pool pool({.workers = 2});
  std::optional<drover::Results<int>> results(
      pool.map<gated>(std::vector<std::pair<std::string, int>>(100, {shared.path(), 7}), {.chunk = 1, .window = 50}));
  ASSERT_TRUE(eventually(10s, [&] { return shared[0] == 2; }));
  EXPECT_EQ(in_fork([&] {
              results.reset();
              return 5;
            }),
            5);
  shared[1] = 1;
  EXPECT_EQ(results->collect(), std::vector<int>(100, 7));
}

TEST(Fork, DroppingFuturesThereTakesNothingFromTheParent) {
  SharedCounters shared;
  drover::Pool pool({.workers = 1});
  std::vector<drover::Future<int>> futures;
  for (int i = 0; i < 3; ++i) futures.push_back(pool.submit<gated>(shared.path(), i));
  auto finished = pool.submit<same>(9);
  auto finished_large = pool.submit<large>(9);
  shared[1] = 1;
  finished_large.wait();
  shared[1] = 0;
  futures.push_back(pool.submit<gated>(shared.path(), 3));
  EXPECT_EQ(in_fork([&] {
              { const auto dropped = std::move(finished); }
              { const auto dropped = std::move(finished_large); }
              futures.clear();
              return 5;
            }),
            5);
  shared[1] = 1;
  std::vector<drover::Future<int>> more;  // would take the entries, were they free
  for (int i = 0; i < 600; ++i) more.push_back(pool.submit<same>(1000 + i));
  for (auto& future : more) future.wait();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(futures[static_cast<std::size_t>(i)].get(), i);
  EXPECT_EQ(finished.get(), 9);
  EXPECT_EQ(finished_large.get(), std::vector<int>(100'000, 9));
}

TEST(Fork, EveryCallThereIsRefused) {
  drover::Pool pool({.workers = 1});
  auto done = pool.submit<same>(1);
  auto done_large = pool.submit<large>(1);
  auto results = pool.map<large>(drover::range(0, 40));
  auto at = results.begin();
  done_large.wait();
  EXPECT_EQ(in_fork([&] {
              bool all = is_refused([&] { done.get(); });
              all = all && is_refused([&] { done_large.wait(); });
              all = all && is_refused([&] { done.cancel(); });
              all = all && done.ready();
              all = all && is_refused([&] { ++at; });
              all = all && is_refused([&] { static_cast<void>(pool.submit<same>(1)); });
              all = all && is_refused([&] { static_cast<void>(pool.map<same>(drover::range(0, 3))); });
              all = all && is_refused([&] { static_cast<void>(pool.stats()); });
              return all ? 5 : 6;
            }),
            5);
  EXPECT_EQ(done.get(), 1);
  EXPECT_EQ(done_large.get(), std::vector<int>(100'000, 1));
  int i = 0;
  for (; at != results.end(); ++at, ++i) ASSERT_EQ(*at, std::vector<int>(100'000, i));
  EXPECT_EQ(i, 40);
}

TEST(Fork, UnwindingAllOfItThereLeavesThePoolToTheParent) {
  std::optional<drover::Pool> pool(std::in_place, drover::PoolOptions{.workers = 2});
  std::optional<drover::Results<int>> results(pool->map<same>(drover::range(0, 10'000), {.window = 100}));
  std::optional<drover::Future<int>> future(pool->submit<same>(4));
  auto at = results->begin();
  EXPECT_EQ(in_fork([&] {
              future.reset();
              results.reset();
              pool.reset();
              return 5;
            }),
            5);
  int i = 0;
  for (; at != results->end(); ++at, ++i) ASSERT_EQ(*at, i);
  EXPECT_EQ(i, 10'000);
  EXPECT_EQ(future->get(), 4);
  EXPECT_EQ(pool->submit<same>(8).get(), 8);
}

}  // namespace
