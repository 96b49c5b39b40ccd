// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>

#include "drover/base/errors.h"
#include "drover/health/health.h"
#include "drover/health/probe/process_probe.h"
#include "harness/deadline.h"

namespace {

using namespace drover::health;
using drover_test::eventually;

/// A child that does what it is told; killed and reaped at the end.
class Child {
 public:
  explicit Child(const std::function<void()>& work) : pid_(fork()) {
    if (pid_ == 0) {
      work();
      _exit(0);
    }
  }
  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  int pid() const { return pid_; }

 private:
  const pid_t pid_;
};

void sleep_for_ever() {
  for (;;) pause();
}

/// What the real /proc says about one process.
struct Look {
  HostSample sample;
  const ProcessBrief* brief = nullptr;
  const ProcessDetail* detail = nullptr;

  explicit Look(int pid) {
    ProcessProbe probe("");
    probe.list(sample);
    probe.describe(sample, {pid}, true);
    brief = find_process(sample, pid);
    detail = find_detail(sample, pid);
  }
  char state() const { return brief == nullptr ? '-' : brief->state; }
};

TEST(RealProcess, AZombieIsSeenWithItsParent) {
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const Child parent([&] {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    if (write(pipe_ends[1], &child, sizeof child) < 0) _exit(1);
    sleep_for_ever();
  });
  pid_t zombie = 0;
  ASSERT_EQ(read(pipe_ends[0], &zombie, sizeof zombie), static_cast<ssize_t>(sizeof zombie));
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  EXPECT_TRUE(eventually(std::chrono::seconds(5), [&] { return Look(zombie).state() == 'Z'; }));
  const Look look(zombie);
  EXPECT_EQ(look.brief->parent, parent.pid());
  EXPECT_EQ(look.detail->command, "");
}

/// Ends the first thread of this process, and no other.
void leave_a_thread_behind() {
  pthread_t thread{};
  if (pthread_create(
          &thread, nullptr,
          [](void*) -> void* {
            sleep_for_ever();
            return nullptr;
          },
          nullptr) != 0)
    _exit(1);
  syscall(SYS_exit, 0);  // pthread_exit would unwind, through frames of the test
}

TEST(RealProcess, AZombieIsSeenWithItsThreadThatLives) {
  const Child child(leave_a_thread_behind);
  EXPECT_TRUE(eventually(std::chrono::seconds(5), [&] { return Look(child.pid()).state() == 'Z'; }));
  const Look look(child.pid());
  ASSERT_NE(look.detail, nullptr);
  EXPECT_EQ(look.brief->threads, 2);
  EXPECT_EQ(look.detail->first.tid, child.pid());
  EXPECT_EQ(look.detail->first.state, 'Z');
  EXPECT_TRUE(std::any_of(look.detail->threads.begin(), look.detail->threads.end(),
                          [](const ThreadSample& thread) { return thread.state == 'S'; }));
  EXPECT_EQ(kill(child.pid(), SIGTERM), 0);  // as is advised: it reaches the thread
  EXPECT_TRUE(eventually(std::chrono::seconds(5), [&] {
    const Look again(child.pid());
    return again.state() == 'Z' && again.brief->threads == 1;
  }));
}

TEST(RealProcess, AStoppedOneIsSeen) {
  const Child child(sleep_for_ever);
  kill(child.pid(), SIGSTOP);
  EXPECT_TRUE(eventually(std::chrono::seconds(5), [&] { return Look(child.pid()).state() == 'T'; }));
}

TEST(RealProcess, UninterruptibleIsSeenWithItsPlace) {
  // A vfork parent sleeps uninterruptibly until its child executes or ends; the child only sleeps.
  const Child child([] {
    setpgid(0, 0);
    if (vfork() == 0) {
      for (;;) pause();
    }
  });
  EXPECT_TRUE(eventually(std::chrono::seconds(5), [&] { return Look(child.pid()).state() == 'D'; }));
  const Look look(child.pid());
  ASSERT_NE(look.detail, nullptr);
  ASSERT_FALSE(look.detail->threads.empty());
  EXPECT_EQ(look.detail->threads.front().state, 'D');
  kill(-child.pid(), SIGKILL);
}

TEST(RealProcess, AnOrphanThatHoldsADeviceFileIsFound) {
  const std::string device = "/dev/nvidia9990";  // no such GPU anywhere: a plain file stands in for it
  const int made = open(device.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (made < 0) GTEST_SKIP() << "needs to write to /dev";
  close(made);
  int pipe_ends[2];
  ASSERT_EQ(pipe2(pipe_ends, O_CLOEXEC), 0);
  pid_t orphan = 0;
  {
    const Child parent([&] {
      const pid_t child = fork();
      if (child == 0) {
        if (open(device.c_str(), O_RDWR) < 0) _exit(1);
        const pid_t self = getpid();
        if (write(pipe_ends[1], &self, sizeof self) < 0) _exit(1);
        sleep_for_ever();
      }
      sleep_for_ever();
    });
    ASSERT_EQ(read(pipe_ends[0], &orphan, sizeof orphan), static_cast<ssize_t>(sizeof orphan));
  }
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  HostSample sample;
  ProcessProbe probe("");
  probe.list(sample);
  const ProcessBrief* const brief = find_process(sample, orphan);
  const HolderScan scan = probe.find_holders(sample);
  kill(orphan, SIGKILL);
  unlink(device.c_str());
  ASSERT_NE(brief, nullptr);
  EXPECT_NE(brief->parent, getpid());
  bool found = false;
  for (const Holder& holder : scan.holders)
    found = found || (holder.pid == orphan && holder.minors == std::vector<int>{9990});
  EXPECT_TRUE(found);
}

TEST(RealProcess, TheEnvironmentTellsTheRank) {
  const Child child([] {
    setenv("RANK", "3", 1);
    setenv("WORLD_SIZE", "8", 1);
    execl("/bin/sleep", "sleep", "100", nullptr);
  });
  EXPECT_TRUE(eventually(std::chrono::seconds(5), [&] {
    const Look look(child.pid());
    return look.detail != nullptr && look.detail->environment.count("RANK") > 0;
  }));
  const Look look(child.pid());
  EXPECT_EQ(look.detail->environment.at("WORLD_SIZE"), "8");
  EXPECT_EQ(look.detail->command, "sleep 100");
  EXPECT_EQ(look.detail->uid, getuid());
  EXPECT_TRUE(look.detail->io_bytes);
}

TEST(RealProcess, AListeningSocketIsSeen) {
  const Child child([] {
    execl("/usr/bin/python3", "python3", "-c",
          "import socket,time\ns=socket.socket()\nfor p in range(6000,9999):\n try: "
          "s.bind(('127.0.0.1',p)); break\n except OSError: pass\ns.listen()\ntime.sleep(100)",
          nullptr);
  });
  EXPECT_TRUE(eventually(std::chrono::seconds(10), [&] {
    const Look look(child.pid());
    return look.detail != nullptr && look.detail->listens.value_or(false);
  }));
}

TEST(RealProcess, OneThatEndsBetweenTwoReadsIsNoError) {
  HostSample sample;
  ProcessProbe probe("");
  int pid = 0;
  {
    const Child child(sleep_for_ever);
    pid = child.pid();
    probe.list(sample);
    ASSERT_NE(find_process(sample, pid), nullptr);
  }
  probe.describe(sample, {pid}, true);
  EXPECT_EQ(find_detail(sample, pid), nullptr);
}

TEST(Inspect, LooksAtThisMachine) {
  const Report report = inspect();
  EXPECT_GT(report.cpu.logical, 0U);
  EXPECT_GE(report.cpu.logical, report.cpu.physical);
  EXPECT_GT(report.memory.total, 0U);
  EXPECT_GT(report.processes, 1U);
  EXPECT_TRUE(report.once);
  EXPECT_TRUE(report.cpu.busy);
  EXPECT_FALSE(report.verdict().empty());
}

TEST(Inspect, RefusesWhatCannotBe) {
  EXPECT_THROW(inspect({.window = drover::Duration(-1)}), drover::InvalidArgument);
  EXPECT_THROW(inspect({.interval = drover::Duration(0.001)}), drover::InvalidArgument);
  EXPECT_THROW(inspect({.set = {"r8.warn"}}), drover::InvalidArgument);
  EXPECT_THROW(inspect({.deadline = drover::Duration(0)}), drover::InvalidArgument);
  EXPECT_THROW(inspect({.demo = "nosuch"}), drover::InvalidArgument);
}

}  // namespace
