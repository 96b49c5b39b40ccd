// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <iostream>

#include "health/fuzz_targets.h"

namespace {

using drover_test::FuzzTarget;
using Clock = std::chrono::steady_clock;

/// DROVER_FUZZ_SEED: the first seed, each round has the next one. DROVER_FUZZ_SECONDS: for so long each, instead of a
/// fixed number of rounds. DROVER_FUZZ_TRACE: tells each seed before it is tried, for crashes.
double setting(const char* name, double otherwise) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::strtod(text, nullptr) : otherwise;
}

constexpr int kRounds = 30'000;

class EachParser : public testing::TestWithParam<FuzzTarget> {};

TEST_P(EachParser, TakesAnyBytes) {
  const FuzzTarget& target = GetParam();
  const auto first = static_cast<std::uint64_t>(setting("DROVER_FUZZ_SEED", 20240607));
  const double seconds = setting("DROVER_FUZZ_SECONDS", 0);
  const bool trace = std::getenv("DROVER_FUZZ_TRACE") != nullptr;
  const auto begin = Clock::now();
  const auto more = [&](std::uint64_t rounds) {
    if (seconds <= 0) return rounds < kRounds;
    return std::chrono::duration<double>(Clock::now() - begin).count() < seconds;
  };
  std::uint64_t seed = first;
  for (; more(seed - first); ++seed) {
    if (trace) std::cerr << "seed " << seed << "\n";
    std::mt19937_64 random(seed);
    const std::string text = drover_test::mutated(target.seeds[random() % target.seeds.size()], random);
    const std::string wrong = target.run(text);
    ASSERT_EQ(wrong, "") << "DROVER_FUZZ_SEED=" << seed << " shows it; the text:\n" << testing::PrintToString(text);
  }
  std::cout << target.name << ": seeds " << first << " to " << seed - 1 << "\n";
}

TEST_P(EachParser, TakesItsOwnTexts) {
  for (const std::string& text : GetParam().seeds) EXPECT_EQ(GetParam().run(text), "");
  EXPECT_EQ(GetParam().run(""), "");
}

INSTANTIATE_TEST_SUITE_P(Fuzz, EachParser, testing::ValuesIn(drover_test::fuzz_targets()), [](const auto& one) {
  std::string name = one.param.name;
  for (char& c : name) c = c == ' ' ? '_' : c;
  return name;
});

}  // namespace
