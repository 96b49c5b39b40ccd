// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "drover/base/errors.h"
#include "drover/pool/pool.h"
#include "harness/deadline.h"

/// Programs that fork, set handlers and change their environment beside Drover.
namespace {

using namespace std::chrono_literals;
using drover_test::eventually;

int add_one(int x) { return x + 1; }
int pid_of_worker(int) { return getpid(); }
int hang(int) {
  for (;;) pause();
}
bool has_variable(int) { return std::getenv("DROVER_TEST_LATE") != nullptr; }

/// What `body` gives, run in a fork of this process; by which signal it ended, negative.
template <class Body>
int in_fork(const Body& body) {
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(30);
    _exit(body());
  }
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

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
