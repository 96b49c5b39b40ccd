// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "drover/drover.h"
#include "fault/scenario_path.h"
#include "fault/watchdog.h"
#include "harness/deadline.h"

namespace drover_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;  // the sanitizer turns faults into its own reports
#else
constexpr bool kSanitized = false;
#endif

enum class Way { kKill, kExit, kExitNow, kAbort, kOverflow, kNull, kNoexcept, kDestructor, kChatter, kNone };

struct ThrowsInDestructor {
  ~ThrowsInDestructor() noexcept(false) { throw std::runtime_error("out of a destructor"); }
};

int overflow(int depth) {
  volatile char room[4096];
  room[0] = static_cast<char>(depth);
  return depth < 0 ? 0 : overflow(depth + 1) + room[0];  // 2^31 times 4 KiB
}

void throws() { throw std::runtime_error("out of noexcept"); }
void must_not_throw() noexcept { throws(); }

int die(Way way) {
  std::fprintf(stderr, "last words %d\n", static_cast<int>(way));
  switch (way) {
    case Way::kKill:
      kill(getpid(), SIGKILL);
      break;
    case Way::kExit:
      std::exit(3);
    case Way::kExitNow:
      _exit(4);
    case Way::kAbort:
      std::abort();
    case Way::kOverflow:
      return overflow(0);
    case Way::kNull:
      return *const_cast<volatile int*>(static_cast<int*>(nullptr));
    case Way::kNoexcept:
      must_not_throw();
      break;
    case Way::kDestructor:
      try {
        const ThrowsInDestructor thrower;
        throw std::logic_error("first");
      } catch (...) {
      }
      break;
    case Way::kChatter:
      for (int i = 0; i < 20'000; ++i) std::fprintf(stderr, "line %d of many\n", i);
      std::fprintf(stderr, "the very last line");
      kill(getpid(), SIGKILL);
      break;
    case Way::kNone:
      break;
  }
  return static_cast<int>(getpid());
}

int pid_of(int) { return static_cast<int>(getpid()); }
int same(int i) { return i; }

struct Death {
  Way way;
  const char* name;
  int signal;
  int code;
  const char* text;
};
constexpr Death kDeaths[] = {
    {Way::kKill, "Kill", SIGKILL, -1, "SIGKILL"},
    {Way::kExit, "Exit", 0, 3, "exited with code 3"},
    {Way::kExitNow, "ExitNow", 0, 4, "exited with code 4"},
    {Way::kAbort, "Abort", SIGABRT, -1, "SIGABRT"},
    {Way::kOverflow, "StackOverflow", SIGSEGV, -1, "SIGSEGV"},
    {Way::kNull, "NullPointer", SIGSEGV, -1, "SIGSEGV"},
    {Way::kNoexcept, "ThrowOutOfNoexcept", SIGABRT, -1, "out of noexcept"},
    {Way::kDestructor, "ThrowOutOfDestructor", SIGABRT, -1, "SIGABRT"},
};

class WorkerDeath : public testing::TestWithParam<Death> {};

void expect_loss(const drover::WorkerLost& lost, int pid, const Death& death) {
  const std::string what = lost.what();
  EXPECT_EQ(lost.pid(), pid) << what;
  EXPECT_FALSE(lost.killed_for_memory());
  if (kSanitized && death.way != Way::kKill && death.signal != 0) return;  // its report pushes all else out of the tail
  EXPECT_NE(what.find("last words"), std::string::npos) << what;
  EXPECT_EQ(lost.signal(), death.signal) << what;
  EXPECT_EQ(lost.exit_code(), death.code) << what;
  EXPECT_NE(what.find(death.text), std::string::npos) << what;
}

TEST_P(WorkerDeath, OfASubmittedTaskSaysHowAndThePoolGoesOn) {
  const Watchdog watchdog("submit", seconds(30));
  drover::Pool pool({.workers = 1});
  const int pid = pool.submit<pid_of>(0).get();
  try {
    pool.submit<die>(GetParam().way).get();
    FAIL() << "it should have died";
  } catch (const drover::WorkerLost& lost) {
    expect_loss(lost, pid, GetParam());
  }
  EXPECT_NE(pool.submit<pid_of>(0).get(), pid);
  EXPECT_TRUE(eventually(seconds(10), [&] { return pool.stats().workers.at(0).restarts == 1; }));
}

TEST_P(WorkerDeath, OfAMappedItemSaysHowAndTheRestArrives) {
  const Watchdog watchdog("map", seconds(30));
  drover::Pool pool({.workers = 1});
  const int pid = pool.submit<pid_of>(0).get();
  std::vector<Way> ways(9, Way::kNone);
  ways[4] = GetParam().way;
  auto results = pool.map<die>(ways, {.chunk = 3});
  std::vector<std::size_t> lost_items;
  for (auto it = results.begin(); it != results.end(); ++it) {
    try {
      EXPECT_EQ(*it == pid, it.index() < 4);
    } catch (const drover::WorkerLost& lost) {
      lost_items.push_back(it.index());
      expect_loss(lost, pid, GetParam());
      EXPECT_NE(std::string(lost.what()).find("item 4"), std::string::npos) << lost.what();
    }
  }
  EXPECT_EQ(lost_items, std::vector<std::size_t>{4});
}

INSTANTIATE_TEST_SUITE_P(All, WorkerDeath, testing::ValuesIn(kDeaths),
                         [](const auto& death) { return std::string(death.param.name); });

TEST(WorkerLost, HasTheLastLinesOfEndlessOutput) {
  const Watchdog watchdog("chatter", seconds(60));
  drover::Pool pool({.workers = 1});
  try {
    pool.submit<die>(Way::kChatter).get();
    FAIL() << "it should have died";
  } catch (const drover::WorkerLost& lost) {
    const std::string what = lost.what();
    EXPECT_NE(what.find("line 19999 of many\nthe very last line"), std::string::npos) << what;
    EXPECT_LT(what.size(), 5'000U);
  }
}

TEST(WorkerLost, ArrivesSoonAfterTheDeath) {
  const Watchdog watchdog("latency", seconds(60));
  drover::Pool pool({.workers = 2});
  std::vector<double> times;
  for (int i = 0; i < 15; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_THROW(pool.submit<die>(Way::kKill).get(), drover::WorkerLost);
    times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  }
  std::sort(times.begin(), times.end());
  std::printf("submit to WorkerLost: %.2f ms (median), %.2f ms (worst)\n", times[times.size() / 2], times.back());
  EXPECT_LE(times[times.size() / 2], 200);
}

/// Pids of the workers once all are ready.
std::vector<int> ready_workers(const drover::Pool& pool) {
  std::vector<int> pids;
  const bool all_ready = eventually(seconds(20), [&] {
    pids.clear();
    for (const drover::WorkerStats& worker : pool.stats().workers) {
      if (worker.ready && worker.pid > 0) pids.push_back(worker.pid);
    }
    return pids.size() == pool.stats().workers.size();
  });
  EXPECT_TRUE(all_ready);
  return pids;
}

void expect_usable(drover::Pool& pool) {
  int sum = 0;
  for (const int i : pool.map<same>(drover::range(0, 1000), {.ordered = false, .retries = 10})) sum += i;
  EXPECT_EQ(sum, 499'500);
}

TEST(Pool, ReplacesAnIdleWorkerThatWasKilled) {
  const Watchdog watchdog("idle", seconds(60));
  drover::Pool pool({.workers = 2});
  const int victim = ready_workers(pool).at(0);
  ASSERT_EQ(kill(victim, SIGKILL), 0);
  EXPECT_TRUE(eventually(seconds(20), [&] { return pool.stats().workers.at(0).restarts == 1; }));
  EXPECT_NE(ready_workers(pool).at(0), victim);
  expect_usable(pool);
}

TEST(Pool, OutlivesAllItsWorkers) {
  const Watchdog watchdog("all", seconds(60));
  drover::Pool pool({.workers = 4});
  for (int round = 0; round < 5; ++round) {
    for (const int pid : ready_workers(pool)) kill(pid, SIGKILL);  // one of the last round may be gone already
    expect_usable(pool);
  }
}

TEST(Pool, KnowsTheCauseWhenAllWorkersDieAtOnce) {
  const Watchdog watchdog("causes", seconds(60));
  for (int round = 0; round < 20; ++round) {
    drover::Pool pool({.workers = 4});
    auto results = pool.map<die>(std::vector<Way>(8, Way::kKill), {.ordered = false, .chunk = 1});
    int lost = 0;
    for (auto it = results.begin(); it != results.end(); ++it) {
      try {
        static_cast<void>(*it);
      } catch (const drover::WorkerLost& error) {
        ++lost;
        EXPECT_EQ(error.signal(), SIGKILL) << error.what();
      }
    }
    EXPECT_EQ(lost, 8);
  }
}

TEST(Pool, ReplacesWorkersKilledWhileTheyStart) {
  const Watchdog watchdog("starting", seconds(60));
  drover::Pool pool({.workers = 2});
  for (const drover::WorkerStats& worker : pool.stats().workers) {
    if (worker.pid > 0) kill(worker.pid, SIGKILL);
  }
  expect_usable(pool);
}

void dies_at_start(const std::string& log) {
  std::ofstream(log, std::ios::app) << getpid() << "\n";
  std::fprintf(stderr, "no licence found\n");
  _exit(17);
}

TEST(Pool, EndsWhenWorkersCannotStart) {
  const Watchdog watchdog("no start", seconds(60));
  const std::string log = std::filesystem::temp_directory_path() / ("starts-" + std::to_string(getpid()));
  {
    drover::Pool pool({.workers = 2, .initializer = drover::call<dies_at_start>(log)});
    auto future = pool.submit<same>(1);
    auto results = pool.map<same>(drover::range(0, 10));
    for (int way = 0; way < 2; ++way) {
      try {
        way == 0 ? static_cast<void>(future.get()) : static_cast<void>(results.collect());
        FAIL() << "the pool should have ended";
      } catch (const drover::WorkerLost& lost) {
        EXPECT_EQ(lost.exit_code(), 17);
        EXPECT_NE(std::string(lost.what()).find("no licence found"), std::string::npos) << lost.what();
      }
    }
    EXPECT_THROW(static_cast<void>(pool.submit<same>(2)), drover::WorkerLost);
  }
  std::ifstream file(log);
  const std::set<std::string> pids{std::istream_iterator<std::string>(file), {}};
  EXPECT_LE(pids.size(), 6U) << "a storm of starts";  // three times each of both
  std::filesystem::remove(log);
}

/// A worker that was stopped, continued when the test is over.
struct Stopped {
  explicit Stopped(int worker) : pid(worker) { kill(pid, SIGSTOP); }
  ~Stopped() { kill(pid, SIGCONT); }
  Stopped(const Stopped&) = delete;
  Stopped& operator=(const Stopped&) = delete;
  const int pid;
};

TEST(StoppedWorker, DoesNotKeepASubmittedTaskFromTheOthers) {
  const Watchdog watchdog("one submit", seconds(60));
  for (const std::size_t index : {0U, 1U}) {
    drover::Pool pool({.workers = 2, .grace = drover::Duration(0)});
    const Stopped stopped(ready_workers(pool).at(index));
    for (int i = 0; i < 5; ++i) {
      auto future = pool.submit<same>(i);
      ASSERT_TRUE(future.wait_for(seconds(5))) << "the other worker was not woken for task " << i;
      EXPECT_EQ(future.get(), i);
    }
  }
}

TEST(StoppedWorker, KeepsBackItsOwnChunkOnly) {
  const Watchdog watchdog("map", seconds(60));
  drover::Pool pool({.workers = 2, .grace = drover::Duration(0)});
  const Stopped stopped(ready_workers(pool).at(0));
  auto results = pool.map<same>(drover::range(0, 1000), {.ordered = false, .chunk = 1});
  int count = 0;
  for (const int i : results) {
    static_cast<void>(i);
    if (++count == 990) break;
  }
  EXPECT_EQ(count, 990);
}

TEST(WorkerLost, SaysWhenItWasKilledForMemory) {
  namespace fs = std::filesystem;
  std::ifstream own("/proc/self/cgroup");
  std::string line, path;
  while (std::getline(own, line)) {
    if (line.find(":memory:") != std::string::npos) path = "/sys/fs/cgroup/memory" + line.substr(line.rfind(':') + 1);
  }
  std::error_code error;
  const fs::path group = fs::path(path) / ("drover-test-" + std::to_string(getpid()));
  if (path.empty() || !fs::create_directory(group, error)) GTEST_SKIP() << "no cgroup (v1) of memory may be made here";
  std::ofstream(group / "memory.limit_in_bytes") << (200 << 20) << std::flush;
  std::ofstream(group / "memory.swappiness") << 0 << std::flush;
  const Family family;
  const std::string script = "echo $$ > " + (group / "cgroup.procs").string() + " && exec " + kScenario + " memory 400";
  const Outcome outcome = run({.program = "/bin/sh", .arguments = {"-c", script}, .environment = {family.variable()}});
  EXPECT_NE(outcome.out.find("killed for memory: "), std::string::npos) << outcome.out << outcome.err << outcome.signal;
  EXPECT_TRUE(family.gone_after(seconds(5)));
  EXPECT_TRUE(eventually(seconds(5), [&] { return rmdir(group.c_str()) == 0; }));
}

class Damage : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

/// Wrong answers and errors are all right; a crash and a hang of the parent are not.
TEST_P(Damage, OfSharedMemoryNeitherCrashesNorHangsTheParent) {
  const auto& [where, way] = GetParam();
  for (int seed = 1; seed <= 4; ++seed) {
    const Family family;
    Command command = scenario({"damage", where, std::to_string(seed), way}, family);
    command.limit = seconds(20);
    const Outcome outcome = run(command);
    EXPECT_FALSE(outcome.timed_out) << "hangs with seed " << seed << ": " << outcome.out << outcome.err;
    EXPECT_EQ(outcome.exit_code, 0) << "seed " << seed << ", signal " << outcome.signal << ": " << outcome.err;
    EXPECT_TRUE(family.gone_after(seconds(5)));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Damage,
                         testing::Combine(testing::Values("regions", "sparse-regions", "header", "sparse-header",
                                                          "all"),
                                          testing::Values("map", "submit")),
                         [](const auto& damage) {
                           std::string name = std::string(std::get<0>(damage.param)) + std::get<1>(damage.param);
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace drover_test
