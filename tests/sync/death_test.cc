// SPDX-License-Identifier: Apache-2.0
// A process that uses a primitive is killed at each point in turn; those that live must go on.
#include <gtest/gtest.h>

#include <thread>

#include "drover/os/fault_point.h"
#include "drover/sync/barrier.h"
#include "drover/sync/condition.h"
#include "drover/sync/event.h"
#include "drover/sync/mutex.h"
#include "drover/sync/semaphore.h"
#include "drover/sync/shared_mutex.h"
#include "drover/sync/shared_value.h"
#include "sync/child.h"

namespace drover {
namespace {

using namespace std::chrono_literals;
using drover_test::Child;
using drover_test::Common;
using drover_test::seconds_of;

struct Pair {
  std::atomic<int> a, b;
};

/// Kills a child that runs `work()` at point 0, 1, 2 ..., and lets `check(killed)` look at what it left, until a run
/// needs no kill. `prepare()` makes a new state each time.
template <class Prepare, class Work, class Check>
void kill_at_each_point(const char* what, const Prepare& prepare, const Work& work, const Check& check) {
  constexpr int kLast = 400;
  for (int point = 0; point < kLast; ++point) {
    SCOPED_TRACE(std::string(what) + ", killed at point " + std::to_string(point));
    prepare();
    Child child(work, point);
    const bool killed = child.was_killed();
    if (!killed) {
      EXPECT_TRUE(child.succeeded());
    }
    check(killed);
    if (testing::Test::HasFailure()) return;
    if (!killed) {
      std::printf("%s: killed at %d points\n", what, point);
      EXPECT_GT(point, 2) << "no points are compiled in";
      return;
    }
  }
  FAIL() << what << ": there is no end of points";
}

TEST(Deaths, OfAMutexHolder) {
  std::optional<Mutex> mutex;
  std::optional<Common<Pair>> pair;
  kill_at_each_point(
      "mutex",
      [&] {
        mutex.emplace();
        pair.emplace();
      },
      [&] {
        for (int i = 0; i < 3; ++i) {
          const std::scoped_lock lock(*mutex);
          ++(*pair)->a;
          os::fault_point();
          ++(*pair)->b;
          os::fault_point();
        }
        return true;
      },
      [&](bool killed) {
        bool recovered = false;
        EXPECT_LT(seconds_of([&] { recovered = mutex->lock_or_recover(); }), 1.0);
        EXPECT_TRUE(killed || !recovered);
        EXPECT_TRUE(recovered || (*pair)->a == (*pair)->b) << "half-written, and nobody says so";
        mutex->unlock();
        mutex->lock();
        mutex->unlock();
      });
}

TEST(Deaths, OfOneOfTwoThatContendForAMutex) {
  std::optional<Mutex> mutex;
  std::optional<Common<Pair>> pair;
  const auto play = [&] {
    for (int i = 0; i < 2000; ++i) {
      if (mutex->lock_or_recover()) (*pair)->b = (*pair)->a.load();
      if ((*pair)->a != (*pair)->b) return false;
      ++(*pair)->a;
      ++(*pair)->b;
      mutex->unlock();
    }
    return true;
  };
  for (int point = 0; point < 4000; point = point < 40 ? point + 1 : point * 5 / 4) {
    SCOPED_TRACE("killed at point " + std::to_string(point));
    mutex.emplace();
    pair.emplace();
    Child other(play);
    Child victim(play, point);
    EXPECT_TRUE(other.succeeded());
    EXPECT_TRUE(victim.was_killed() || victim.succeeded());
    EXPECT_LT(seconds_of([&] { static_cast<void>(mutex->lock_or_recover()); }), 1.0);
    mutex->unlock();
    if (HasFailure()) return;
  }
}

TEST(Deaths, AHolderThatIsKilledWhileOthersWaitIsFoundWithinASecond) {
  Mutex mutex;
  const Common<std::atomic<int>> holds;
  Child child([&] {
    mutex.lock();
    *holds = 1;
    for (;;) pause();
    return false;
  });
  ASSERT_TRUE(drover_test::eventually(10s, [&] { return *holds == 1; }));
  EXPECT_FALSE(mutex.try_lock());
  EXPECT_FALSE(mutex.try_lock_for(50ms)) << "it lives";
  std::chrono::steady_clock::time_point killed;
  std::thread killer([&] {
    EXPECT_FALSE(mutex.try_lock_for(300ms));
    killed = std::chrono::steady_clock::now();
    child.kill();
  });
  EXPECT_THROW(mutex.lock(), OwnerDied);  // it stays a zombie meanwhile
  const auto found = std::chrono::steady_clock::now();
  killer.join();
  EXPECT_LT(found - killed, 1s);
}

TEST(Deaths, OfWritersAndReaders) {
  std::optional<SharedMutex> mutex;
  std::optional<Common<Pair>> pair;
  kill_at_each_point(
      "shared mutex",
      [&] {
        mutex.emplace();
        pair.emplace();
      },
      [&] {
        mutex->lock_shared();
        mutex->unlock_shared();
        mutex->lock();
        ++(*pair)->a;
        os::fault_point();
        ++(*pair)->b;
        mutex->unlock();
        if (!mutex->try_lock_shared()) return false;
        mutex->unlock_shared();
        if (!mutex->try_lock()) return false;
        mutex->unlock();
        return true;
      },
      [&](bool killed) {
        bool recovered = false;
        EXPECT_LT(seconds_of([&] { recovered = mutex->lock_or_recover(); }), 1.0);
        EXPECT_TRUE(killed || !recovered);
        EXPECT_TRUE(recovered || (*pair)->a == (*pair)->b) << "half-written, and nobody says so";
        mutex->unlock();
        mutex->lock_shared();
        mutex->unlock_shared();
      });
}

TEST(Deaths, OfAProcessWithPermits) {
  std::optional<Semaphore> semaphore;
  kill_at_each_point(
      "semaphore", [&] { semaphore.emplace(3); },
      [&] {
        semaphore->acquire();
        semaphore->acquire();
        semaphore->release();
        semaphore->acquire();
        semaphore->release(2);
        return true;
      },
      [&](bool) {
        for (int i = 0; i < 3; ++i) EXPECT_TRUE(semaphore->try_acquire()) << i;
        EXPECT_FALSE(semaphore->try_acquire());
        semaphore->release(3);
      });
}

TEST(Deaths, PermitsComeBackToWhoWaits) {
  Semaphore semaphore(1);
  const Common<std::atomic<int>> holds;
  Child child([&] {
    semaphore.acquire();
    *holds = 1;
    for (;;) pause();
    return false;
  });
  ASSERT_TRUE(drover_test::eventually(10s, [&] { return *holds == 1; }));
  EXPECT_FALSE(semaphore.try_acquire_for(100ms));
  std::thread killer([&] { child.kill(); });
  EXPECT_TRUE(semaphore.try_acquire_for(5s));
  killer.join();
}

TEST(Deaths, PermitsStayTakenWhereThatIsAskedFor) {
  Semaphore semaphore(1, {.return_permits = false});
  Child child([&] {
    semaphore.acquire();
    return true;
  });
  EXPECT_TRUE(child.succeeded());
  EXPECT_FALSE(semaphore.try_acquire_for(100ms));
}

/// As a process does that is stopped by SIGSTOP in the middle of a call.
TEST(Deaths, WhoIsStoppedInASemaphoreKeepsNobodyBeyondItsDeadline) {
  Semaphore semaphore(1);
  const Common<std::atomic<int>> locked;
  Child child([&] {
    auto& state = *reinterpret_cast<sync::SemaphoreState*>(semaphore.block()->data() + sizeof(sync::SharedHeader));
    static_cast<void>(state.lock.lock());
    *locked = 1;
    for (;;) pause();
    return false;
  });
  ASSERT_TRUE(drover_test::eventually(5s, [&] { return *locked == 1; }));
  EXPECT_LT(seconds_of([&] { EXPECT_FALSE(semaphore.try_acquire()); }), 2.0);
  EXPECT_LT(seconds_of([&] { EXPECT_FALSE(semaphore.try_acquire_for(50ms)); }), 2.0);
  child.kill();
  child.become_zombie();
  EXPECT_TRUE(semaphore.try_acquire_for(5s));
}

/// Both at once: the parent waits while the child dies.
TEST(Deaths, WhoWaitsAtABarrierHearsOfADeadParty) {
  int kills = 0;
  for (int point = 0; point < 60; ++point) {
    SCOPED_TRACE("killed at point " + std::to_string(point));
    Barrier barrier(2);
    const Common<std::atomic<int>> member;
    Child child(
        [&] {
          Barrier own = Barrier::adopt(barrier.block());
          *member = 1;
          for (int i = 0; i < 3; ++i) own.arrive_and_wait();
          return true;
        },
        point);
    int passed = 0;
    bool broken = false;
    const double time = seconds_of([&] {
      if (!drover_test::eventually(5s, [&] { return *member == 1 || child.ended(); })) return;
      if (*member == 0) return;
      try {
        for (; passed < 3; ++passed) {
          if (!barrier.wait_for(5s)) return;
        }
      } catch (const OwnerDied&) {
        broken = true;
      }
    });
    const bool killed = child.was_killed();
    kills += killed ? 1 : 0;
    if (*member == 0) continue;  // it died before anybody could know that it takes part
    EXPECT_TRUE(passed == 3 || broken) << passed;
    EXPECT_TRUE(killed || passed == 3);
    EXPECT_LT(time, 2.0);
    if (broken) {
      EXPECT_THROW(barrier.arrive_and_wait(), OwnerDied) << "until it is reset";
      barrier.reset();
      Child replacement([&] {
        Barrier::adopt(barrier.block()).arrive_and_wait();
        return true;
      });
      EXPECT_TRUE(barrier.wait_for(5s));
      EXPECT_TRUE(replacement.succeeded());
    }
    if (HasFailure()) return;
    if (!killed) {
      std::printf("barrier: killed at %d points\n", kills);
      return;
    }
  }
  FAIL() << "there is no end of points";
}

TEST(Deaths, OfAWriterOfAValue) {
  struct Wide {
    std::int64_t values[5];
  };
  std::optional<SharedValue<Wide>> value;
  kill_at_each_point(
      "shared value",
      [&] {
        value.emplace(Wide{{7, 7, 7, 7, 7}});
      },
      [&] {
        for (int i = 0; i < 3; ++i) {
          value->update([](Wide next) {
            for (std::int64_t& item : next.values) ++item;
            return next;
          });
        }
        return true;
      },
      [&](bool) {
        const Wide left = value->load();
        for (const std::int64_t item : left.values) EXPECT_EQ(item, left.values[0]) << "half-written";
        EXPECT_LT(seconds_of([&] { value->store(Wide{}); }), 1.0);
        EXPECT_EQ(value->load().values[4], 0);
      });
}

TEST(Deaths, AWaiterTakesNoNotificationWithItForGood) {
  Mutex mutex;
  Condition changed;
  Event both_wait;
  const Common<Pair> common;  // a: things to take, b: how many came to wait
  const auto take = [&] {
    static_cast<void>(mutex.lock_or_recover());
    std::unique_lock lock(mutex, std::adopt_lock);
    if (++common->b == 2) both_wait.set();
    while (common->a == 0) {
      try {
        changed.wait(lock);
      } catch (const OwnerDied&) {
        lock.lock();
      }
    }
    --common->a;
    return true;
  };
  for (int point = 0; point < 20; ++point) {
    SCOPED_TRACE("killed at point " + std::to_string(point));
    common->a = common->b = 0;
    both_wait.clear();
    Child victim(take, point), other(take);
    static_cast<void>(both_wait.wait_for(300ms));  // the victim may have died before
    static_cast<void>(mutex.lock_or_recover());
    common->a = 2;
    mutex.unlock();
    changed.notify_one();  // one only, maybe for the victim
    bool taken = false;
    EXPECT_LT(seconds_of([&] { taken = other.succeeded(); }), 2.0);
    EXPECT_TRUE(taken);
    const bool killed = victim.was_killed();
    if (HasFailure() || !killed) return;
  }
  FAIL() << "there is no end of points";
}

}  // namespace
}  // namespace drover
