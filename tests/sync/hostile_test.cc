// SPDX-License-Identifier: Apache-2.0
// Another process writes random bytes over the state of a primitive. Calls may answer or throw, and wrong; they must
// come back.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <thread>

#include "drover/sync/barrier.h"
#include "drover/sync/condition.h"
#include "drover/sync/event.h"
#include "drover/sync/mutex.h"
#include "drover/sync/semaphore.h"
#include "drover/sync/shared_mutex.h"
#include "drover/sync/shared_value.h"

namespace drover {
namespace {

using namespace std::chrono_literals;

constexpr double kBound = 5.0;  // seconds; the deadlines are milliseconds

template <class Call>
void answers_or_throws(const Call& call) {
  const auto begin = std::chrono::steady_clock::now();
  try {
    call();
  } catch (const std::exception&) {
  }
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), kBound);
}

/// Words of a state, as another process would write them.
template <class T>
std::span<std::atomic<std::uint64_t>> words_of(const T& handle) {
  auto* const state =
      reinterpret_cast<std::atomic<std::uint64_t>*>(handle.block()->data() + sizeof(sync::SharedHeader));
  return {state, sizeof(typename T::StateType) / 8};
}

/// Runs `use` on states that were written over once, in all words or in a few, and on one that is written over all the
/// time.
template <class Make, class Use>
void survives(const char* what, const Make& make, const Use& use) {
  const unsigned seed = std::random_device{}();
  std::printf("%s: seed %u\n", what, seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 40; ++round) {
    auto handle = make();
    const unsigned share = round % 3 == 0 ? 1 : round % 3 == 1 ? 4 : 50;  // one word of so many
    for (auto& word : words_of(handle)) {
      if (random() % share == 0) word = random() >> random() % 64;
    }
    answers_or_throws([&] { use(handle); });
  }
  auto handle = make();
  std::atomic<bool> stop{false};
  std::thread vandal([&] {
    const auto words = words_of(handle);
    while (!stop) {
      words[random() % words.size()] = random();
      if (random() % 16 == 0) std::this_thread::yield();
    }
  });
  for (int round = 0; round < 20; ++round) answers_or_throws([&] { use(handle); });
  stop = true;
  vandal.join();
}

TEST(Hostile, Mutex) {
  survives(
      "mutex", [] { return Mutex(); },
      [](Mutex& mutex) {
        answers_or_throws([&] { static_cast<void>(mutex.try_lock_for(3ms)); });
        answers_or_throws([&] { mutex.unlock(); });
        answers_or_throws([&] { static_cast<void>(mutex.try_lock()); });
        answers_or_throws([&] { mutex.unlock(); });
      });
}

TEST(Hostile, SharedMutex) {
  survives(
      "shared mutex", [] { return SharedMutex(); },
      [](SharedMutex& mutex) {
        answers_or_throws([&] { static_cast<void>(mutex.try_lock_shared_for(3ms)); });
        answers_or_throws([&] { mutex.unlock_shared(); });
        answers_or_throws([&] { static_cast<void>(mutex.try_lock_for(3ms)); });
        answers_or_throws([&] { mutex.unlock(); });
      });
}

TEST(Hostile, Semaphore) {
  survives(
      "semaphore", [] { return Semaphore(2); },
      [](Semaphore& semaphore) {
        answers_or_throws([&] { static_cast<void>(semaphore.try_acquire_for(3ms)); });
        answers_or_throws([&] { semaphore.release(2); });
        static_cast<void>(semaphore.available());
      });
}

TEST(Hostile, Event) {
  survives(
      "event", [] { return Event(); },
      [](Event& event) {
        answers_or_throws([&] { static_cast<void>(event.wait_for(3ms)); });
        event.set();
        event.clear();
      });
}

TEST(Hostile, Condition) {
  Mutex mutex;
  survives(
      "condition", [] { return Condition(); },
      [&mutex](Condition& condition) {
        std::unique_lock lock(mutex);
        answers_or_throws([&] { static_cast<void>(condition.wait_for(lock, 3ms)); });
        condition.notify_one();
        condition.notify_all();
        answers_or_throws([&] { static_cast<void>(condition.wait_for(lock, 3ms, [] { return false; })); });
      });
}

TEST(Hostile, Barrier) {
  survives(
      "barrier", [] { return Barrier(2); },
      [](Barrier& barrier) {
        answers_or_throws([&] { static_cast<void>(barrier.wait_for(3ms)); });
        barrier.reset();
        answers_or_throws([&] { static_cast<void>(barrier.wait_for(3ms)); });
      });
}

TEST(Hostile, SharedValue) {
  using Wide = std::array<double, 20>;
  survives(
      "shared value", [] { return SharedValue<Wide>(); },
      [](SharedValue<Wide>& value) {
        answers_or_throws([&] { static_cast<void>(value.load()); });
        answers_or_throws([&] { value.store(Wide{}); });
      });
  survives(
      "shared bool", [] { return SharedValue<bool>(); },
      [](SharedValue<bool>& value) {
        answers_or_throws([&] { static_cast<void>(value.load()); });
        answers_or_throws([&] { value.store(true); });
      });
}

}  // namespace
}  // namespace drover
