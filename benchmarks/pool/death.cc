// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <stdexcept>
#include <system_error>

#include "benchmarks/harness/measure.h"
#include "benchmarks/harness/slots.h"
#include "benchmarks/pool/figures.h"
#include "benchmarks/pool/tasks.h"

namespace bench {
namespace {

constexpr std::size_t kFamily = 4;  // two busy workers with a busy one each
constexpr int kGoneWithinMs = 2'000;

double worker_death(drover::Pool& pool) {
  flag(0).store(0);
  auto future = pool.submit<busy_until_killed>(0);
  const auto pid = static_cast<pid_t>(await_flag(0));
  return kNsInMs * time_ns([&] {
           kill(pid, SIGKILL);
           try {
             future.get();
           } catch (const drover::WorkerLost&) {
             return;
           }
           throw std::runtime_error("no WorkerLost");
         });
}

pid_t spawn_parent() {
  const std::string program = own_program();
  std::array<char*, 3> arguments{const_cast<char*>(program.c_str()), const_cast<char*>(kPlayParent), nullptr};
  pid_t pid = -1;
  const int error = posix_spawn(&pid, program.c_str(), nullptr, nullptr, arguments.data(), environ);
  if (error != 0) throw std::system_error(error, std::generic_category(), "posix_spawn");
  return pid;
}

/// A descriptor that becomes readable when the process is gone.
class PidFd {
 public:
  explicit PidFd(pid_t pid) : fd_(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))) {
    if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "pidfd_open");
  }
  ~PidFd() { close(fd_); }
  PidFd(const PidFd&) = delete;
  PidFd& operator=(const PidFd&) = delete;

  bool gone_within(int milliseconds) const {
    pollfd entry{fd_, POLLIN, 0};
    return poll(&entry, 1, milliseconds) == 1;
  }
  void kill_now() const { syscall(SYS_pidfd_send_signal, fd_, SIGKILL, nullptr, 0); }

 private:
  int fd_;
};

/// Waits for every process of the family; what is still there after the limit is killed, so that nothing is left
/// spinning.
void await_end(const std::vector<std::unique_ptr<PidFd>>& family) {
  for (const auto& member : family) {
    if (!member->gone_within(kGoneWithinMs)) member->kill_now();
  }
}

std::vector<std::unique_ptr<PidFd>> await_family(pid_t parent) {
  std::vector<std::unique_ptr<PidFd>> family;
  try {
    for (std::size_t i = 0; i < kFamily; ++i) {
      family.push_back(std::make_unique<PidFd>(static_cast<pid_t>(await_flag(i))));
    }
  } catch (...) {
    kill(parent, SIGKILL);
    waitpid(parent, nullptr, 0);
    throw;
  }
  return family;
}

double parent_death() {
  for (std::size_t i = 0; i < kFamily; ++i) flag(i).store(0);
  const pid_t parent = spawn_parent();
  const auto family = await_family(parent);
  const double elapsed = time_ns([&] {
    kill(parent, SIGKILL);
    await_end(family);
  });
  waitpid(parent, nullptr, 0);
  return kNsInMs * elapsed;
}

}  // namespace

void worker_death_ms(Bench& bench) {
  drover::Pool pool({.workers = 2});
  bench.add({.name = "worker_death_ms",
             .unit = "ms",
             .drover = [&] { return worker_death(pool); },
             .goal = value_at_most(10)});
}

void parent_death_ms(Bench& bench) {
  bench.add({.name = "parent_death_ms", .unit = "ms", .drover = parent_death, .goal = value_at_most(100)});
}

void play_parent() {
  drover::Pool pool({.workers = 2});
  auto first = pool.submit<busy_with_nested>(0);
  auto second = pool.submit<busy_with_nested>(2);
  for (;;) pause();
}

}  // namespace bench
