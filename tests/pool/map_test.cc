// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <list>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "drover/drover.h"
#include "harness/deadline.h"
#include "pool/shared_counters.h"

using namespace std::chrono_literals;
using drover_test::counters;
using drover_test::SharedCounters;

namespace {

int square(int x) { return x * x; }
std::int64_t twice(std::int64_t x) { return 2 * x; }
std::size_t half(std::size_t x) { return x / 2; }
std::string repeat(int n) { return std::string(static_cast<std::size_t>(n), static_cast<char>('a' + n % 26)); }
std::string louder(const std::string& text) { return text + "!"; }
std::size_t length(std::string_view text) { return text.size(); }
std::vector<double> scaled(const std::vector<double>& values) {
  std::vector<double> result = values;
  for (double& value : result) value *= 2;
  return result;
}
double weighted(int count, double weight) { return count * weight; }
int held(std::unique_ptr<int> number) { return *number; }
void nothing(int) {}
std::array<double, 3> three(int i) { return {i + 0.0, i + 0.5, i + 0.75}; }
std::array<double, 12'000> ninety_six_kb(int i) {
  std::array<double, 12'000> result{};
  result.front() = result.back() = i;
  return result;
}
std::array<char, 300'000> larger_than_a_ring(int i) {
  std::array<char, 300'000> result{};
  result.front() = result.back() = static_cast<char>(i);
  return result;
}
int throw_at_seven(int i) {
  if (i == 7) throw std::out_of_range("seven");
  return i;
}
int count_start(const std::string& path) { return static_cast<int>(counters(path)[0].fetch_add(1)); }
int gated(const std::string& path) {
  counters(path)[0].fetch_add(1);
  drover_test::pass_gate(counters(path)[1]);
  counters(path)[2].fetch_add(1);
  return 1;
}
int nested_sum(int n) {
  drover::Pool inner({.workers = 2});
  int sum = 0;
  for (const int value : inner.map<square>(drover::range(0, n))) sum += value;
  return sum;
}

/// Counts upwards for ever; notes how far it was read.
struct Naturals {
  struct Iterator {
    using value_type = int;
    using difference_type = std::ptrdiff_t;
    int* next;
    int operator*() const { return *next; }
    Iterator& operator++() {
      ++*next;
      return *this;
    }
    void operator++(int) { ++*next; }
    bool operator==(std::default_sentinel_t) const { return false; }
  };
  Iterator begin() { return {&next}; }
  static std::default_sentinel_t end() { return {}; }
  int next = 0;
};

/// Counts upwards and throws at `bad`.
struct Breaking {
  struct Iterator {
    using value_type = int;
    using difference_type = std::ptrdiff_t;
    int at, bad;
    int operator*() const {
      if (at == bad) throw std::domain_error("the input is broken here");
      return at;
    }
    Iterator& operator++() {
      ++at;
      return *this;
    }
    void operator++(int) { ++at; }
    bool operator==(std::default_sentinel_t) const { return false; }
  };
  Iterator begin() const { return {0, bad}; }
  static std::default_sentinel_t end() { return {}; }
  int bad;
};

/// A pool for each test: what is left behind is then seen by the harness.
class Map : public testing::Test {
 protected:
  drover::Pool pool{{.workers = 3}};
};

std::vector<int> numbers(int from, int to) {
  std::vector<int> result(static_cast<std::size_t>(std::max(0, to - from)));
  std::iota(result.begin(), result.end(), from);
  return result;
}

template <class T>
std::vector<T> sorted(std::vector<T> values) {
  std::sort(values.begin(), values.end());
  return values;
}

TEST_F(Map, GivesResultsInTheOrderOfTheInputs) {
  int expected = 0;
  for (const int value : pool.map<square>(drover::range(0, 20'000))) {
    ASSERT_EQ(value, expected * expected);
    ++expected;
  }
  EXPECT_EQ(expected, 20'000);
}

TEST_F(Map, UnorderedGivesEachResultOnceWithItsIndex) {
  std::vector<int> seen(20'000);
  auto results = pool.map<square>(drover::range(0, 20'000), {.ordered = false});
  for (auto it = results.begin(); it != results.end(); ++it) {
    const auto index = static_cast<int>(it.index());
    ASSERT_EQ(*it, index * index);
    ++seen[it.index()];
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), 20'000);
}

TEST_F(Map, EmptyRangesGiveNothing) {
  EXPECT_TRUE(pool.map<square>(drover::range(3, 3)).collect().empty());
  EXPECT_TRUE(pool.map<square>(drover::range(3, -3), {.ordered = false}).collect().empty());
  EXPECT_TRUE(pool.map<square>(std::vector<int>{}).collect().empty());
}

TEST_F(Map, EverySizeChunkAndWindowGivesEverything) {
  for (const int size : {1, 2, 3, 7, 8, 63, 257, 1500}) {
    for (const int chunk : {0, 1, 7, 100'000}) {
      for (const std::size_t window : {0UL, 1UL, 5UL}) {
        for (const bool ordered : {true, false}) {
          const drover::MapOptions options{.ordered = ordered, .chunk = chunk, .window = window};
          const std::vector<int> inputs = numbers(-3, size - 3);
          std::vector<int> expected;
          for (const int input : inputs) expected.push_back(input * input);
          auto indexed = pool.map<square>(drover::range(-3, size - 3), options).collect();
          auto encoded = pool.map<square>(inputs, options).collect();
          if (!ordered) {
            expected = sorted(expected);
            indexed = sorted(indexed);
            encoded = sorted(encoded);
          }
          ASSERT_EQ(indexed, expected) << size << " " << chunk << " " << window << " " << ordered;
          ASSERT_EQ(encoded, expected) << size << " " << chunk << " " << window << " " << ordered;
        }
      }
    }
  }
}

TEST_F(Map, AbsurdlyLargeOptionsAreAsGoodAsLargeOnes) {
  for (const std::size_t chunk : {SIZE_MAX, std::size_t{1} << 62, std::size_t{1} << 32}) {
    EXPECT_EQ(pool.map<square>(drover::range(0, 10), {.chunk = chunk}).collect().size(), 10u) << chunk;
    EXPECT_EQ(pool.map<square>(numbers(0, 10), {.window = chunk}).collect().size(), 10u) << chunk;
    EXPECT_EQ(pool.map<square>(numbers(0, 10), {.chunk = chunk, .window = chunk}).collect().size(), 10u) << chunk;
  }
}

TEST_F(Map, RangesOfAllIntegerTypes) {
  EXPECT_EQ(pool.map<twice>(drover::range(-5, 5)).collect(),
            (std::vector<std::int64_t>{-10, -8, -6, -4, -2, 0, 2, 4, 6, 8}));
  const std::size_t n = 4;
  EXPECT_EQ(pool.map<square>(drover::range(0, n)).collect(), (std::vector<int>{0, 1, 4, 9}));
  EXPECT_EQ(pool.map<half>(drover::range(SIZE_MAX - 2, SIZE_MAX)).collect(),
            (std::vector<std::size_t>{SIZE_MAX / 2 - 1, SIZE_MAX / 2}));
  EXPECT_EQ(pool.map<twice>(drover::range(INT64_MIN / 2, INT64_MIN / 2 + 1)).collect(),
            (std::vector<std::int64_t>{INT64_MIN}));
  const auto tiny = drover::range(std::int8_t{-2}, std::int8_t{1});
  EXPECT_EQ(pool.map<square>(tiny).collect(), (std::vector<int>{4, 1, 0}));
}

TEST_F(Map, TakesVectorsStringsAndLists) {
  const std::vector<std::string> words = {"", "one", std::string(300, 'x'), std::string(5000, 'y')};
  std::vector<std::string> expected;
  for (const std::string& word : words) expected.push_back(word + "!");
  EXPECT_EQ(pool.map<louder>(words).collect(), expected);
  EXPECT_EQ(pool.map<length>(words).collect(), (std::vector<std::size_t>{0, 3, 300, 5000}));
  EXPECT_EQ(pool.map<length>(std::list<const char*>{"a", "bc"}).collect(), (std::vector<std::size_t>{1, 2}));
  EXPECT_EQ(pool.map<repeat>(drover::range(0, 300)).collect().back(), repeat(299));
}

TEST_F(Map, CarriesLargeInputsAndResults) {
  for (const std::size_t size : {27UL, 28UL, 1000UL, 9000UL, 200'000UL}) {  // doubles: up to 1.6 MB
    for (const bool ordered : {true, false}) {
      std::vector<std::vector<double>> inputs;
      for (int i = 0; i < 9; ++i) inputs.emplace_back(size, i);
      auto results = pool.map<scaled>(inputs, {.ordered = ordered, .chunk = 4});
      std::size_t count = 0;
      for (auto it = results.begin(); it != results.end(); ++it, ++count) {
        const std::vector<double> value = *it;
        ASSERT_EQ(value, std::vector<double>(size, 2.0 * static_cast<double>(it.index())));
      }
      EXPECT_EQ(count, 9u);
    }
  }
}

TEST_F(Map, CarriesFixedResultsOfEverySize) {
  EXPECT_EQ(pool.map<three>(drover::range(0, 3)).collect()[2], (std::array<double, 3>{2, 2.5, 2.75}));
  int i = 0;
  for (const auto& value : pool.map<ninety_six_kb>(drover::range(0, 20))) EXPECT_EQ(value.back(), i++);
  EXPECT_EQ(i, 20);
}

TEST_F(Map, CarriesFixedResultsLargerThanARing) {
  int i = 0;
  for (const auto& value : pool.map<larger_than_a_ring>(drover::range(0, 10))) EXPECT_EQ(value.back(), i++);
  EXPECT_EQ(i, 10);
}

TEST_F(Map, TakesMoveOnlyInputs) {
  std::vector<std::unique_ptr<int>> inputs;
  for (int i = 0; i < 100; ++i) inputs.push_back(std::make_unique<int>(i));
  EXPECT_EQ(pool.map<held>(inputs).collect(), numbers(0, 100));
  EXPECT_EQ(*inputs[7], 7) << "borrowed";
  EXPECT_EQ(pool.map<held>(std::move(inputs)).collect(), numbers(0, 100));
}

TEST_F(Map, SpreadsAnElementOverParameters) {
  const std::vector<std::pair<int, double>> inputs = {{1, 0.5}, {4, 0.25}, {6, 2}};
  EXPECT_EQ(pool.map<weighted>(inputs).collect(), (std::vector<double>{0.5, 1, 12}));
  const std::vector<std::tuple<short, float>> tuples = {{2, 1.5f}};
  EXPECT_EQ(pool.map<weighted>(tuples).collect(), (std::vector<double>{3}));
}

TEST_F(Map, AVoidFunctionGivesMonostates) {
  auto results = pool.map<nothing>(drover::range(0, 500));
  static_assert(std::is_same_v<decltype(results), drover::Results<std::monostate>>);
  EXPECT_EQ(results.collect().size(), 500u);
}

TEST_F(Map, AnInfiniteRangeIsReadNoFurtherThanTheWindow) {
  Naturals naturals;
  {
    auto results = pool.map<square>(naturals, {.window = 50});
    int expected = 0;
    for (const int value : results) {
      ASSERT_EQ(value, expected * expected);
      ASSERT_LE(naturals.next, expected + 52);  // one more may be read to see the end
      if (++expected == 3000) break;
    }
  }
  Naturals others;
  int seen = 0;
  for ([[maybe_unused]] const int value : pool.map<square>(others)) {
    if (++seen == 10) break;
  }
  EXPECT_LT(others.next, 20'000);
}

TEST_F(Map, ARangeThatThrowsEndsAfterAllBeforeIt) {
  for (const bool ordered : {true, false}) {
    auto results = pool.map<square>(Breaking{500}, {.ordered = ordered});
    int seen = 0;
    try {
      for ([[maybe_unused]] const int value : results) ++seen;
      FAIL() << "no exception";
    } catch (const std::domain_error& error) {
      EXPECT_STREQ(error.what(), "the input is broken here");
      EXPECT_EQ(drover::remote_trace(error), nullptr);
    }
    EXPECT_EQ(seen, 500);
    EXPECT_EQ(results.begin(), results.end());
  }
}

TEST_F(Map, ARangeThatThrowsAtOnceThrowsAtTheFirstLook) {
  auto results = pool.map<square>(Breaking{0});
  EXPECT_THROW(static_cast<void>(results.begin()), std::domain_error);
}

TEST_F(Map, AnErrorIsThrownAtItsItemAndTheRestCanBeRead) {
  for (const int chunk : {0, 1, 7}) {
    auto results = pool.map<throw_at_seven>(drover::range(0, 20), {.chunk = chunk});
    std::vector<int> got;
    int errors = 0;
    for (auto it = results.begin(); it != results.end(); ++it) {
      try {
        got.push_back(*it);
      } catch (const std::out_of_range& error) {
        EXPECT_EQ(it.index(), 7u);
        EXPECT_THROW(static_cast<void>(*it), std::out_of_range) << "again";
        ++errors;
      }
    }
    EXPECT_EQ(errors, 1);
    EXPECT_EQ(got.size(), 19u);
  }
}

TEST_F(Map, CollectThrowsTheFirstErrorAndGoesOnBehindIt) {
  auto results = pool.map<throw_at_seven>(drover::range(0, 20));
  EXPECT_THROW(static_cast<void>(results.collect()), std::out_of_range);
  EXPECT_EQ(results.collect(), numbers(8, 20));
  EXPECT_TRUE(results.collect().empty());
}

TEST_F(Map, AnotherLoopGoesOnWhereTheFirstWasLeft) {
  auto results = pool.map<square>(drover::range(0, 10));
  for (const int value : results) {
    if (value == 9) break;
  }
  EXPECT_EQ(results.collect(), (std::vector<int>{16, 25, 36, 49, 64, 81}));
}

TEST_F(Map, IndexedGivesPairs) {
  auto results = pool.map<repeat>(drover::range(0, 40), {.ordered = false});
  std::set<std::size_t> seen;
  for (auto&& [index, value] : results.indexed()) {
    EXPECT_EQ(value, repeat(static_cast<int>(index)));
    seen.insert(index);
  }
  EXPECT_EQ(seen.size(), 40u);
}

TEST_F(Map, ResultsCanBeMovedWhileTheyAreRead) {
  auto results = pool.map<square>(drover::range(0, 1000));
  EXPECT_EQ(*results.begin(), 0);
  drover::Results<int> moved = std::move(results);
  EXPECT_EQ(*moved.begin(), 1);
  drover::Results<int> other = pool.map<square>(drover::range(0, 3));
  other = std::move(moved);
  EXPECT_EQ(other.collect().size(), 998u);
}

TEST_F(Map, ResultsAreTheInputOfTheNextMap) {
  auto last = pool.map<louder>(pool.map<louder>(pool.map<repeat>(drover::range(0, 200))));
  int i = 0;
  for (const std::string& text : last) EXPECT_EQ(text, repeat(i++) + "!!");
  EXPECT_EQ(i, 200);
}

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

TEST_F(Map, OptionsTakeAllIntegerTypes) {
  const int i = 2;
  const long l = 3;
  const std::size_t s = 4;
  EXPECT_EQ(pool.map<square>(drover::range(0, 9), {.chunk = i, .window = l, .retries = s}).collect().size(), 9u);
  EXPECT_THROW(static_cast<void>(pool.map<square>(drover::range(0, 9), {.chunk = -1})), drover::InvalidArgument);
  EXPECT_THROW(static_cast<void>(pool.map<square>(drover::range(0, 9), {.timeout = -1s})), drover::InvalidArgument);
}

}  // namespace
