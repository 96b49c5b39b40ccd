// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <optional>
#include <string>

#include "drover/os/fault_point.h"
#include "harness/deadline.h"

namespace drover_test {

/// A T in memory that this process and its forks share, zero-filled at first.
template <class T>
class Common {
 public:
  Common() {
    void* const place = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED) throw std::bad_alloc();
    value_ = static_cast<T*>(place);
  }
  ~Common() { munmap(value_, sizeof(T)); }
  Common(const Common&) = delete;
  Common& operator=(const Common&) = delete;
  T* operator->() const noexcept { return value_; }
  T& operator*() const noexcept { return *value_; }

 private:
  T* value_;
};

/// A fork of the test (which has no other threads at that time) that runs one function and ends, with exit code 0 if it
/// returned true. With `fault_point` it is killed when it passes that point. Killed and reaped by the destructor.
class Child {
 public:
  template <class Work>
  explicit Child(const Work& work, int fault_point = -1) : pid_(fork()) {
    if (pid_ != 0) return;
    setenv("DROVER_FAULT", ("child:" + std::to_string(fault_point)).c_str(), 1);
    if (fault_point >= 0) drover::os::set_fault_role("child");
    bool good = false;
    try {
      good = work();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "child: %s\n", error.what());
    }
    _exit(good ? 0 : 1);
  }
  ~Child() {
    if (pid_ > 0 && !status_) {
      kill();
      wait();
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const noexcept { return pid_; }
  void kill() const { ::kill(pid_, SIGKILL); }
  /// Dead, whether it was reaped or not.
  bool ended() const {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT | WNOHANG) != 0 || info.si_pid != 0;
  }
  /// Until it is dead, but a zombie.
  void become_zombie() const {
    siginfo_t info{};
    while (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
    }
  }
  /// The status of waitpid.
  int wait() {
    int status = 0;
    while (!status_ && waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    if (!status_) status_ = status;
    return *status_;
  }
  bool succeeded() { return WIFEXITED(wait()) && WEXITSTATUS(wait()) == 0; }
  bool was_killed() { return WIFSIGNALED(wait()) && WTERMSIG(wait()) == SIGKILL; }

 private:
  pid_t pid_;
  std::optional<int> status_;
};

/// Seconds that `work` took.
template <class Work>
double seconds_of(const Work& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace drover_test
