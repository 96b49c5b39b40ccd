// SPDX-License-Identifier: Apache-2.0
// Workers that die at their start, or cannot be started.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <fstream>
#include <string>

#include "drover/drover.h"
#include "harness/deadline.h"
#include "pool/shared_counters.h"
#include "pool/worker_stats.h"

using namespace std::chrono_literals;
using drover_test::all_ready;
using drover_test::counters;
using drover_test::eventually;
using drover_test::SharedCounters;
using drover_test::total_restarts;

namespace {

std::atomic<int> refusals{0};  // starts of processes that fail as with a full process table

}  // namespace

extern "C" int posix_spawn(pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions,
                           const posix_spawnattr_t* attributes, char* const argv[], char* const envp[]) {
  static auto* const real = reinterpret_cast<decltype(&posix_spawn)>(dlsym(RTLD_NEXT, "posix_spawn"));
  if (refusals.load() > 0 && refusals.fetch_sub(1) > 0) return EAGAIN;
  return real(pid, path, actions, attributes, argv, envp);
}

namespace {

int id(int i) { return i; }
int pid_of_worker() { return getpid(); }

/// The worker is ready, and ends a little later by itself.
void end_soon(const std::string& path) {
  counters(path)[0].fetch_add(1);
  const itimerval soon{.it_interval = {}, .it_value = {.tv_sec = 0, .tv_usec = 30'000}};
  signal(SIGALRM, SIG_DFL);
  setitimer(ITIMER_REAL, &soon, nullptr);
}

void die_at_first(const std::string& path) {
  std::ifstream file("/proc/self/comm");
  std::string name;
  file >> name;
  if (counters(path)[std::stoul(name.substr(name.rfind('-') + 1))].fetch_add(1) == 0) _exit(3);
}

TEST(Starts, AWorkerThatEndsBeforeItsFirstTaskThreeTimesEndsThePool) {
  SharedCounters shared;
  drover::Pool pool({.workers = 1, .initializer = drover::call<end_soon>(shared.path())});
  std::string why;
  ASSERT_TRUE(eventually(20s,
                         [&] {
                           try {
                             static_cast<void>(pool.map<id>(drover::range(0, 0)));
                             return false;
                           } catch (const drover::WorkerLost& error) {
                             why = error.what();
                             return true;
                           }
                         }))
      << "a storm of " << shared[0] << " starts";
  EXPECT_NE(why.find("SIGALRM"), std::string::npos) << why;
  EXPECT_EQ(shared[0], 3);
}

TEST(Starts, DeathsOfDifferentWorkersEndNoPool) {
  SharedCounters shared;
  drover::Pool pool({.workers = 6, .initializer = drover::call<die_at_first>(shared.path())});
  EXPECT_EQ(pool.map<id>(drover::range(0, 100), {.retries = 10}).collect().size(), 100u);
  EXPECT_TRUE(eventually(10s, [&] { return total_restarts(pool) == 6 && all_ready(pool); }));
}

TEST(Starts, AnIdleWorkerMayBeKilledAsOftenAsSomebodyLikes) {
  drover::Pool pool({.workers = 1});
  for (std::size_t times = 0; times < 5; ++times) {
    ASSERT_TRUE(eventually(10s, [&] { return total_restarts(pool) == times && all_ready(pool); }));
    kill(pool.stats().workers[0].pid, SIGKILL);
  }
  EXPECT_EQ(pool.map<id>(drover::range(0, 100)).collect().size(), 100u);
}

TEST(Starts, AFullProcessTableIsWaitedFor) {
  static std::atomic<int> warnings{0};
  warnings = 0;
  drover::set_log([](drover::LogLevel, std::string_view text) {
    warnings += text.find("cannot be started now") != std::string_view::npos ? 1 : 0;
  });
  {
    drover::Pool pool({.workers = 2});
    ASSERT_TRUE(eventually(10s, [&] { return all_ready(pool); }));
    refusals = 3;
    const int victim = pool.submit<pid_of_worker>().get();
    kill(victim, SIGKILL);
    EXPECT_TRUE(eventually(10s, [&] { return total_restarts(pool) == 1 && all_ready(pool); }));
    EXPECT_LE(refusals, 0);
    EXPECT_EQ(pool.map<id>(drover::range(0, 100), {.retries = 5}).collect().size(), 100u);
  }
  drover::set_log(nullptr);
  EXPECT_EQ(warnings, 1);
}

}  // namespace
