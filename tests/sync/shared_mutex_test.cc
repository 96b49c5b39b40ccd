// SPDX-License-Identifier: Apache-2.0
// Readers that lock again while writers come, and deaths while several contend.
#include "drover/sync/shared_mutex.h"

#include <gtest/gtest.h>
#include <sys/time.h>

#include <array>
#include <csignal>
#include <future>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "sync/child.h"

namespace drover {
namespace {

using namespace std::chrono_literals;
using drover_test::Child;
using drover_test::Common;
using drover_test::seconds_of;
using sync::SharedMutexState;

SharedMutexState& state_of(const SharedMutex& mutex) {
  return *reinterpret_cast<SharedMutexState*>(mutex.block()->data() + sizeof(sync::SharedHeader));
}

/// Where the calling thread stands; kReaders: nowhere.
std::size_t first_place_of_mine(const SharedMutexState& state) {
  std::size_t place = 0;
  while (place < SharedMutexState::kReaders && (state.readers[place] & os::kThreadIdMask) != os::current_thread_id()) {
    ++place;
  }
  return place;
}

/// What a reader sees of writers: the gate closes and opens again, at any instruction of this thread.
class Writers {
 public:
  Writers(SharedMutexState& state, os::ThreadId writer) {
    writer_ = writer;
    gate_ = reinterpret_cast<std::atomic<os::ThreadId>*>(&state.gate);
    struct sigaction action {};
    action.sa_handler = [](int) { gate_->store(gate_->load() == 0 ? writer_ : 0); };
    sigaction(SIGALRM, &action, &before_);
    const itimerval often{.it_interval = {0, kEachMicroseconds}, .it_value = {0, kEachMicroseconds}};
    setitimer(ITIMER_REAL, &often, nullptr);
  }
  ~Writers() {
    const itimerval never{};
    setitimer(ITIMER_REAL, &never, nullptr);
    sigaction(SIGALRM, &before_, nullptr);
    gate_->store(0);
  }
  Writers(const Writers&) = delete;
  Writers& operator=(const Writers&) = delete;

 private:
  static constexpr int kEachMicroseconds = 40;
  static inline std::atomic<os::ThreadId>* gate_ = nullptr;
  static inline os::ThreadId writer_ = 0;
  struct sigaction before_ {};
};

/// A writer that looks at the places one by one may have passed by any other place by now.
TEST(SharedMutexNested, AReaderStaysInItsPlaceWhileAWriterComes) {
  SharedMutex mutex;
  SharedMutexState& state = state_of(mutex);
  std::promise<os::ThreadId> id;
  std::promise<void> end_of_thread;
  std::thread writer([&] {  // does nothing, but is alive
    id.set_value(os::current_thread_id());
    end_of_thread.get_future().wait();
  });
  int moved = 0;
  {
    const Writers writers(state, id.get_future().get());
    const auto end = std::chrono::steady_clock::now() + 1s;
    while (std::chrono::steady_clock::now() < end) {
      if (!mutex.try_lock_shared()) continue;
      const std::size_t place = first_place_of_mine(state);
      mutex.lock_shared();
      if ((state.readers.at(place) & os::kThreadIdMask) != os::current_thread_id()) ++moved;
      mutex.unlock_shared();
      mutex.unlock_shared();
    }
  }
  end_of_thread.set_value();
  writer.join();
  EXPECT_EQ(first_place_of_mine(state), SharedMutexState::kReaders);
  EXPECT_EQ(moved, 0);
}

TEST(SharedMutexNested, AWriterIsNeverInsideWithAReader) {
  SharedMutex mutex;
  std::atomic<int> reading{0}, writing{0};
  std::atomic<int> together{0};
  const auto end = std::chrono::steady_clock::now() + 1500ms;
  const auto until_end = [end](const auto& work) {
    return std::thread([end, work] {
      while (std::chrono::steady_clock::now() < end) work();
    });
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.push_back(until_end([&] {
      const std::shared_lock outer(mutex);
      ++reading;
      {
        const std::shared_lock inner(mutex);
        const std::shared_lock innermost(mutex);
        together += writing;
      }
      for (int pause = 0; pause < 100; ++pause) os::pause();
      together += writing;
      --reading;
    }));
  }
  threads.push_back(until_end([&] {
    const std::unique_lock lock(mutex);
    ++writing;
    together += reading;
    --writing;
  }));
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(together, 0);
  EXPECT_TRUE(mutex.try_lock());
}

struct Pair {
  std::atomic<int> a, b;
};

/// Writes, and reads twice in each other. False when it sees a write that is half done and nobody told it.
bool play(SharedMutex& mutex, Pair& pair) {
  for (int i = 0; i < 600; ++i) {
    if (i % 3 == 0) {
      if (mutex.lock_or_recover()) pair.b = pair.a.load();
      if (pair.a != pair.b) return false;
      ++pair.a;
      os::fault_point();
      ++pair.b;
      mutex.unlock();
      continue;
    }
    try {
      const std::shared_lock outer(mutex);
      const std::shared_lock inner(mutex);
      if (pair.a != pair.b) return false;
    } catch (const OwnerDied&) {  // the other one is dead: nobody else writes
      const std::unique_lock lock(mutex);
      pair.b = pair.a.load();
    }
  }
  return true;
}

TEST(SharedMutexDeaths, OfOneOfTwoThatContend) {
  int kills = 0;
  for (int point = 0; point < 6000; point = point < 60 ? point + 1 : point * 5 / 4) {
    SCOPED_TRACE("killed at point " + std::to_string(point));
    SharedMutex mutex;
    const Common<Pair> pair;
    Child other([&] { return play(mutex, *pair); });
    Child victim([&] { return play(mutex, *pair); }, point);
    EXPECT_TRUE(other.succeeded());
    const bool killed = victim.was_killed();
    EXPECT_TRUE(killed || victim.succeeded());
    kills += killed ? 1 : 0;
    EXPECT_LT(seconds_of([&] {
                if (mutex.lock_or_recover()) pair->b = pair->a.load();
              }),
              1.0);
    EXPECT_EQ(pair->a, pair->b);
    mutex.unlock();
    if (HasFailure()) return;
  }
  std::printf("killed at %d points\n", kills);
  EXPECT_GT(kills, 60);
}

}  // namespace
}  // namespace drover
