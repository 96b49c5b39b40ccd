// SPDX-License-Identifier: Apache-2.0
#include "drover/os/thread_id.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>

#include "drover/os/process_id.h"
#include "sync/child.h"

namespace drover_test {
namespace {

using drover::os::current_process_id;
using drover::os::current_thread_id;
using drover::os::Liveness;
using drover::os::liveness;
using drover::os::liveness_of_number;
using drover::os::process_liveness;
using drover::os::ProcessId;
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

/// Also when it asks who it is only then.
TEST(ProcessId, IsThatOfAProcessWithoutItsFirstThread) {
  const Common<ProcessId> id;
  const Common<std::atomic<bool>> known;
  Child child([&] {
    const ThreadId first = current_thread_id();
    std::thread([&, first] {
      while (liveness(first) != Liveness::kDead) std::this_thread::yield();
      *id = ProcessId::current();
      *known = true;
      for (;;) pause();
    }).detach();
    syscall(SYS_exit, 0);  // this thread alone
    return false;
  });
  ASSERT_TRUE(eventually(std::chrono::seconds(5), [&] { return known->load(); }));
  EXPECT_EQ(id->pid, child.pid());
  EXPECT_EQ(id->namespaces, ProcessId::current().namespaces);
  EXPECT_EQ(liveness(*id), Liveness::kAlive);
  EXPECT_EQ(liveness_of_number(child.pid()), Liveness::kAlive);
  EXPECT_EQ(drover::os::process_start_time(child.pid()), id->start_time);
  child.kill();
  child.become_zombie();
  EXPECT_EQ(liveness(*id), Liveness::kDead);
  child.wait();
  EXPECT_EQ(liveness(*id), Liveness::kDead);
  EXPECT_EQ(liveness_of_number(child.pid()), Liveness::kDead);
}

TEST(ProcessId, WhoCannotBeSeenIsNotDead) {
  const ProcessId parent = ProcessId::current();
  const ThreadId thread = current_process_id();
  Child child([&] {
    static_cast<void>(ProcessId::current());
    static_cast<void>(current_thread_id());
    const rlimit none{.rlim_cur = 0, .rlim_max = 0};  // so that /proc/PID/stat cannot be opened, as under hidepid
    setrlimit(RLIMIT_NOFILE, &none);
    return liveness(parent) == Liveness::kUnknown && process_liveness(thread) == Liveness::kUnknown;
  });
  EXPECT_TRUE(child.succeeded());
}

TEST(ProcessId, OfOtherNamespacesIsUnknownAndARecycledNumberIsDead) {
  const ProcessId mine = ProcessId::current();
  EXPECT_EQ(liveness(mine), Liveness::kAlive);
  for (const unsigned bit : {0U, 40U}) {  // the PID namespace, the time namespace
    ProcessId other = mine;
    other.namespaces ^= std::uint64_t{1} << bit;
    EXPECT_EQ(liveness(other), Liveness::kUnknown);
  }
  ProcessId recycled = mine;
  ++recycled.start_time;
  EXPECT_EQ(liveness(recycled), Liveness::kDead);
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
