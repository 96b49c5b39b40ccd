// SPDX-License-Identifier: Apache-2.0
#include "drover/os/thread_id.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>

#include "sync/child.h"

namespace drover_test {
namespace {

using drover::os::current_process_id;
using drover::os::current_thread_id;
using drover::os::Liveness;
using drover::os::liveness;
using drover::os::process_liveness;
using drover::os::ThreadId;

TEST(ThreadId, NamesTheCallingThread) {
  const ThreadId id = current_thread_id();
  EXPECT_EQ(drover::os::thread_number(id), syscall(SYS_gettid));
  EXPECT_EQ(id, current_thread_id());
  EXPECT_EQ(id & ~drover::os::kThreadIdMask, 0U) << "the free bits";
  EXPECT_EQ(liveness(id), Liveness::kAlive);
  EXPECT_EQ(liveness(id | 0x0FC0'0000U), Liveness::kAlive) << "the free bits do not matter";
}

TEST(ThreadId, TheFirstThreadStandsForTheProcess) { EXPECT_EQ(current_process_id(), current_thread_id()); }

TEST(ThreadId, AThreadHasItsOwnAndIsDeadWhenItEnded) {
  ThreadId other = 0;
  std::thread([&] {
    other = current_thread_id();
    EXPECT_EQ(liveness(other), Liveness::kAlive);
    EXPECT_NE(other, current_process_id());
  }).join();
  EXPECT_NE(other, current_thread_id());
  EXPECT_TRUE(eventually(std::chrono::seconds(2), [&] { return liveness(other) == Liveness::kDead; }));
}

TEST(ThreadId, IsAnotherOneInAFork) {
  const ThreadId mine = current_thread_id();
  const Common<std::atomic<ThreadId>> theirs, process;
  Child child([&] {
    *theirs = current_thread_id();
    *process = current_process_id();
    return true;
  });
  EXPECT_TRUE(child.succeeded());
  EXPECT_NE(*theirs, mine);
  EXPECT_EQ(drover::os::thread_number(*theirs), child.pid());
  EXPECT_EQ(*process, *theirs);
  EXPECT_EQ(liveness(*theirs), Liveness::kDead);
}

TEST(ThreadId, AZombieIsDead) {
  const Common<std::atomic<ThreadId>> theirs;
  Child child([&] {
    *theirs = current_thread_id();
    return true;
  });
  child.become_zombie();
  EXPECT_EQ(liveness(*theirs), Liveness::kDead);
  EXPECT_EQ(process_liveness(*theirs), Liveness::kDead);
}

TEST(ThreadId, AProcessLivesOnWithoutItsFirstThread) {
  const Common<std::atomic<ThreadId>> first;
  Child child([&] {
    *first = current_thread_id();
    std::thread([] {
      for (;;) pause();
    }).detach();
    syscall(SYS_exit, 0);  // this thread alone
    return false;
  });
  ASSERT_TRUE(eventually(std::chrono::seconds(5), [&] { return *first != 0 && liveness(*first) == Liveness::kDead; }));
  EXPECT_EQ(process_liveness(*first), Liveness::kAlive);
  child.kill();
  child.become_zombie();
  EXPECT_EQ(process_liveness(*first), Liveness::kDead);
}

TEST(ThreadId, ANumberThatSomebodyElseHasNowIsDead) {
  const ThreadId recycled = current_thread_id() ^ (ThreadId{1} << 32U);  // the same number, another start time
  EXPECT_EQ(liveness(recycled), Liveness::kDead);
}

TEST(ThreadId, NobodyIsDeadAndStrangersAreUnknown) {
  EXPECT_EQ(liveness(0), Liveness::kDead);
  EXPECT_EQ(liveness(current_thread_id() ^ (ThreadId{1} << 63U)), Liveness::kUnknown) << "another PID namespace";
}

}  // namespace
}  // namespace drover_test
