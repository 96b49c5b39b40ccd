// SPDX-License-Identifier: Apache-2.0
#include "drover/pool/range_pace.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

using namespace std::chrono_literals;
using drover::detail::RangePace;
using Clock = std::chrono::steady_clock;

namespace {

/// One input that takes at least so long, by a spin that is exact to some microseconds; longer when the machine is
/// busy.
Clock::duration give(RangePace& pace, Clock::duration at_least) {
  const auto begin = Clock::now();
  pace.begin();
  while (Clock::now() - begin < at_least) {
  }
  pace.note();
  return Clock::now() - begin;
}

/// So many inputs in a row that take no time; again until the machine has let them.
RangePace proven() {
  for (;;) {
    RangePace pace;
    pace.begin();
    for (int i = 0; i < 64; ++i) pace.note();
    if (!pace.note()) return pace;  // a fast one says nothing for some inputs
  }
}

TEST(RangePace, ANewOnePublishesEachInput) {
  RangePace pace;
  pace.begin();
  for (int i = 0; i < 64; ++i) EXPECT_TRUE(pace.note()) << i;
}

TEST(RangePace, AFastOnePublishesEachEighthInput) {
  RangePace pace = proven();
  int silent = 1;  // the first after its proof
  for (; silent < 100 && !pace.note(); ++silent) {
  }
  EXPECT_EQ(silent, 7);
}

TEST(RangePace, InputsOfSomeMicrosecondsAreNotSlow) {
  for (int tried = 0; tried < 100; ++tried) {
    RangePace pace;
    if (give(pace, 300us) >= 2ms) continue;  // the machine was busy elsewhere
    EXPECT_FALSE(pace.slow());
    return;
  }
  GTEST_SKIP() << "this machine takes 2 ms for 0.3 ms each time";
}

TEST(RangePace, OneThatHasKeptUsWaitingIsSlowForAWhile) {
  RangePace pace;
  give(pace, 3ms);
  EXPECT_TRUE(pace.slow());
  int inputs = 0;
  for (; inputs < 100'000 && pace.slow(); ++inputs) give(pace, 60us);  // not prompt, so it is never proven
  EXPECT_FALSE(pace.slow());
  EXPECT_GE(inputs, 64);
}

TEST(RangePace, AFastOneThatPausesIsSlowWithinEightInputs) {
  RangePace pace = proven();
  pace.begin();
  std::this_thread::sleep_for(50ms);
  int inputs = 1;
  for (; inputs < 100 && !pace.note(); ++inputs) {
  }
  EXPECT_LE(inputs, 8);
  EXPECT_TRUE(pace.slow());
}

}  // namespace
