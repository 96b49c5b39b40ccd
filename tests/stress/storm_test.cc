// SPDX-License-Identifier: Apache-2.0
// Tasks with known answers, while a random worker is killed every few milliseconds. DROVER_STORM_TASKS,
// DROVER_STORM_SECONDS (both have to be reached) and DROVER_STORM_SEED change the size and repeat a run.
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <random>
#include <thread>
#include <variant>

#include "drover/drover.h"
#include "fault/watchdog.h"

namespace drover_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kRetries = 1000;

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::stoull(text);
}

std::uint64_t mixed(std::uint64_t x) {
  x ^= x >> 31;
  x *= 0x9e3779b97f4a7c15U;
  return x ^ x >> 29;
}
std::uint64_t answer(std::uint64_t i) { return mixed(mixed(i)); }

std::uint64_t task(std::uint64_t i) { return answer(i); }
std::vector<std::uint64_t> long_task(std::uint64_t i) { return std::vector<std::uint64_t>(1 + i % 300, answer(i)); }
std::vector<std::uint64_t> spilled_task(std::uint64_t i) { return std::vector<std::uint64_t>(12'500, answer(i)); }
void void_task(std::uint64_t i) {
  if (mixed(i) == 0) throw std::logic_error("no item has this number");
}
std::uint64_t text_task(const std::string& text) { return answer(std::stoull(text)); }

std::uint64_t value_of(std::uint64_t value) { return value; }
std::uint64_t value_of(const std::vector<std::uint64_t>& values) {
  for (const std::uint64_t value : values) {
    if (value != values.front()) return 0;
  }
  return values.front();
}

/// Counts each item of one job.
class Checker {
 public:
  Checker(std::uint64_t first, std::size_t items) : first_(first), seen_(items) {}

  /// Of a function without a result.
  void note_finished(std::size_t index) { note(index, answer(first_ + index)); }
  void note(std::size_t index, std::uint64_t value) {
    ASSERT_LT(index, seen_.size());
    EXPECT_EQ(value, answer(first_ + index)) << "item " << index;
    EXPECT_FALSE(seen_[index]) << "item " << index << " came twice";
    seen_[index] = true;
    ++count_;
  }
  void expect_all() const { EXPECT_EQ(count_, seen_.size()) << "items were lost"; }

 private:
  const std::uint64_t first_;
  std::vector<bool> seen_;
  std::size_t count_ = 0;
};

template <class R>
void check(Checker& checker, drover::Results<R> results, bool ordered) {
  std::size_t next = 0;
  for (auto it = results.begin(); it != results.end(); ++it) {
    EXPECT_TRUE(!ordered || it.index() == next++);
    if constexpr (std::is_same_v<R, std::monostate>) {
      *it;
      checker.note_finished(it.index());
    } else {
      checker.note(it.index(), value_of(*it));
    }
    if (testing::Test::HasFailure()) return;
  }
  checker.expect_all();
}

void check_submits(drover::Pool& pool, Checker& checker, std::uint64_t first, std::size_t items) {
  std::vector<drover::Future<std::uint64_t>> futures;
  for (std::uint64_t i = 0; i < items; ++i) {
    futures.push_back(pool.with({.retries = kRetries}).submit<task>(first + i));
  }
  for (std::size_t i = 0; i < items; ++i) checker.note(i, futures[i].get());
  checker.expect_all();
}

constexpr unsigned kKinds = 8;
constexpr unsigned kSubmits = 5;
constexpr unsigned kSpilled = 6;

/// The most tasks of a job.
std::size_t most_of(unsigned kind) {
  if (kind % kKinds == kSpilled) return 100;
  return kind % kKinds == kSubmits ? 1000 : 8000;
}

/// One job of `items` tasks; `kind` says which.
void run_one(drover::Pool& pool, unsigned kind, std::uint64_t first, std::size_t items) {
  Checker checker(first, items);
  const auto inputs = drover::range(first, first + items);
  switch (kind % kKinds) {
    case 0:
      return check(checker, pool.map<task>(inputs, {.ordered = false, .retries = kRetries}), false);
    case 1:
      return check(checker, pool.map<task>(inputs, {.retries = kRetries}), true);
    case 2:
      return check(checker, pool.map<task>(inputs, {.ordered = false, .chunk = 7, .retries = kRetries}), false);
    case 3: {
      std::vector<std::string> texts;
      for (const std::uint64_t i : inputs) texts.push_back(std::to_string(i));
      return check(checker, pool.map<text_task>(std::move(texts), {.ordered = first % 2 == 0, .retries = kRetries}),
                   first % 2 == 0);
    }
    case 4:
      return check(checker, pool.map<long_task>(inputs, {.ordered = false, .retries = kRetries}), false);
    case kSubmits:
      return check_submits(pool, checker, first, items);
    case kSpilled:
      return check(checker, pool.map<spilled_task>(inputs, {.ordered = false, .retries = kRetries}), false);
    default:
      return check(checker, pool.map<void_task>(inputs, {.ordered = first % 2 == 0, .retries = kRetries}),
                   first % 2 == 0);
  }
}

/// Jobs of all kinds one after the other; the number of tasks.
std::uint64_t run_all(drover::Pool& pool, std::mt19937_64& random, std::uint64_t tasks, std::chrono::seconds duration) {
  const auto end = std::chrono::steady_clock::now() + duration;
  std::uint64_t done = 0;
  for (unsigned kind = 0; done < tasks || std::chrono::steady_clock::now() < end; ++kind) {
    const std::size_t items = 1 + random() % most_of(kind);
    const Watchdog watchdog("a job of kind " + std::to_string(kind % kKinds), seconds(120));
    run_one(pool, kind, done, items);
    done += items;
    if (testing::Test::HasFailure()) break;
  }
  return done;
}

/// Kills a random worker that is ready, every few milliseconds.
class Killer {
 public:
  Killer(drover::Pool& pool, std::uint64_t seed)
      : thread_([this, &pool, seed] {
          std::mt19937_64 random(seed);
          while (!stop_) {
            const auto workers = pool.stats().workers;
            const drover::WorkerStats& victim = workers[random() % workers.size()];
            if (victim.ready && victim.pid > 0 && ::kill(victim.pid, SIGKILL) == 0) ++kills_;
            std::this_thread::sleep_for(milliseconds(1 + random() % 6));
          }
        }) {}
  std::uint64_t stop() {
    stop_ = true;
    thread_.join();
    return kills_;
  }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> kills_{0};
  std::thread thread_;
};

TEST(Storm, CheckerIsContentWithoutKills) {
  std::mt19937_64 random(1);
  drover::Pool pool({.workers = 3});
  run_all(pool, random, 20'000, seconds(0));
}

TEST(Storm, CheckerSeesALossADoubleAndAWrongValue) {
  static Checker checker(0, 3);  // the macros' code sees no local variables
  checker.note(0, answer(0));
  EXPECT_NONFATAL_FAILURE(checker.note(0, answer(0)), "twice");
  EXPECT_NONFATAL_FAILURE(checker.note(1, answer(2)), "item 1");
  EXPECT_NONFATAL_FAILURE(Checker(0, 1).expect_all(), "lost");
}

TEST(Storm, NothingIsLostAndNothingComesTwice) {
  const std::uint64_t seed = number_from("DROVER_STORM_SEED", std::random_device{}());
  std::printf("DROVER_STORM_SEED=%lu\n", static_cast<unsigned long>(seed));
  std::mt19937_64 random(seed);
  drover::Pool pool({.workers = 4});
  Killer killer(pool, seed + 1);
  const auto begin = std::chrono::steady_clock::now();
  const std::uint64_t tasks =
      run_all(pool, random, number_from("DROVER_STORM_TASKS", 50'000), seconds(number_from("DROVER_STORM_SECONDS", 5)));
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  const std::uint64_t kills = killer.stop();
  std::printf("%lu tasks and %lu kills in %.1f s\n", static_cast<unsigned long>(tasks),
              static_cast<unsigned long>(kills), taken.count());
  EXPECT_GT(kills, 10U);
}

}  // namespace
}  // namespace drover_test
