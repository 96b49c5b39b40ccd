// SPDX-License-Identifier: Apache-2.0
#include "drover/cli/progress.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <string>

#include "drover/cli/text.h"

namespace {

using drover::cli::bar_line;
using drover::cli::Reached;

constexpr Reached kHalf{25'000, 50'000, 20};

TEST(BarLine, FillsTheLineButForTheLastColumn) {
  EXPECT_EQ(bar_line(kHalf, 80), "[==================>                  ] 50 %  0:20 left  1,250/s  25,000/50,000");
  for (const std::size_t columns : {40, 60, 80, 200}) EXPECT_EQ(bar_line(kHalf, columns).size(), columns - 1);
}

TEST(BarLine, LeavesOutWhatDoesNotFit) {
  EXPECT_EQ(bar_line(kHalf, 40), "[======>     ] 50 %  0:20 left  1,250/s");
  EXPECT_EQ(bar_line(kHalf, 30), "50 %  0:20 left  1,250/s");
  EXPECT_EQ(bar_line(kHalf, 20), "50 %  0:20 left");
  EXPECT_EQ(bar_line(kHalf, 10), "50 %");
}

TEST(BarLine, NeverOverrunsWhateverTheWidth) {
  constexpr std::int64_t kTotal = 1'000'000'000;
  for (std::size_t columns = 0; columns <= 200; ++columns) {
    for (const std::int64_t done : {std::int64_t{0}, std::int64_t{1}, kTotal / 3, kTotal}) {
      for (const double seconds : {0.0, 1e-9, 1.0, 1e9}) {
        EXPECT_LE(bar_line({done, kTotal, seconds}, columns).size(), columns < 2 ? 1 : columns - 1);
      }
    }
  }
}

TEST(BarLine, KnowsNoEndBeforeTheFirstResult) {
  EXPECT_NE(bar_line({0, 10, 5}, 80).find("0 %  ? left  0/s"), std::string::npos);
}

TEST(BarLine, IsFullAtTheEnd) { EXPECT_EQ(bar_line({10, 10, 5}, 80).find('>'), std::string::npos); }

TEST(LogLine, SaysTheSameInWords) {
  EXPECT_EQ(drover::cli::log_line(kHalf, "samples"), "25,000 of 50,000 samples, 1,250/s, 0:20 left");
}

TEST(Progress, InAFileIsALineAtEachStepAndAtTheEnd) {
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  {
    drover::cli::Progress progress(file, 7, 3, "things");
    for (int i = 0; i < 7; ++i) progress.advance();
  }
  std::rewind(file);
  std::string text(1'000, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  EXPECT_EQ(text.find("3 of 7 things"), 0u);
  EXPECT_NE(text.find("\n6 of 7 things"), std::string::npos);
  EXPECT_NE(text.find("\n7 of 7 things"), std::string::npos);
  EXPECT_EQ(text.find('\r'), std::string::npos);
}

TEST(Text, GroupsDigits) {
  EXPECT_EQ(drover::cli::grouped(0), "0");
  EXPECT_EQ(drover::cli::grouped(999), "999");
  EXPECT_EQ(drover::cli::grouped(1'000), "1,000");
  EXPECT_EQ(drover::cli::grouped(-123'456), "-123,456");
  EXPECT_EQ(drover::cli::grouped(1'234'567), "1,234,567");
}

TEST(Text, KeepsThreeDigitsOfSlowRates) {
  EXPECT_EQ(drover::cli::rate_text(0.04567), "0.0457");
  EXPECT_EQ(drover::cli::rate_text(99.9), "99.9");
  EXPECT_EQ(drover::cli::rate_text(99.96), "100");
  EXPECT_EQ(drover::cli::rate_text(1'420.4), "1,420");
}

TEST(Text, ShowsTimeAsAClock) {
  EXPECT_EQ(drover::cli::clock_text(0), "0:00");
  EXPECT_EQ(drover::cli::clock_text(31.2), "0:32");
  EXPECT_EQ(drover::cli::clock_text(725), "12:05");
  EXPECT_EQ(drover::cli::clock_text(3'599.5), "1:00:00");
  EXPECT_EQ(drover::cli::clock_text(3'725), "1:02:05");
  EXPECT_EQ(drover::cli::clock_text(1e12), "?");
}

}  // namespace
