// SPDX-License-Identifier: Apache-2.0
#include "drover/cli/montecarlo.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace {

using drover::cli::sum_by_terms;
using drover::cli::sum_in_closed_form;

/// The definition, in more digits than the kernel has.
long double reference(std::int64_t seed, std::int64_t iterations) {
  long double sum = 0;
  for (std::int64_t i = 1; i < iterations; ++i) {
    sum += std::sin(static_cast<long double>(seed * i)) * std::cos(static_cast<long double>(i));
  }
  return sum;
}

// 0; 1, where s - 1 = 0 has no denominator; 2; 44, as 44 = 14 pi + 0.018; 709 and 711, as 710 = 226 pi + 0.00006, so
// that the denominator is almost 0 and the partial sums are large; their multiples; the last of the demo and beyond.
const std::vector<std::int64_t> kSeeds{0, 1, 2, 3, 43, 45, 354, 355, 356, 709, 710, 711, 1419, 2131, 49'999, 50'000};

TEST(MonteCarlo, ClosedFormAgreesWithTheSumForShortSums) {
  for (std::int64_t seed = 0; seed <= 2'000; ++seed) {
    for (const std::int64_t iterations : {1, 2, 3, 10, 100}) {
      EXPECT_NEAR(static_cast<double>(sum_in_closed_form(seed, iterations) - reference(seed, iterations)), 0, 1e-15)
          << "seed " << seed << ", iterations " << iterations;
    }
  }
}

TEST(MonteCarlo, ClosedFormAgreesWithTheSumAtFullLength) {
  for (const std::int64_t seed : kSeeds) {
    EXPECT_NEAR(static_cast<double>(sum_in_closed_form(seed, 100'000) - reference(seed, 100'000)), 0, 1e-12)
        << "seed " << seed;
  }
}

TEST(MonteCarlo, OneIterationIsAnEmptySum) {
  for (const std::int64_t seed : kSeeds) {
    EXPECT_EQ(sum_by_terms(seed, 1), 0) << "seed " << seed;
    EXPECT_NEAR(static_cast<double>(sum_in_closed_form(seed, 1)), 0, 1e-18) << "seed " << seed;
  }
}

TEST(MonteCarlo, SeedZeroIsZero) {
  EXPECT_EQ(sum_by_terms(0, 100'000), 0);
  EXPECT_EQ(sum_in_closed_form(0, 100'000), 0);
}

TEST(MonteCarlo, KernelIsRightToFarBetterThanTheDemoAllows) {
  for (const std::int64_t seed : kSeeds) {
    EXPECT_NEAR(static_cast<double>(sum_by_terms(seed, 100'000) - sum_in_closed_form(seed, 100'000)), 0, 2e-13)
        << "seed " << seed;
  }
}

TEST(MonteCarlo, KernelIsRightAllAlongTheSeeds) {
  for (std::int64_t seed = 0; seed <= 50'000; seed += 101) {
    EXPECT_NEAR(static_cast<double>(sum_by_terms(seed, 10'000) - sum_in_closed_form(seed, 10'000)), 0, 1e-13)
        << "seed " << seed;
  }
}

}  // namespace
