// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

#include "drover/sync/barrier.h"
#include "drover/sync/event.h"
#include "drover/sync/semaphore.h"
#include "drover/sync/shared_value.h"
#include "harness/deadline.h"

namespace drover {
namespace {

using namespace std::chrono_literals;

TEST(Semaphore, CountsPermits) {
  Semaphore semaphore(2);
  semaphore.acquire();
  EXPECT_TRUE(semaphore.try_acquire());
  EXPECT_EQ(semaphore.available(), 0U);
  EXPECT_FALSE(semaphore.try_acquire());
  EXPECT_FALSE(semaphore.try_acquire_for(5ms));
  semaphore.release();
  EXPECT_EQ(semaphore.available(), 1U);
  EXPECT_TRUE(semaphore.try_acquire_for(1s));
  semaphore.release(2);
  EXPECT_EQ(semaphore.available(), 2U);
}

TEST(Semaphore, ReleasingMoreThanIsHeldMakesNewPermits) {
  for (const bool return_permits : {true, false}) {
    Semaphore semaphore(0, {.return_permits = return_permits});
    EXPECT_FALSE(semaphore.try_acquire());
    semaphore.release(3);
    EXPECT_EQ(semaphore.available(), 3U);
    semaphore.acquire();
    semaphore.release(2);
    EXPECT_EQ(semaphore.available(), 4U);
  }
}

TEST(SemaphoreThreads, NeverGivesMorePermitsThanThereAre) {
  for (const bool return_permits : {true, false}) {
    Semaphore semaphore(2, {.return_permits = return_permits});
    std::atomic<int> inside{0}, wrong{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int n = 0; n < 1000; ++n) {
          semaphore.acquire();
          if (++inside > 2) ++wrong;
          --inside;
          semaphore.release();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(semaphore.available(), 2U);
  }
}

TEST(Event, IsSetAndCleared) {
  Event event;
  EXPECT_FALSE(event.is_set());
  EXPECT_FALSE(event.wait_for(5ms));
  event.set();
  event.set();
  EXPECT_TRUE(event.is_set());
  event.wait();
  EXPECT_TRUE(event.wait_for(0s));
  event.clear();
  EXPECT_FALSE(event.is_set());
}

TEST(EventThreads, WhoWaitsSeesASetThatIsClearedAtOnce) {
  Event event, back;
  constexpr int kRounds = 2000;
  std::atomic<int> waits{0};
  std::thread waiter([&] {
    for (int i = 0; i < kRounds; ++i) {
      ++waits;
      event.wait();
      event.clear();
      back.set();
    }
  });
  for (int i = 0; i < kRounds; ++i) {
    while (waits != i + 1) std::this_thread::yield();
    event.set();
    ASSERT_TRUE(back.wait_for(20s));
    back.clear();
  }
  waiter.join();
}

TEST(Barrier, OpensWhenAllHaveArrived) {
  Barrier barrier(3);
  EXPECT_EQ(barrier.parties(), 3U);
  constexpr int kRounds = 500;
  std::array<std::atomic<int>, 3> round{};
  std::atomic<int> wrong{0};
  const auto play = [&](std::size_t me) {
    for (int i = 1; i <= kRounds; ++i) {
      round[me] = i;
      barrier.arrive_and_wait();
      for (const auto& other : round) wrong += other == i || other == i + 1 ? 0 : 1;
    }
  };
  std::thread a(play, 0), b(play, 1);
  play(2);
  a.join();
  b.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Barrier, WhoGivesUpCountsAsNotArrived) {
  Barrier barrier(2);
  EXPECT_FALSE(barrier.wait_for(5ms));
  EXPECT_FALSE(barrier.wait_for(5ms));
  std::thread other([&] { barrier.arrive_and_wait(); });
  EXPECT_TRUE(barrier.wait_for(20s));
  other.join();
}

TEST(Barrier, IsWatchedOnceHoweverManyHandlesThereAre) {
  const Barrier barrier(1);
  std::vector<Barrier> handles;
  for (int i = 0; i < 1000; ++i) handles.push_back(Barrier::adopt(barrier.block()));
  handles.back().arrive_and_wait();
}

TEST(Barrier, OpensAgainAndAgain) {
  Barrier barrier(3);
  std::atomic<int> sum{0};
  const auto meet = [&] {
    for (int round = 0; round < 500; ++round) {
      ++sum;
      barrier.arrive_and_wait();
      EXPECT_EQ(sum.load(), 3 * (round + 1));
      barrier.arrive_and_wait();
    }
  };
  std::thread a(meet), b(meet);
  meet();
  a.join();
  b.join();
}

TEST(Barrier, AResetSendsAwayWhoWaits) {
  Barrier barrier(2);
  std::atomic<bool> cancelled{false};
  std::thread other([&] {
    try {
      barrier.arrive_and_wait();
    } catch (const Cancelled&) {
      cancelled = true;
    }
  });
  EXPECT_TRUE(drover_test::eventually(20s, [&] {
    barrier.reset();
    return cancelled.load();
  }));
  other.join();
  EXPECT_THROW(Barrier(0), InvalidArgument);
}

struct Wide {
  double values[6];
  bool operator==(const Wide& other) const { return std::equal(values, values + 6, other.values); }
};
struct Small {
  std::int16_t a;
  std::int32_t b;
};

TEST(SharedValue, HoldsAnything) {
  SharedValue<int> number(41);
  EXPECT_EQ(number.fetch_add(1), 41);
  EXPECT_EQ(number.load(), 42);
  EXPECT_EQ(number.update([](int n) { return n * 2; }), 84);
  number.store(-1);
  EXPECT_EQ(number.fetch_add(-1), -1);
  EXPECT_EQ(number.load(), -2);

  SharedValue<std::uint64_t> large;
  EXPECT_EQ(large.fetch_add(5), 0U);
  EXPECT_EQ(large.load(), 5U);
  SharedValue<std::uint8_t> byte(250);
  EXPECT_EQ(byte.fetch_add(10), 250);
  EXPECT_EQ(byte.load(), 4);

  SharedValue<Small> small(Small{1, 2});
  small.update([](Small value) { return Small{value.a, value.b + 1}; });
  EXPECT_EQ(small.load().b, 3);

  SharedValue<Wide> wide(Wide{{1, 2, 3, 4, 5, 6}});
  EXPECT_EQ(wide.load(), (Wide{{1, 2, 3, 4, 5, 6}}));
  wide.store(Wide{{6}});
  EXPECT_EQ(wide.load(), (Wide{{6}}));
  EXPECT_EQ(wide.update([](Wide value) {
    value.values[5] = value.values[0];
    return value;
  }),
            (Wide{{6, 0, 0, 0, 0, 6}}));
}

TEST(SharedValue, AnUpdateThatThrowsChangesNothing) {
  SharedValue<Wide> wide(Wide{{1}});
  EXPECT_THROW(wide.update([](const Wide&) -> Wide { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_THROW(wide.update([&](const Wide&) { return wide.update([](Wide value) { return value; }); }),
               std::system_error);
  EXPECT_EQ(wide.load(), (Wide{{1}}));
  wide.store(Wide{{2}});
  EXPECT_EQ(wide.load(), (Wide{{2}}));
}

bool is_whole(const Wide& value) {
  return std::all_of(value.values, value.values + 6, [&](double item) { return item == value.values[0]; });
}

TEST(SharedValueThreads, NoValueIsReadHalf) {
  ASSERT_TRUE(is_whole(Wide{{1, 1, 1, 1, 1, 1}}));
  ASSERT_FALSE(is_whole(Wide{{1, 1, 1, 2, 2, 2}})) << "the checker finds nothing";
  SharedValue<Wide> value;
  constexpr int kUpdates = 20'000;
  std::atomic<int> wrong{0};
  const auto write = [&] {
    for (int i = 0; i < kUpdates; ++i) {
      value.update([](Wide next) {
        for (double& item : next.values) ++item;
        return next;
      });
    }
  };
  std::atomic<bool> stop{false};
  std::thread a(write), b(write), reader([&] {
    while (!stop) wrong += is_whole(value.load()) ? 0 : 1;
  });
  a.join();
  b.join();
  stop = true;
  reader.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(value.load().values[3], 2 * kUpdates);
}

TEST(SharedValueThreads, NoSmallUpdateIsLost) {
  SharedValue<int> value;
  SharedValue<std::int64_t> sum;
  const auto count = [&] {
    for (int i = 0; i < 20'000; ++i) {
      value.update([](int n) { return n + 1; });
      sum.fetch_add(2);
    }
  };
  std::thread other(count);
  count();
  other.join();
  EXPECT_EQ(value.load(), 40'000);
  EXPECT_EQ(sum.load(), 80'000);
}

}  // namespace
}  // namespace drover
