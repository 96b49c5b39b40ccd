// SPDX-License-Identifier: Apache-2.0
#include "drover/array/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace {

using Words = std::array<std::uint32_t, 4>;

TEST(Philox, GivesTheNumbersOfItsAuthors) {  // kat_vectors of Random123
  EXPECT_EQ(drover::philox4x32({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(drover::philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(drover::philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

/// What the header says, in long double, from the bits that philox4x32 gives.
std::pair<long double, long double> pair_by_definition(std::uint64_t seed, std::uint64_t pair) {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto bits = drover::philox4x32({low(pair), low(pair >> 32U), 0, 0}, {low(seed), low(seed >> 32U)});
  const std::uint64_t a = (std::uint64_t{bits[1]} << 32U | bits[0]) >> 12U;
  const std::uint64_t b = (std::uint64_t{bits[3]} << 32U | bits[2]) >> 12U;
  const long double u = 1 - static_cast<long double>(a) * 0x1p-52L, v = static_cast<long double>(b) * 0x1p-52L;
  const long double radius = std::sqrt(-2 * std::log(u)), angle = 2 * std::numbers::pi_v<long double> * v;
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

TEST(NormalNumbers, AreThoseOfTheDefinition) {
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{7}, ~std::uint64_t{0}}) {
    for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{1} << 40U}) {
      std::vector<double> numbers(20'000);
      drover::normal_numbers(seed, first, numbers);
      for (std::size_t i = 0; i < numbers.size(); i += 2) {
        const auto [x, y] = pair_by_definition(seed, (first + i) / 2);
        ASSERT_NEAR(numbers[i], static_cast<double>(x), 4e-15) << seed << " " << first + i;
        ASSERT_NEAR(numbers[i + 1], static_cast<double>(y), 4e-15) << seed << " " << first + i + 1;
      }
    }
  }
}

TEST(NormalNumbers, AreTheSameInWhateverPieces) {
  std::vector<double> all(3'000);
  drover::normal_numbers(3, 10, all);
  for (const std::size_t size : {1, 2, 3, 7, 255, 256, 257, 511}) {
    std::vector<double> pieces(all.size());
    for (std::size_t from = 0; from < pieces.size(); from += size) {
      drover::normal_numbers(3, 10 + from, std::span(pieces).subspan(from, std::min(size, pieces.size() - from)));
    }
    EXPECT_EQ(pieces, all) << size;
  }
  drover::normal_numbers(3, 0, {});
}

TEST(NormalNumbers, AreNormal) {
  std::vector<double> numbers(4'000'000);
  drover::normal_numbers(42, 0, numbers);
  const auto n = static_cast<double>(numbers.size());
  double moments[5] = {}, inside = 0;
  for (const double x : numbers) {
    double power = 1;
    for (double& moment : moments) moment += power / n, power *= x;
    inside += std::fabs(x) < 1 ? 1 / n : 0;
  }
  const double sigma = 1 / std::sqrt(n);  // five of them: one seed in a million would fail, and this one is fixed
  EXPECT_NEAR(moments[1], 0, 5 * sigma);
  EXPECT_NEAR(moments[2], 1, 5 * std::sqrt(2) * sigma);
  EXPECT_NEAR(moments[3], 0, 5 * std::sqrt(15) * sigma);
  EXPECT_NEAR(moments[4], 3, 5 * std::sqrt(96) * sigma);
  EXPECT_NEAR(inside, std::erf(1 / std::numbers::sqrt2), 5 * 0.466 * sigma);
}

}  // namespace
