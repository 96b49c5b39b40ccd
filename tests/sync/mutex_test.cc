// SPDX-License-Identifier: Apache-2.0
#include "drover/sync/mutex.h"

#include <gtest/gtest.h>

#include <limits>
#include <mutex>
#include <shared_mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "drover/sync/condition.h"
#include "drover/sync/shared_mutex.h"
#include "harness/deadline.h"

namespace drover {
namespace {

using namespace std::chrono_literals;

template <class Work>
std::errc code_of(const Work& work) {
  try {
    work();
  } catch (const std::system_error& error) {
    return static_cast<std::errc>(error.code().value());
  }
  return {};
}

template <class Work>
void in_a_thread(const Work& work) {
  std::thread(work).join();
}

TEST(Mutex, WorksWithTheStandardsLocks) {
  Mutex a, b;
  {
    const std::scoped_lock both(a, b);
    in_a_thread([&] {
      EXPECT_FALSE(a.try_lock());
      EXPECT_FALSE(b.try_lock_for(5ms));
      EXPECT_FALSE(b.try_lock_until(std::chrono::system_clock::now() + 5ms));
      EXPECT_FALSE(b.try_lock_until(std::chrono::steady_clock::time_point::min()));
      EXPECT_FALSE(b.try_lock_until(std::chrono::time_point<std::chrono::system_clock, std::chrono::hours>::min()));
    });
  }
  std::unique_lock lock(a, std::defer_lock);
  EXPECT_TRUE(lock.try_lock_for(1s));
  lock.unlock();
  EXPECT_TRUE(lock.try_lock_until(std::chrono::steady_clock::time_point::max()));
  lock.unlock();
  std::lock(a, b);
  a.unlock();
  b.unlock();
}

TEST(Mutex, ANegativeTimeIsNoTime) {
  Mutex mutex;
  const std::scoped_lock lock(mutex);
  in_a_thread([&] {
    EXPECT_FALSE(mutex.try_lock_for(-1s));
    EXPECT_FALSE(mutex.try_lock_for(Duration(-1e12)));  // UBSan looks here
    EXPECT_FALSE(mutex.try_lock_for(Duration(-std::numeric_limits<double>::infinity())));
  });
}

TEST(Mutex, CopiesAreTheSameMutex) {
  Mutex mutex;
  Mutex copy = mutex;
  mutex.lock();
  in_a_thread([&] { EXPECT_FALSE(copy.try_lock()); });
  copy.unlock();
  in_a_thread([&] {
    EXPECT_TRUE(copy.try_lock());
    copy.unlock();
  });
  EXPECT_EQ(mutex.name(), "");
}

TEST(Mutex, RefusesWhatWouldHangOrBreakIt) {
  Mutex mutex;
  EXPECT_EQ(code_of([&] { mutex.unlock(); }), std::errc::operation_not_permitted);
  mutex.lock();
  EXPECT_EQ(code_of([&] { mutex.lock(); }), std::errc::resource_deadlock_would_occur);
  EXPECT_EQ(code_of([&] { static_cast<void>(mutex.try_lock_for(1s)); }), std::errc::resource_deadlock_would_occur);
  EXPECT_FALSE(mutex.try_lock());
  in_a_thread([&] { EXPECT_EQ(code_of([&] { mutex.unlock(); }), std::errc::operation_not_permitted); });
  mutex.unlock();
}

TEST(Mutex, ADeadOwnerIsReportedOnceByNumber) {
  Mutex mutex;
  std::string number;
  in_a_thread([&] {
    mutex.lock();
    number = std::to_string(os::thread_number(os::current_thread_id()));
  });
  try {
    mutex.lock();
    FAIL() << "locked";
  } catch (const OwnerDied& error) {
    EXPECT_NE(std::string(error.what()).find("thread " + number), std::string::npos) << error.what();
  }
  EXPECT_TRUE(mutex.try_lock()) << "not locked by the report";
  mutex.unlock();
}

TEST(Mutex, CanBeTakenOverFromADeadOwner) {
  Mutex mutex;
  EXPECT_FALSE(mutex.lock_or_recover());
  mutex.unlock();
  in_a_thread([&] { mutex.lock(); });
  EXPECT_TRUE(mutex.lock_or_recover());
  in_a_thread([&] { EXPECT_FALSE(mutex.try_lock()); });
  mutex.unlock();
  EXPECT_FALSE(mutex.lock_or_recover());
  mutex.unlock();
}

TEST(SharedMutex, IsSharedByReadersAndNotByWriters) {
  SharedMutex mutex;
  const std::shared_lock reader(mutex);
  in_a_thread([&] {
    const std::shared_lock another(mutex);
    EXPECT_TRUE(another.owns_lock());
  });
  in_a_thread([&] {
    EXPECT_FALSE(mutex.try_lock());
    EXPECT_FALSE(mutex.try_lock_for(5ms));
  });
  in_a_thread([&] { EXPECT_TRUE(mutex.try_lock_shared()) << "a writer that gave up leaves the way free"; });
}

TEST(SharedMutex, AWriterIsAlone) {
  SharedMutex mutex;
  std::unique_lock writer(mutex);
  in_a_thread([&] {
    EXPECT_FALSE(mutex.try_lock());
    EXPECT_FALSE(mutex.try_lock_shared());
    EXPECT_FALSE(mutex.try_lock_shared_for(5ms));
  });
  writer.unlock();
  in_a_thread([&] {
    EXPECT_TRUE(mutex.try_lock_shared_for(1s));
    mutex.unlock_shared();
  });
}

TEST(SharedMutex, WhoComesAfterAWaitingWriterWaitsBehindIt) {
  SharedMutex mutex;
  mutex.lock_shared();
  std::atomic<int> order{0};
  std::thread writer([&] {
    const std::unique_lock lock(mutex);
    EXPECT_EQ(order++, 0);
  });
  ASSERT_TRUE(drover_test::eventually(5s, [&] {
    bool free = false;
    in_a_thread([&] {
      free = mutex.try_lock_shared();
      if (free) mutex.unlock_shared();
    });
    return !free;
  })) << "the writer does not wait";
  std::thread reader([&] {
    const std::shared_lock lock(mutex);
    EXPECT_EQ(order++, 1);
  });
  mutex.lock_shared();  // but who reads already may go on
  mutex.unlock_shared();
  mutex.unlock_shared();
  writer.join();
  reader.join();
}

TEST(SharedMutex, MoreReadersThanPlacesWait) {
  SharedMutex mutex;
  for (std::size_t i = 0; i < sync::SharedMutexState::kReaders; ++i) mutex.lock_shared();
  in_a_thread([&] {
    EXPECT_FALSE(mutex.try_lock_shared());
    EXPECT_FALSE(mutex.try_lock_shared_for(5ms));
  });
  std::thread waiting([&] { mutex.lock_shared(); });
  mutex.unlock_shared();
  waiting.join();
}

TEST(SharedMutex, AReaderMayLockAgainWhenAllPlacesAreTaken) {
  SharedMutex mutex;
  for (std::size_t i = 0; i < sync::SharedMutexState::kReaders + 500; ++i) mutex.lock_shared();
  in_a_thread([&] { EXPECT_FALSE(mutex.try_lock()); });
  for (std::size_t i = 0; i < sync::SharedMutexState::kReaders + 500; ++i) mutex.unlock_shared();
  in_a_thread([&] { EXPECT_TRUE(mutex.try_lock()); });
  EXPECT_EQ(code_of([&] { mutex.unlock_shared(); }), std::errc::operation_not_permitted);
}

TEST(SharedMutex, ADeadReaderIsForgottenAndADeadWriterReported) {
  SharedMutex mutex;
  in_a_thread([&] { mutex.lock_shared(); });
  mutex.lock();
  mutex.unlock();
  in_a_thread([&] { mutex.lock(); });
  EXPECT_THROW(mutex.lock_shared(), OwnerDied);
  mutex.lock_shared();
  mutex.unlock_shared();
  in_a_thread([&] { mutex.lock(); });
  EXPECT_THROW(mutex.lock(), OwnerDied);
  in_a_thread([&] { mutex.lock(); });
  in_a_thread([&] { EXPECT_TRUE(mutex.lock_or_recover()); });
  EXPECT_TRUE(mutex.lock_or_recover()) << "who took over died as well";
  mutex.unlock();
}

TEST(SharedMutex, RefusesWhatWouldHangOrBreakIt) {
  SharedMutex mutex;
  EXPECT_EQ(code_of([&] { mutex.unlock(); }), std::errc::operation_not_permitted);
  EXPECT_EQ(code_of([&] { mutex.unlock_shared(); }), std::errc::operation_not_permitted);
  mutex.lock_shared();
  EXPECT_EQ(code_of([&] { mutex.lock(); }), std::errc::resource_deadlock_would_occur);
  mutex.unlock_shared();
  mutex.lock();
  EXPECT_EQ(code_of([&] { mutex.lock_shared(); }), std::errc::resource_deadlock_would_occur);
  mutex.unlock();
}

TEST(SharedMutexThreads, ReadersSeeNoHalfDoneWrite) {
  SharedMutex mutex;
  std::uint64_t a = 0, b = 0;
  std::atomic<int> wrong{0};
  constexpr std::uint64_t kWrites = 2000;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      for (std::uint64_t n = 0; n < kWrites; ++n) {
        const std::unique_lock lock(mutex);
        ++a;
        ++b;
      }
    });
    threads.emplace_back([&] {
      for (std::uint64_t n = 0; n < kWrites; ++n) {
        std::shared_lock lock(mutex);
        mutex.lock_shared();  // inside the other; maybe a writer has come to wait meanwhile
        lock.unlock();
        wrong += a == b ? 0 : 1;
        mutex.unlock_shared();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(a, 2 * kWrites);
}

TEST(Condition, WaitsForAPredicate) {
  Mutex mutex;
  Condition changed;
  int stage = 0;
  std::thread other([&] {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return stage == 1; });
    stage = 2;
    changed.notify_all();
  });
  std::unique_lock lock(mutex);
  stage = 1;
  changed.notify_one();
  EXPECT_TRUE(changed.wait_for(lock, 10s, [&] { return stage == 2; }));
  EXPECT_FALSE(changed.wait_for(lock, 5ms, [&] { return stage == 3; }));
  EXPECT_FALSE(changed.wait_for(lock, 5ms));
  EXPECT_TRUE(lock.owns_lock());
  lock.unlock();
  other.join();
}

TEST(Condition, WhoCannotGetTheLockBackDoesNotHoldIt) {
  Mutex mutex;
  Condition changed;
  std::unique_lock lock(mutex);
  std::thread other([&] {
    mutex.lock();  // the waiter is asleep, or about to be
    changed.notify_one();
  });
  EXPECT_THROW(changed.wait(lock), OwnerDied);
  EXPECT_FALSE(lock.owns_lock());
  other.join();
}

TEST(ConditionThreads, NoNotificationIsLost) {
  Mutex mutex;
  Condition turned;
  int turn = 0;
  constexpr int kRounds = 5000;
  const auto play = [&](int me) {
    for (int i = 0; i < kRounds; ++i) {
      std::unique_lock lock(mutex);
      turned.wait(lock, [&] { return turn == me; });
      turn = 1 - me;
      turned.notify_one();
    }
  };
  std::thread other(play, 1);
  const auto begin = std::chrono::steady_clock::now();
  play(0);
  other.join();
  // A lost one is made good when a slice of waiting is over: 20 ms at least. Ten thousand would take minutes.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
}

}  // namespace
}  // namespace drover
