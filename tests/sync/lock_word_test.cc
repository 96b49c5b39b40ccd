// SPDX-License-Identifier: Apache-2.0
#include "drover/sync/lock_word.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "harness/deadline.h"

namespace drover::sync {
namespace {

using std::chrono::milliseconds;

std::unique_ptr<LockWord> new_word() {
  auto word = std::make_unique<LockWord>();
  word->join();
  return word;
}

os::Deadline in(milliseconds time) { return std::chrono::steady_clock::now() + time; }

TEST(LockWord, IsTakenAndGivenBack) {
  const auto word = new_word();
  EXPECT_TRUE(word->is_free());
  EXPECT_EQ(word->lock(), Lock::kLocked);
  EXPECT_TRUE(word->is_mine());
  EXPECT_FALSE(word->is_free());
  EXPECT_TRUE(word->unlock());
  EXPECT_TRUE(word->is_free());
  EXPECT_EQ(word->try_lock(), Lock::kLocked);
  EXPECT_TRUE(word->unlock());
}

TEST(LockWord, TellsTheHolderThatItHoldsIt) {
  const auto word = new_word();
  ASSERT_EQ(word->lock(), Lock::kLocked);
  EXPECT_EQ(word->lock(), Lock::kRelocked);
  EXPECT_EQ(word->lock({.deadline = in(milliseconds(1))}), Lock::kRelocked);
  EXPECT_EQ(word->try_lock(), Lock::kTimedOut);
  EXPECT_TRUE(word->unlock());
}

TEST(LockWord, OnlyTheHolderUnlocks) {
  const auto word = new_word();
  EXPECT_FALSE(word->unlock());
  ASSERT_EQ(word->lock(), Lock::kLocked);
  std::thread([&] {
    EXPECT_FALSE(word->unlock());
    EXPECT_FALSE(word->is_mine());
    EXPECT_EQ(word->try_lock(), Lock::kTimedOut);
    EXPECT_EQ(word->lock({.deadline = in(milliseconds(30))}), Lock::kTimedOut);
  }).join();
  EXPECT_TRUE(word->unlock());
}

/// Takes the word and ends without giving it back.
void die_with(LockWord& word, LockWord::Manner manner) {
  std::thread([&] { EXPECT_EQ(word.lock({.manner = manner}), Lock::kLocked); }).join();
}

TEST(LockWord, GoesOverFromADeadThreadOnce) {
  const auto word = new_word();
  die_with(*word, LockWord::Manner::kGuards);
  os::ThreadId dead = 0;
  EXPECT_EQ(word->lock({.deadline = in(milliseconds(2000)), .dead = &dead}), Lock::kOwnerDied);
  EXPECT_NE(dead, 0U);
  EXPECT_TRUE(word->unlock());
  EXPECT_EQ(word->lock(), Lock::kLocked);
  EXPECT_TRUE(word->unlock());
}

TEST(LockWord, TryLockFindsADeadHolderToo) {
  const auto word = new_word();
  die_with(*word, LockWord::Manner::kGuards);
  EXPECT_TRUE(drover_test::eventually(milliseconds(2000), [&] { return word->try_lock() == Lock::kOwnerDied; }));
  EXPECT_TRUE(word->unlock());
}

TEST(LockWord, WhoOnlyPassesLeavesNothingToReport) {
  const auto word = new_word();
  die_with(*word, LockWord::Manner::kPasses);
  EXPECT_EQ(word->lock(), Lock::kLocked);
  EXPECT_TRUE(word->unlock());
}

TEST(LockWord, WhoPassedAndThenGuardsIsReported) {
  const auto word = new_word();
  std::thread([&] {
    EXPECT_EQ(word->lock({.manner = LockWord::Manner::kPasses}), Lock::kLocked);
    word->guard();
  }).join();
  EXPECT_EQ(word->lock({.manner = LockWord::Manner::kPasses}), Lock::kOwnerDied);
  EXPECT_TRUE(word->unlock());
}

TEST(LockWord, ATakerThatDiesIsReportedEvenIfItOnlyPassed) {
  const auto word = new_word();
  die_with(*word, LockWord::Manner::kGuards);
  std::thread([&] { EXPECT_EQ(word->lock({.manner = LockWord::Manner::kPasses}), Lock::kOwnerDied); }).join();
  EXPECT_EQ(word->lock(), Lock::kOwnerDied);
  EXPECT_TRUE(word->unlock());
}

TEST(LockWord, AnIdFromAnUnknownNamespaceIsNobodyUnlessSomebodyOfAnotherJoined) {
  const os::ThreadId stranger = os::current_thread_id() ^ (os::ThreadId{1} << 63U);
  Realm realm{};
  realm.join();
  EXPECT_TRUE(realm.is_gone(stranger));
  Realm other{};  // where somebody of another namespace was first
  reinterpret_cast<std::atomic<std::uint32_t>&>(other) = 0x484F'0001;
  other.join();
  EXPECT_FALSE(other.is_gone(stranger));
  EXPECT_FALSE(other.is_gone(os::current_thread_id()));
}

struct Counted {
  LockWord word;
  std::uint64_t a = 0, b = 0;  // protected by word
};

/// Adds to both; false when they differ, so somebody else was in between.
bool add(Counted& counted, bool locked) {
  if (locked && counted.word.lock() != Lock::kLocked) return false;
  const bool equal = counted.a == counted.b;
  ++counted.a;
  ++counted.b;
  return locked ? counted.word.unlock() && equal : equal;
}

TEST(LockWordThreads, OneAtATimeIsInside) {
  Counted counted;
  counted.word.join();
  constexpr std::uint64_t kRounds = 50'000;
  for (std::uint64_t i = 0; i < kRounds; ++i) ASSERT_TRUE(add(counted, false));
  ++counted.a;
  ASSERT_FALSE(add(counted, false)) << "the checker finds nothing";
  counted.a = counted.b = 0;

  constexpr std::uint64_t kThreads = 4;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (std::uint64_t n = 0; n < kRounds; ++n) wrong += add(counted, true) ? 0 : 1;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(counted.a, kThreads * kRounds);
  EXPECT_EQ(counted.b, kThreads * kRounds);
  EXPECT_TRUE(counted.word.is_free());
}

TEST(LockWordThreads, TimedLocksNeitherLoseTheLockNorAWakeUp) {
  Counted counted;
  counted.word.join();
  std::atomic<std::uint64_t> entered{0};
  std::vector<std::thread> threads;
  for (unsigned seed = 1; seed <= 4; ++seed) {
    threads.emplace_back([&, seed] {
      std::minstd_rand random(seed);
      for (int n = 0; n < 3000; ++n) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(random() % 200);
        if (counted.word.lock({.deadline = end}) != Lock::kLocked) continue;
        counted.b = ++counted.a;
        ++entered;
        EXPECT_TRUE(counted.word.unlock());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counted.a, entered);
  std::printf("seeds 1-4: locked %llu of 12000 times\n", static_cast<unsigned long long>(entered));
}

TEST(LockWordHostile, NoBytesMakeItCrashOrMissItsDeadline) {
  const auto word = new_word();
  auto& raw = reinterpret_cast<std::atomic<std::uint64_t>&>(*word);
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  std::atomic<bool> stop{false};
  std::thread vandal([&] {
    std::mt19937_64 random(seed);
    while (!stop) {
      raw.store(random(), std::memory_order_relaxed);
      if (random() % 64 == 0) std::this_thread::yield();
    }
  });
  double longest = 0;
  for (int i = 0; i < 300; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    static_cast<void>(word->lock({.deadline = begin + milliseconds(2)}));
    static_cast<void>(word->unlock());
    static_cast<void>(word->try_lock());
    static_cast<void>(word->is_free());
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    longest = std::max(longest, took.count());
  }
  stop = true;
  vandal.join();
  EXPECT_LT(longest, 5.0);
}

TEST(LockWordHostile, AnyBytesThatStayAreADeadOwner) {
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 2000; ++i) {
    const auto word = new_word();
    const std::uint64_t bytes = random();
    reinterpret_cast<std::atomic<std::uint64_t>&>(*word) = bytes;
    const Lock result = word->lock({.deadline = in(milliseconds(2000))});  // no living thread has such an id
    ASSERT_TRUE(is_locked(result)) << std::hex << bytes;
    ASSERT_TRUE(word->unlock());
    ASSERT_EQ(word->lock(), Lock::kLocked);
  }
}

}  // namespace
}  // namespace drover::sync
