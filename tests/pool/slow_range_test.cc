// SPDX-License-Identifier: Apache-2.0
// Ranges of inputs that keep their reader waiting: what they have given must not wait with it.
#include <gtest/gtest.h>
#include <signal.h>

#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <utility>

#include "drover/drover.h"
#include "harness/deadline.h"
#include "harness/in_fork.h"
#include "pool/shared_counters.h"

using namespace std::chrono_literals;
using drover_test::Counter;
using drover_test::counters;
using drover_test::eventually;
using drover_test::SharedCounters;

namespace {

/// The inputs 0 to count - 1, each of which `make` is asked for first.
struct Slow {
  using Input = std::pair<std::string, int>;
  int count;
  std::function<Input(int)> make;

  struct Iterator {
    using value_type = Input;
    using difference_type = std::ptrdiff_t;
    const Slow* range;
    int i;
    Input operator*() const { return range->make(i); }
    Iterator& operator++() {
      ++i;
      return *this;
    }
    void operator++(int) { ++i; }
    bool operator==(std::default_sentinel_t) const { return i == range->count; }
  };
  Iterator begin() const { return {this, 0}; }
  std::default_sentinel_t end() const { return {}; }
};

constexpr int kHeld = 7;  // at most so many inputs wait with a range that was fast

/// Counts in [0].
int begun(const std::string& path, int value) {
  counters(path)[0].fetch_add(1);
  return value;
}

TEST(SlowRange, WorkersBeginWithWhatThereIs) {
  for (const bool ordered : {true, false}) {
    SharedCounters shared;
    drover::Pool pool({.workers = 2});
    int in_time = 0;
    const Slow inputs{12, [&](int i) {
                        // Each comes only when a worker has been seen at the one before.
                        in_time += eventually(5s, [&] { return shared[0] >= i; }) ? 1 : 0;
                        return Slow::Input(shared.path(), i);
                      }};
    EXPECT_EQ(pool.map<begun>(inputs, {.ordered = ordered}).collect().size(), 12u);
    EXPECT_EQ(in_time, 12) << ordered;
  }
}

TEST(SlowRange, ResultsComeBeforeItIsAskedOn) {
  SharedCounters shared;
  drover::Pool pool({.workers = 2});
  int asked = 0;
  const Slow inputs{40, [&](int i) {
                      ++asked;
                      if (i == 1) static_cast<void>(eventually(5s, [&] { return shared[0] >= 1; }));
                      std::this_thread::sleep_for(1ms);  // so slow it is
                      return Slow::Input(shared.path(), i);
                    }};
  auto results = pool.map<begun>(inputs, {.window = 30});
  auto at = results.begin();
  EXPECT_EQ(*at, 0);
  EXPECT_LT(asked, 25) << "the window was filled first";
  int expected = 0;
  for (; at != results.end(); ++at) EXPECT_EQ(*at, expected++);
  EXPECT_EQ(expected, 40);
}

/// It pauses, until workers are seen at what it gave or `patience` is over, before each of some inputs. At how many
/// pauses all but `held` of the inputs before had begun.
int pauses_with_few_held(const std::function<bool(int)>& pauses, int count, int held) {
  constexpr auto kPatience = 1s;
  SharedCounters shared;
  drover::Pool pool({.workers = 2});
  int in_time = 0;
  const Slow inputs{count, [&](int i) {
                      if (pauses(i)) in_time += eventually(kPatience, [&] { return shared[0] >= i - held; }) ? 1 : 0;
                      return Slow::Input(shared.path(), i);
                    }};
  EXPECT_EQ(pool.map<begun>(inputs, {.ordered = false}).collect().size(), static_cast<std::size_t>(count));
  return in_time;
}

TEST(SlowRange, PausesBetweenBurstsKeepFewInputsBack) {
  EXPECT_EQ(pauses_with_few_held([](int i) { return i != 0 && i % 100 == 0; }, 500, kHeld), 4);
  EXPECT_EQ(pauses_with_few_held([](int i) { return i != 0 && i % 1000 == 0; }, 4000, kHeld), 3);
}

TEST(SlowRange, OneThatWasFastKeepsFewInputsBackAndOnlyOnce) {
  const auto slow_from_200 = [](int i) { return i >= 200; };
  EXPECT_EQ(pauses_with_few_held(slow_from_200, 210, kHeld), 10);
  // The first pause lets go of what was held.
  EXPECT_GE(pauses_with_few_held(slow_from_200, 210, 0), 10 - kHeld);
}

TEST(SlowRange, AnInterruptEndsItBeforeTheWindowIsFull) {
  int asked = 0;
  const int result = drover_test::in_fork([&] {
    SharedCounters shared;
    drover::Pool pool({.workers = 2});
    const Slow endless{-1, [&](int i) {
                         if (++asked == 3) raise(SIGINT);
                         return Slow::Input(shared.path(), i);
                       }};
    try {
      for (const int value : pool.map<begun>(endless, {.window = 1000})) static_cast<void>(value);
    } catch (const drover::Interrupted&) {
      return asked;
    }
    return 0;
  });
  EXPECT_EQ(result, 3);
}

TEST(SlowRange, AChunkOfTheUsersIsFilled) {
  SharedCounters shared;
  drover::Pool pool({.workers = 2});
  const Slow inputs{30, [&](int i) {
                      if (i % 7 == 0) std::this_thread::sleep_for(1ms);
                      return Slow::Input(shared.path(), i);
                    }};
  int expected = 0;
  for (const int value : pool.map<begun>(inputs, {.chunk = 3})) EXPECT_EQ(value, expected++);
  EXPECT_EQ(expected, 30);
}

TEST(SlowRange, OneThatIsNowFastNowSlowLosesNothing) {
  SharedCounters shared;
  drover::Pool pool({.workers = 3});
  const Slow inputs{3000, [&](int i) {
                      if (i % 500 > 495) std::this_thread::sleep_for(5ms);
                      return Slow::Input(shared.path(), i);
                    }};
  int expected = 0;
  for (const int value : pool.map<begun>(inputs)) ASSERT_EQ(value, expected++);
  EXPECT_EQ(expected, 3000);
}

}  // namespace
