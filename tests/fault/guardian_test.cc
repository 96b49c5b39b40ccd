// SPDX-License-Identifier: Apache-2.0
// What a guardian is told arrives, also when it is slow or was stopped.
#include "drover/os/guardian.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>

#include "drover/shm/block.h"
#include "harness/deadline.h"
#include "sync/child.h"

namespace drover_test {
namespace {

using namespace std::chrono_literals;
using drover::os::Fd;
using drover::os::Guardian;
using drover::shm::Block;

constexpr int kMoreThanTheChannelHolds = 1000;

void signal_to(const Fd& pidfd, int number) {
  ASSERT_EQ(syscall(SYS_pidfd_send_signal, pidfd.get(), number, nullptr, 0), 0);
}

std::shared_ptr<Block> make(const std::string& what) {
  return Block::create("guardian-" + what + "-" + std::to_string(getpid()), {.descr = "<f8", .shape = {10}}, "x");
}

TEST(Guardian, KeepsANameThatCameAfterManyOthersWhileItWasStopped) {
  const auto guardian = Guardian::shared();  // as that of a pool
  const Fd running = guardian->pidfd();
  signal_to(running, SIGSTOP);
  for (int i = 0; i < kMoreThanTheChannelHolds; ++i) make("passing");
  const auto block = make("stays");
  signal_to(running, SIGCONT);
  std::filesystem::remove(block->path());
  EXPECT_TRUE(eventually(5s, [&] { return std::filesystem::exists(block->path()); }));
}

/// A process of its own group that lives until it is killed; the owner of a guardian, which is stopped while it hears
/// of groups, is killed. True when the guardian, or its successor, has killed the group.
TEST(Guardian, HearsOfAGroupThoughItWasStopped) {
  int ends[2];  // closed when the last of them is dead
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  {
    Child owner([&] {
      close(ends[0]);
      const pid_t leader = fork();
      if (leader == 0) {
        setpgid(0, 0);
        for (;;) pause();
      }
      setpgid(leader, leader);
      const auto guardian = Guardian::shared();
      const Fd running = guardian->pidfd();
      signal_to(running, SIGSTOP);
      for (int i = 0; i < kMoreThanTheChannelHolds; ++i) {
        guardian->watch_group(leader);
        guardian->forget_group(leader);
      }
      guardian->watch_group(leader);
      syscall(SYS_pidfd_send_signal, running.get(), SIGCONT, nullptr, 0);
      raise(SIGKILL);
      return false;
    });
    close(ends[1]);
    EXPECT_TRUE(owner.was_killed());
  }
  pollfd all_dead{.fd = ends[0], .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&all_dead, 1, 10'000), 1);
  close(ends[0]);
}

/// The number may be another's by then.
TEST(Guardian, DoesNotKillAGroupThatItWasToForgetWhileItWasStopped) {
  Child group([] {
    setpgid(0, 0);
    for (;;) pause();
    return true;
  });
  setpgid(group.pid(), group.pid());
  Child owner([&] {
    const auto guardian = Guardian::shared();
    guardian->watch_group(group.pid());
    const Fd running = guardian->pidfd();
    signal_to(running, SIGSTOP);
    const pid_t none = 1 << 30;  // no process has such a number
    for (int i = 0; i < kMoreThanTheChannelHolds; ++i) {
      guardian->watch_group(none);
      guardian->forget_group(none);
    }
    guardian->forget_group(group.pid());
    syscall(SYS_pidfd_send_signal, running.get(), SIGCONT, nullptr, 0);
    const Fd last = guardian->pidfd();
    const pid_t waiter = fork();  // tells when the guardian has ended, which is when it has killed
    if (waiter == 0) {
      setsid();
      pollfd ended{.fd = last.get(), .events = POLLIN, .revents = 0};
      poll(&ended, 1, 10'000);
      kill(group.pid(), SIGTERM);  // what it should have lived to see
      _exit(0);
    }
    raise(SIGKILL);
    return false;
  });
  EXPECT_TRUE(owner.was_killed());
  const int status = group.wait();
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

TEST(Guardian, ThatStaysStoppedIsReplaced) {
  const auto guardian = Guardian::shared();
  const Fd first = guardian->pidfd();
  signal_to(first, SIGSTOP);
  const pid_t none = 1 << 30;
  const double seconds = seconds_of([&] {
    for (int i = 0; i < kMoreThanTheChannelHolds; ++i) {
      guardian->watch_group(none);
      guardian->forget_group(none);
    }
  });
  EXPECT_LT(seconds, 5);
  EXPECT_NE(syscall(SYS_pidfd_send_signal, first.get(), SIGCONT, nullptr, 0), 0) << "it still lives";
  EXPECT_TRUE(guardian->running());
}

}  // namespace
}  // namespace drover_test
