// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "drover/drover.h"
#include "drover/os/cpu.h"
#include "harness/deadline.h"
#include "harness/leak_check.h"
#include "harness/subprocess.h"
#include "pool/shared_counters.h"
#include "pool/worker_stats.h"

using namespace std::chrono_literals;
using drover_test::all_ready;
using drover_test::counters;
using drover_test::eventually;
using drover_test::SharedCounters;
using drover_test::total_restarts;

namespace {

int id(int x) { return x; }
int pid_of_worker() { return getpid(); }
int gated(const std::string& path) {
  counters(path)[0].fetch_add(1);
  drover_test::pass_gate(counters(path)[1]);
  return getpid();
}
void busy_for(int milliseconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  while (std::chrono::steady_clock::now() < end) {
  }
}
std::string variable(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? "unset" : value;
}
std::string process_name() {
  std::ifstream file("/proc/self/comm");
  std::string name;
  std::getline(file, name);
  return name;
}
std::string target_of(int descriptor) {
  return std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(descriptor)).string();
}
std::vector<int> open_descriptors() {
  std::vector<int> result;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    result.push_back(std::stoi(entry.path().filename()));
  }
  return result;
}
int exit_with(int code) { std::exit(code); }
int print_and_exit(const std::string& text) {
  std::cerr << text << std::endl;
  _exit(4);
}
int set_by_initializer = 0;
void set_up(int value, const std::string& path) {
  set_by_initializer = value;
  counters(path)[0].fetch_add(1);
}
int what_was_set() { return set_by_initializer; }
void fail_to_set_up(const std::string& path) {
  if (path.empty()) throw std::runtime_error("no licence for this solver");
  counters(path)[0].fetch_add(1);
  throw std::runtime_error("no licence for this solver");
}
void throw_an_int() { throw 42; }

TEST(Workers, AreAsManyAsTheCoresThatMayBeUsed) {
  const drover::Pool pool;
  EXPECT_EQ(pool.stats().workers.size(), drover::os::usable_cpus());
}

TEST(Workers, HaveDistinctPidsAndBecomeReady) {
  drover::Pool pool({.workers = 3});
  ASSERT_TRUE(eventually(10s, [&] { return all_ready(pool); }));
  std::set<int> pids;
  for (const auto& worker : pool.stats().workers) {
    EXPECT_GT(worker.pid, 0);
    EXPECT_EQ(kill(worker.pid, 0), 0);
    EXPECT_GT(worker.memory_bytes, 100'000u);
    EXPECT_GE(worker.peak_memory_bytes, worker.memory_bytes);
    EXPECT_EQ(worker.restarts, 0u);
    pids.insert(worker.pid);
  }
  EXPECT_EQ(pids.size(), 3u);
  EXPECT_EQ(pids.count(pool.submit<pid_of_worker>().get()), 1u);
}

TEST(Workers, CountTheirTasks) {
  drover::Pool pool({.workers = 2});
  static_cast<void>(pool.map<id>(drover::range(0, 1000)).collect());
  for (int i = 0; i < 10; ++i) pool.submit<id>(i).get();
  EXPECT_TRUE(eventually(5s, [&] {
    std::uint64_t tasks = 0;
    for (const auto& worker : pool.stats().workers) tasks += worker.tasks;
    return tasks == 1010;
  }));
}

TEST(Workers, BusyTimeIsTheTimeOfTasks) {
  drover::Pool pool({.workers = 1});
  pool.submit<busy_for>(1).get();
  const double before = pool.stats().workers[0].busy.count();
  pool.submit<busy_for>(200).get();
  const double busy = pool.stats().workers[0].busy.count() - before;
  EXPECT_GT(busy, 0.15);
  std::this_thread::sleep_for(100ms);  // idle time, which must not count
  EXPECT_LT(pool.stats().workers[0].busy.count() - before - busy, 0.08);
}

TEST(Workers, ABusyReplacementIsBusyFromItsStart) {
  SharedCounters shared;
  drover::Pool pool({.workers = 1});
  pool.submit<id>(1).get();
  ASSERT_TRUE(eventually(5s, [&] { return pool.stats().workers[0].ready; }));
  const int old = pool.stats().workers[0].pid;
  std::this_thread::sleep_for(50ms);  // it falls asleep, and its note of that outlives it
  auto future = pool.submit<gated>(shared.path());
  ASSERT_TRUE(eventually(5s, [&] { return shared[0] == 1; }));
  kill(old, SIGKILL);
  EXPECT_THROW(future.get(), drover::WorkerLost);
  auto next = pool.submit<gated>(shared.path());
  ASSERT_TRUE(eventually(5s, [&] { return shared[0] == 2; }));
  EXPECT_TRUE(eventually(2s, [&] { return pool.stats().workers[0].busy.count() > 0.05; }));
  shared[1] = 1;
  EXPECT_NE(next.get(), old);
}

TEST(Workers, QueueDepthAndQueuedShowWhatIsClaimedAndWhatWaits) {
  SharedCounters shared;
  drover::Pool pool({.workers = 2});
  std::vector<drover::Future<int>> futures;
  for (int i = 0; i < 7; ++i) futures.push_back(pool.submit<gated>(shared.path()));
  ASSERT_TRUE(eventually(10s, [&] { return shared[0] == 2; }));
  const drover::PoolStats stats = pool.stats();
  EXPECT_EQ(stats.queued, 5u);
  EXPECT_EQ(stats.workers[0].queue_depth, 1u);
  EXPECT_EQ(stats.workers[1].queue_depth, 1u);
  shared[1] = 1;
  for (auto& future : futures) future.get();
  EXPECT_EQ(pool.stats().queued, 0u);
}

TEST(Workers, QueueDepthAndQueuedCountMapsToo) {
  SharedCounters shared;
  drover::Pool pool({.workers = 2});
  auto results = pool.map<gated>(std::vector<std::string>(20, shared.path()), {.chunk = 1, .window = 8});
  ASSERT_TRUE(eventually(10s, [&] { return shared[0] == 2; }));
  const drover::PoolStats stats = pool.stats();
  EXPECT_EQ(stats.queued, 6u);
  EXPECT_EQ(stats.workers[0].queue_depth + stats.workers[1].queue_depth, 2u);
  shared[1] = 1;
  EXPECT_EQ(results.collect().size(), 20u);
}

TEST(Workers, ADeathIsCountedAndReplaced) {
  drover::Pool pool({.workers = 2});
  try {
    pool.submit<print_and_exit>("last words").get();
    FAIL();
  } catch (const drover::WorkerLost& error) {
    const std::string text = error.what();
    EXPECT_EQ(error.exit_code(), 4);
    EXPECT_EQ(error.signal(), 0);
    EXPECT_GT(error.pid(), 0);
    EXPECT_NE(text.find("last words"), std::string::npos) << text;
    EXPECT_NE(text.find("code 4"), std::string::npos) << text;
    EXPECT_NE(text.find("print_and_exit"), std::string::npos) << text;
  }
  EXPECT_TRUE(eventually(10s, [&] { return total_restarts(pool) == 1 && all_ready(pool); }));
}

TEST(Workers, NoExitCodeOfATaskEndsThePool) {
  drover::Pool pool({.workers = 1});
  for (const int code : {0, 1, 121, 255}) {
    try {
      pool.submit<exit_with>(code).get();
      FAIL();
    } catch (const drover::WorkerLost& error) {
      EXPECT_EQ(error.exit_code(), code);
    }
    EXPECT_EQ(pool.submit<id>(5).get(), 5) << "after exit code " << code;
  }
}

TEST(Workers, InnerThreadLimitsShareTheCores) {
  const std::size_t cores = drover::os::usable_cpus();
  setenv("OPENBLAS_NUM_THREADS", "7", 1);
  {
    drover::Pool pool({.workers = cores});
    EXPECT_EQ(pool.submit<variable>("OMP_NUM_THREADS").get(), "1");
    EXPECT_EQ(pool.submit<variable>("MKL_NUM_THREADS").get(), "1");
    EXPECT_EQ(pool.submit<variable>("OPENBLAS_NUM_THREADS").get(), "7") << "the user's";
  }
  {
    drover::Pool pool({.workers = 1});
    EXPECT_EQ(pool.submit<variable>("OMP_NUM_THREADS").get(), std::to_string(cores));
  }
  unsetenv("OPENBLAS_NUM_THREADS");
  drover::Pool pool({.workers = 50});
  EXPECT_EQ(pool.submit<variable>("OMP_NUM_THREADS").get(), "1");
  EXPECT_EQ(std::getenv("OMP_NUM_THREADS"), nullptr) << "only the workers'";
}

TEST(Workers, TheInitializerRunsOnceInEachAlsoInReplacements) {
  SharedCounters shared;
  drover::Pool pool({.workers = 2, .initializer = drover::call<set_up>(33, shared.path())});
  ASSERT_TRUE(eventually(10s, [&] { return all_ready(pool); }));
  EXPECT_EQ(shared[0], 2);
  for (int i = 0; i < 20; ++i) ASSERT_EQ(pool.submit<what_was_set>().get(), 33);
  kill(pool.stats().workers[0].pid, SIGKILL);
  ASSERT_TRUE(eventually(10s, [&] { return total_restarts(pool) == 1 && all_ready(pool); }));
  EXPECT_EQ(shared[0], 3);
  for (int i = 0; i < 20; ++i) ASSERT_EQ(pool.submit<what_was_set>().get(), 33);
}

TEST(Workers, AnInitializerThatFailsThreeTimesEndsThePoolWithItsText) {
  SharedCounters shared;
  drover::Pool pool({.workers = 1, .initializer = drover::call<fail_to_set_up>(shared.path())});
  auto future = pool.submit<id>(1);
  EXPECT_TRUE(eventually(10s, [&] { return future.ready(); })) << "get throws at once by now";
  try {
    future.get();
    FAIL();
  } catch (const drover::WorkerLost& error) {
    EXPECT_NE(std::string(error.what()).find("no licence for this solver"), std::string::npos) << error.what();
  }
  EXPECT_EQ(shared[0], 3);
  EXPECT_THROW(static_cast<void>(pool.submit<id>(1)), drover::WorkerLost);
  EXPECT_THROW(static_cast<void>(pool.map<id>(drover::range(0, 3)).collect()), drover::WorkerLost);
}

TEST(Workers, AnInitializerThatThrowsNoExceptionEndsThePool) {
  drover::Pool pool({.workers = 2, .initializer = drover::call<throw_an_int>()});
  EXPECT_THROW(pool.submit<id>(1).get(), drover::WorkerLost);
}

TEST(Workers, TwoPoolsInOneProcess) {
  drover::Pool one({.workers = 1}), two({.workers = 1});
  const int pid_one = one.submit<pid_of_worker>().get(), pid_two = two.submit<pid_of_worker>().get();
  EXPECT_NE(pid_one, pid_two);
  auto a = one.map<id>(drover::range(0, 500));
  auto b = two.map<id>(drover::range(0, 500));
  EXPECT_EQ(a.collect(), b.collect());
  kill(pid_one, SIGKILL);
  EXPECT_EQ(two.submit<pid_of_worker>().get(), pid_two);
}

TEST(Workers, AreNamedAndHaveNoStdin) {
  drover::Pool pool({.workers = 1});
  EXPECT_EQ(pool.submit<process_name>().get(), "drover-worker-0");
  EXPECT_EQ(pool.submit<target_of>(0).get(), "/dev/null");
}

TEST(Workers, InheritNoOtherDescriptors) {
  const int pipe_like = open("/dev/zero", O_RDONLY);  // not close-on-exec
  drover::Pool pool({.workers = 1});
  const std::vector<int> open_ones = pool.submit<open_descriptors>().get();
  close(pipe_like);
  EXPECT_LE(open_ones.size(), 8u);
  for (const int fd : open_ones) EXPECT_LT(fd, 20);
}

TEST(Workers, SigintIsTheParentsAffair) {
  drover::Pool pool({.workers = 1});
  const int pid = pool.submit<pid_of_worker>().get();
  kill(pid, SIGINT);
  EXPECT_EQ(pool.submit<pid_of_worker>().get(), pid);
  EXPECT_EQ(total_restarts(pool), 0u);
}

TEST(Workers, UpToAThousandAndNoMore) {
  EXPECT_THROW(drover::Pool({.workers = 1025}), drover::InvalidArgument);
  EXPECT_THROW(drover::Pool({.workers = -1}), drover::InvalidArgument);
  EXPECT_THROW(drover::Pool({.grace = -1s}), drover::InvalidArgument);
}

std::string print_both(const std::string& text) {
  std::cout << "out " << text << std::endl;
  std::cerr << "err " << text << std::endl;
  return target_of(1);
}

void nap() { std::this_thread::sleep_for(60s); }

int probe(const std::string& mode) {
  if (mode == "no-init") {
    try {
      drover::Pool pool;
    } catch (const drover::InvalidArgument& error) {
      std::cout << error.what() << std::endl;
      return 3;
    }
  }
  const auto output = mode == "inherit" ? drover::Output::kInherit : drover::Output::kForward;
  drover::Pool pool({.workers = 1, .output = output});
  if (mode == "ready") {
    auto future = pool.submit<nap>();
    std::cout << future.ready();
    kill(getpid(), SIGINT);
    std::cout << future.ready() << std::endl;
    return 0;
  }
  const std::string where = pool.submit<print_both>("of the worker").get();
  std::cout << (where == target_of(1) ? "the same stream" : "another stream") << std::endl;
  try {
    pool.submit<print_and_exit>("last words").get();
  } catch (const drover::WorkerLost& error) {
    std::cout << "[" << error.what() << "]" << std::endl;
  }
  return 0;
}

drover_test::Outcome run_probe(const std::string& mode) {
  return drover_test::run({.program = std::filesystem::read_symlink("/proc/self/exe"), .arguments = {"--probe", mode}});
}

TEST(Workers, WithoutInitAPoolSaysWhatToWrite) {
  const auto outcome = run_probe("no-init");
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_NE(outcome.out.find("drover::init(argc, argv)"), std::string::npos) << outcome.out;
}

TEST(Workers, AfterASignalEveryFutureIsReadyToThrow) {
  const auto outcome = run_probe("ready");
  EXPECT_EQ(outcome.out, "01\n") << outcome.err;
}

TEST(Workers, OutputIsForwardedByDefault) {
  const auto outcome = run_probe("forward");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_NE(outcome.out.find("out of the worker\n"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.err.find("err of the worker\n"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.out.find("another stream"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.err.find("last words"), std::string::npos) << outcome.err;
}

TEST(Workers, OutputCanBeInherited) {
  const auto outcome = run_probe("inherit");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_NE(outcome.out.find("the same stream"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.err.find("last words"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.out.find("last words"), std::string::npos) << "no tail is known: " << outcome.out;
}

}  // namespace

int main(int argc, char** argv) {
  const bool is_probe = argc == 3 && std::string(argv[1]) == "--probe";
  signal(SIGINT, SIG_DFL);
  if (!is_probe || std::string(argv[2]) != "no-init") drover::init(argc, argv);
  if (is_probe) return probe(argv[2]);
  testing::InitGoogleTest(&argc, argv);
  drover_test::install_leak_check();
  return RUN_ALL_TESTS();
}
