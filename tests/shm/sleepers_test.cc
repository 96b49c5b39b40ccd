// SPDX-License-Identifier: Apache-2.0
#include "drover/shm/sleepers.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace drover::shm {
namespace {

constexpr auto kNobody = WorkerMask::kMaxWorkers;

TEST(WorkerMask, HasNobodyAtFirst) {
  const auto mask = std::make_unique<WorkerMask>();
  EXPECT_EQ(mask->take_any(WorkerMask::kMaxWorkers), kNobody);
  EXPECT_EQ(mask->count(WorkerMask::kMaxWorkers), 0u);
  EXPECT_FALSE(mask->take(0));
}

TEST(WorkerMask, ABitIsTakenOnce) {
  const auto mask = std::make_unique<WorkerMask>();
  for (const std::size_t worker : {0, 1, 63, 64, 65, 500, 1023}) {
    mask->set(worker);
    EXPECT_EQ(mask->count(WorkerMask::kMaxWorkers), 1u);
    EXPECT_TRUE(mask->take(worker));
    EXPECT_FALSE(mask->take(worker));
  }
}

TEST(WorkerMask, TakesEveryBitOfAllWords) {
  const auto mask = std::make_unique<WorkerMask>();
  for (std::size_t i = 0; i < WorkerMask::kMaxWorkers; ++i) mask->set(i);
  EXPECT_EQ(mask->count(WorkerMask::kMaxWorkers), WorkerMask::kMaxWorkers);
  std::vector<bool> seen(WorkerMask::kMaxWorkers);
  for (std::size_t i = 0; i < WorkerMask::kMaxWorkers; ++i) {
    const std::size_t worker = mask->take_any(WorkerMask::kMaxWorkers);
    ASSERT_LT(worker, seen.size());
    EXPECT_FALSE(seen[worker]);
    seen[worker] = true;
  }
  EXPECT_EQ(mask->take_any(WorkerMask::kMaxWorkers), kNobody);
}

TEST(WorkerMask, TakesOneBitPerSetWithThreads) {
  const auto mask = std::make_unique<WorkerMask>();
  constexpr int kRounds = 20'000;
  std::atomic<int> taken{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> takers;
  for (int i = 0; i < 2; ++i) {
    takers.emplace_back([&] {
      while (!stop) {
        if (mask->take_any(128) != kNobody) ++taken;
      }
      while (mask->take_any(128) != kNobody) ++taken;
    });
  }
  int set = 0, own = 0;
  for (int i = 0; i < kRounds; ++i) {
    mask->set(static_cast<std::size_t>(i) % 128);
    ++set;
    if (mask->take(static_cast<std::size_t>(i) % 128)) ++own;
  }
  stop = true;
  for (std::thread& taker : takers) taker.join();
  EXPECT_EQ(taken + own, set);
}

TEST(Doorbell, NobodyIsWantedWhenNobodySleeps) {
  Doorbell bell{};
  EXPECT_EQ(bell.wanted(), 0u);
  EXPECT_EQ(bell.hint(), 0u);
  bell.prepare(77);
  EXPECT_EQ(bell.wanted(), 77u);
  bell.cancel();
  EXPECT_EQ(bell.wanted(), 0u);
}

TEST(Doorbell, OneRingServesOneSleep) {
  Doorbell bell{};
  const std::uint32_t seen = bell.prepare(1);
  bell.ring();
  EXPECT_EQ(bell.wanted(), 0u);
  EXPECT_EQ(bell.wait(seen, {}), os::FutexWait::kWoken) << "the ring came before the wait";
}

TEST(Doorbell, AWaitWithoutARingTimesOut) {
  Doorbell bell{};
  const std::uint32_t seen = bell.prepare(1);
  EXPECT_EQ(bell.wait(seen, std::chrono::steady_clock::now() + std::chrono::milliseconds(5)), os::FutexWait::kTimedOut);
}

TEST(Doorbell, RingAnywayEndsTheSleepThatAWorkerHadPromisedToEnd) {
  Doorbell bell{};
  const std::uint32_t seen = bell.prepare(1);
  std::thread parent([&] { bell.ring_anyway(); });
  EXPECT_EQ(bell.wait(seen, {}), os::FutexWait::kWoken);
  parent.join();
}

TEST(DoorbellThreads, NoWakeUpIsLost) {
  Doorbell bell{};
  constexpr std::uint32_t kItems = 30'000;
  std::atomic<std::uint32_t> published{0}, consumed{0};
  std::thread worker([&] {
    for (std::uint32_t i = 1; i <= kItems; ++i) {
      while (i % 4 == 0 && consumed.load(std::memory_order_relaxed) + 4 < i) std::this_thread::yield();
      published.store(i, std::memory_order_release);
      if (bell.wanted() != 0) bell.ring();
    }
  });
  for (std::uint32_t have = 0; have < kItems;) {
    if (published.load(std::memory_order_acquire) == have) {
      const std::uint32_t seen = bell.prepare(1);
      if (published.load(std::memory_order_acquire) == have) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        ASSERT_EQ(bell.wait(seen, end), os::FutexWait::kWoken) << "asleep at " << have;
      }
      bell.cancel();
    }
    have = published.load(std::memory_order_acquire);
    consumed.store(have, std::memory_order_relaxed);
  }
  worker.join();
}

/// What WorkerLoop::sleep and Crew::wake do, as threads.
TEST(WorkerMaskThreads, NoSleeperMissesItsWork) {
  const auto parked = std::make_unique<WorkerMask>();
  std::array<os::FutexWord, 2> wake{};
  std::atomic<std::uint32_t> offered{0}, taken{0};
  constexpr std::uint32_t kTasks = 20'000;
  const auto wake_one = [&](std::size_t worker) {
    wake[worker].fetch_add(1, std::memory_order_release);
    os::futex_wake(wake[worker]);
  };
  const auto take = [&] {
    std::uint32_t seen = taken.load();
    while (seen < offered.load(std::memory_order_acquire)) {
      if (taken.compare_exchange_weak(seen, seen + 1)) return true;
    }
    return false;
  };
  std::vector<std::thread> workers;
  for (std::size_t me = 0; me < 2; ++me) {
    workers.emplace_back([&, me] {
      while (taken.load() < kTasks) {
        if (take()) continue;
        const std::uint32_t seen = wake[me].load(std::memory_order_acquire);
        parked->set(me);
        const bool work = taken.load() < offered.load(std::memory_order_acquire) || taken.load() == kTasks;
        if (!work) os::futex_wait(wake[me], seen);
        parked->take(me);
      }
      wake_one(1 - me);
    });
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (std::uint32_t i = 1; i <= kTasks; ++i) {
    offered.store(i, std::memory_order_release);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (const std::size_t worker = parked->take_any(2); worker != kNobody) wake_one(worker);
    while (i % 2 == 0 && taken.load() + 1 < i && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  }
  while (taken.load() < kTasks && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_EQ(taken.load(), kTasks) << "a worker sleeps beside its work";
  taken = kTasks;
  for (std::size_t i = 0; i < 2; ++i) wake_one(i);
  for (std::thread& worker : workers) worker.join();
}

}  // namespace
}  // namespace drover::shm
