// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include "drover/base/errors.h"
#include "drover/pool/pool.h"
#include "drover/worker/process.h"
#include "harness/deadline.h"
#include "harness/in_fork.h"

/// Programs that fork, set handlers and change their environment beside Drover.
namespace {

using namespace std::chrono_literals;
using drover_test::eventually;
using drover_test::in_fork;
using drover_test::is_refused;

int add_one(int x) { return x + 1; }
int pid_of_worker(int) { return getpid(); }
int hang(int) {
  for (;;) pause();
}
bool has_variable(int) { return std::getenv("DROVER_TEST_LATE") != nullptr; }

TEST(Fork, MayHaveAPoolOfItsOwn) {
  drover::Pool pool({.workers = 1});
  EXPECT_EQ(pool.submit<add_one>(1).get(), 2);
  const int result = in_fork([] {
    drover::Pool own({.workers = 1});
    return own.submit<add_one>(40).get();
  });
  EXPECT_EQ(result, 41);
  EXPECT_EQ(pool.submit<add_one>(2).get(), 3) << "and the parent's is as it was";
}

void wait_until_gone(int descriptor_of_parent) {
  const std::string path = "/proc/" + std::to_string(getppid()) + "/fd/" + std::to_string(descriptor_of_parent);
  std::ifstream(path).get();  // until the parent has closed the pipe, or given a byte
}

/// A process that ends when it is told to.
struct Waiting {
  Waiting() {
    if (pipe2(ends, O_CLOEXEC) != 0) std::abort();
    process = drover::spawn<wait_until_gone>(ends[0]);
  }
  ~Waiting() {
    close(ends[0]);
    close(ends[1]);
  }
  void end() const { ASSERT_EQ(write(ends[1], "x", 1), 1); }
  int ends[2];
  drover::Process process;
};

TEST(Fork, RefusesEveryCallOfAProcess) {
  Waiting child;
  drover::Process& process = child.process;
  EXPECT_EQ(in_fork([&] {
              bool all = is_refused([&] { process.join(); });
              all = all && is_refused([&] { process.join_for(drover::Duration(100)); });
              all = all && is_refused([&] { static_cast<void>(process.exit_status()); });
              all = all && is_refused([&] { process.terminate(); });
              all = all && is_refused([&] { process.kill(); });
              all = all && is_refused([&] { static_cast<void>(process.pid()); });
              return all ? 5 : 6;
            }),
            5);
  child.end();
  process.join();
  EXPECT_EQ(process.exit_status()->code, 0);
}

TEST(Fork, DropsAProcessThatAnotherThreadWaitsFor) {
  Waiting child;
  std::atomic<bool> waits{false};
  std::thread waiter([&] {
    waits = true;
    child.process.join();
  });
  EXPECT_TRUE(eventually(10s, [&] { return waits.load(); }));
  int result = 5;
  for (int i = 0; i < 50 && result == 5; ++i) {  // one of them finds the other thread in its wait
    result = in_fork([&] {
      { const drover::Process dropped = std::move(child.process); }
      return 5;
    });
  }
  EXPECT_EQ(result, 5);
  child.end();
  waiter.join();
  EXPECT_EQ(child.process.exit_status()->code, 0);
}

/// What a pool keeps for each of its workers.
TEST(Environment, IsNotKeptForEachWorker) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer has an allocator of its own";
#endif
  constexpr int kVariables = 500;
  constexpr std::size_t kWorkers = 8, kLength = 200;
  const auto name = [](int i) { return "DROVER_TEST_MANY_" + std::to_string(i); };
  for (int i = 0; i < kVariables; ++i) setenv(name(i).c_str(), std::string(kLength, 'x').c_str(), 1);
  const std::size_t before = mallinfo2().uordblks;
  {
    drover::Pool pool({.workers = kWorkers});
    EXPECT_EQ(pool.submit<add_one>(1).get(), 2);
    EXPECT_LT(mallinfo2().uordblks - before, 4 * kVariables * kLength) << "the crew's own copy, and not one for each";
  }
  for (int i = 0; i < kVariables; ++i) unsetenv(name(i).c_str());
}

TEST(Fork, EndsBySigterm) {
  drover::Pool pool({.workers = 1});
  EXPECT_EQ(pool.submit<add_one>(1).get(), 2);
  EXPECT_EQ(in_fork([] {
              raise(SIGTERM);
              return 0;
            }),
            -SIGTERM);
}

volatile sig_atomic_t handled = 0;

TEST(Signals, OneLeavesTheUsersHandlerOfTheOtherAlone) {
  const int result = in_fork([] {
    signal(SIGTERM, [](int) { handled = handled + 1; });
    drover::Pool pool({.workers = 1});
    try {
      auto future = pool.submit<hang>(0);
      raise(SIGINT);
      future.get();
    } catch (const drover::Interrupted&) {
      raise(SIGTERM);
      return static_cast<int>(handled);
    }
    return 99;
  });
  EXPECT_EQ(result, 1);
}

TEST(Environment, IsThatOfTheTimeWhenThePoolWasMade) {
  drover::Pool pool({.workers = 1});
  const int pid = pool.submit<pid_of_worker>(0).get();
  setenv("DROVER_TEST_LATE", "1", 1);  // the thread that starts workers must not read it at any time
  ASSERT_EQ(kill(pid, SIGKILL), 0);
  EXPECT_TRUE(eventually(20s, [&] {
    try {
      return pool.submit<pid_of_worker>(0).get() != pid;
    } catch (const drover::WorkerLost&) {
      return false;
    }
  }));
  EXPECT_FALSE(pool.submit<has_variable>(0).get());
  unsetenv("DROVER_TEST_LATE");
}

double cpu_seconds() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  return static_cast<double>(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

TEST(Tracer, ThatHoldsADeadWorkerCostsNothing) {
  drover::Pool pool({.workers = 1});
  const int worker = pool.submit<pid_of_worker>(0).get();
  auto future = pool.submit<hang>(0);
  ASSERT_TRUE(eventually(20s, [&] { return pool.stats().workers[0].queue_depth == 1; })) << "it has not begun";
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t tracer = fork();
  if (tracer == 0) {
    alarm(30);
    const char seized = ptrace(PTRACE_SEIZE, worker, nullptr, nullptr) == 0 ? 'y' : 'n';
    if (write(ready[1], &seized, 1) != 1) _exit(1);
    for (;;) pause();
  }
  char seized = 0;
  ASSERT_EQ(read(ready[0], &seized, 1), 1);
  close(ready[0]);
  close(ready[1]);
  if (seized == 'y') {
    ASSERT_EQ(kill(worker, SIGKILL), 0);
    const double before = cpu_seconds();
    EXPECT_FALSE(eventually(500ms, [&] { return future.ready(); })) << "the tracer has not let go of it";
    EXPECT_LT(cpu_seconds() - before, 0.25);
  } else {
    ASSERT_EQ(kill(worker, SIGKILL), 0);
  }
  kill(tracer, SIGKILL);
  waitpid(tracer, nullptr, 0);
  EXPECT_THROW(future.get(), drover::WorkerLost);
  if (seized != 'y') GTEST_SKIP() << "no process may be traced here";
}

}  // namespace
