// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <list>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "drover/drover.h"
#include "harness/deadline.h"
#include "pool/map_functions.h"
#include "pool/shared_counters.h"

using namespace std::chrono_literals;
using namespace map_test;
using drover_test::SharedCounters;

namespace {

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

}  // namespace
