// SPDX-License-Identifier: Apache-2.0
// What the design promises to users, as users write it. That it compiles is the test; it runs too.
#include <gtest/gtest.h>

#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include "drover/drover.h"

using namespace std::chrono_literals;

std::pair<int, double> simulate(int seed);
double area(double width, double height);
int overloaded(int value);
double overloaded(double value);
void setup(int level, const std::string& name);

std::pair<int, double> simulate(int seed) { return {seed, seed * 0.5}; }
double area(double width, double height) { return width * height; }
int overloaded(int value) { return value + 1; }
double overloaded(double value) { return value / 2; }
void setup(int, const std::string&) {}

namespace {

template <auto F, class P, class... Argument>
auto in_a_template(P& pool, const Argument&... argument) {
  return pool.template submit<F>(argument...).get();
}

template <auto F, class P>
auto map_in_a_template(P& pool) {
  return pool.template map<F>(drover::range(0, 3)).collect();
}

TEST(Api, TheExampleOfTheDesign) {
  drover::Pool pool({.workers = 4});
  int seen = 0;
  for (auto [seed, value] : pool.map<simulate>(drover::range(0, 5'000), {.ordered = false})) {
    EXPECT_EQ(value, seed * 0.5);
    ++seen;
  }
  EXPECT_EQ(seen, 5'000);
  drover::Future<double> f = pool.submit<area>(2.0, 3.0);
  EXPECT_TRUE(f.wait_for(10s));
  EXPECT_TRUE(f.ready());
  EXPECT_FALSE(f.cancel());
  EXPECT_EQ(f.get(), 6.0);
  EXPECT_EQ(pool.with({.retries = 2}).submit<area>(2.0, 3.0).get(), 6.0);
  drover::Process p = drover::spawn<setup>(0, "x");
  p.join();
  EXPECT_GT(p.pid(), 0);
  EXPECT_EQ(p.exit_status()->code, 0);
  p.terminate();
  p.kill();
}

TEST(Api, CountsTakeAnyIntegerType) {
  const int i = 1;
  const long l = 1;
  const std::size_t s = 1;
  const unsigned char c = 1;
  EXPECT_EQ(drover::Pool({.workers = i}).stats().workers.size(), 1u);
  EXPECT_EQ(drover::Pool({.workers = l}).stats().workers.size(), 1u);
  EXPECT_EQ(drover::Pool({.workers = s}).stats().workers.size(), 1u);
  drover::Pool pool({.workers = c});
  EXPECT_EQ(pool.map<simulate>(drover::range(0, i), {.chunk = l, .window = s, .retries = c}).collect().size(), 1u);
  drover::Pool standard;
  EXPECT_GE(standard.stats().workers.size(), 1u);
}

TEST(Api, DurationsTakeAnyUnit) {
  drover::Pool pool({.workers = 1, .grace = 0.5s});
  EXPECT_EQ(pool.with({.timeout = 0.5h}).submit<area>(1, 2).get(), 2.0);
  EXPECT_EQ(pool.map<simulate>(drover::range(0, 2), {.timeout = 20'000ms}).collect().size(), 2u);
  auto future = pool.submit<area>(1, 2);
  future.wait();
  EXPECT_TRUE(future.wait_for(20ms));
  EXPECT_TRUE(future.wait_for(0.5s));
}

TEST(Api, WorksInsideTemplatesAndWithOverloads) {
  drover::Pool pool({.workers = 1});
  EXPECT_EQ((in_a_template<area>(pool, 2.0, 4.0)), 8.0);
  EXPECT_EQ(map_in_a_template<simulate>(pool).size(), 3u);
  EXPECT_EQ(pool.submit<static_cast<int (*)(int)>(overloaded)>(4).get(), 5);
  EXPECT_EQ(pool.submit<static_cast<double (*)(double)>(overloaded)>(4).get(), 2.0);
}

TEST(Api, ABoundFunctionIsAnOption) {
  drover::Pool pool({.workers = 1, .initializer = drover::call<setup>(3, "name")});
  EXPECT_EQ(pool.submit<area>(1, 1).get(), 1.0);
}

TEST(Api, TypesAreAsPromised) {
  using Results = drover::Results<int>;
  static_assert(std::ranges::input_range<Results>);
  static_assert(std::same_as<std::ranges::range_reference_t<Results>, int&&>);
  static_assert(std::same_as<std::ranges::sentinel_t<Results>, std::default_sentinel_t>);
  static_assert(!std::copy_constructible<Results> && std::movable<Results>);
  static_assert(!std::copy_constructible<drover::Future<int>> && std::movable<drover::Future<void>>);
  static_assert(!std::copy_constructible<drover::Process> && std::movable<drover::Process>);
  static_assert(std::ranges::forward_range<drover::IndexRange<int>>);
  static_assert(std::derived_from<drover::WorkerLost, drover::Error>);
  static_assert(std::derived_from<drover::Error, std::runtime_error>);
  SUCCEED();
}

TEST(Api, LoopsTakeResultsInEveryForm) {
  drover::Pool pool({.workers = 1});
  int sum = 0;
  for (const auto& [seed, value] : pool.map<simulate>(std::vector<int>{1, 2})) sum += seed;
  for (auto&& [seed, value] : pool.map<simulate>(std::vector<int>{3, 4})) sum += seed;
  auto results = pool.map<simulate>(std::vector<int>{5, 6});
  for (auto&& [index, pair] : results.indexed()) sum += pair.first * static_cast<int>(index);
  EXPECT_EQ(sum, 1 + 2 + 3 + 4 + 6);
}

}  // namespace
