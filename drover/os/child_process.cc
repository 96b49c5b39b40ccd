// SPDX-License-Identifier: Apache-2.0
#include "drover/os/child_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>

#include "drover/os/fault_point.h"

namespace drover::inline v1::os {
namespace {

void check(int rc, const char* call) {
  if (rc != 0) throw_error(rc, call);
}

class FileActions {
 public:
  FileActions() { check(::posix_spawn_file_actions_init(&actions_), "posix_spawn_file_actions_init"); }
  ~FileActions() { ::posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;

  void place(int from, int to) {
    check(::posix_spawn_file_actions_adddup2(&actions_, from, to), "posix_spawn_file_actions_adddup2");
  }
  void close_from(int first) {
    check(::posix_spawn_file_actions_addclosefrom_np(&actions_, first), "posix_spawn_file_actions_addclosefrom_np");
  }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

class Attributes {
 public:
  Attributes() {
    check(::posix_spawnattr_init(&attributes_), "posix_spawnattr_init");
    sigset_t none, all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    constexpr short kFlags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    check(::posix_spawnattr_setflags(&attributes_, kFlags), "posix_spawnattr_setflags");
  }
  ~Attributes() { ::posix_spawnattr_destroy(&attributes_); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_{};
};

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (const std::string& s : strings) result.push_back(const_cast<char*>(s.c_str()));
  result.push_back(nullptr);
  return result;
}

/// Copies of the descriptors above every target number, so that placing one cannot overwrite another that is still
/// needed.
std::vector<Fd> lifted(const std::vector<int>& descriptors) {
  std::vector<Fd> copies;
  for (const int fd : descriptors) {
    copies.emplace_back(::fcntl(fd, F_DUPFD_CLOEXEC, static_cast<int>(descriptors.size()) + 10));
    if (!copies.back().valid()) throw_errno("fcntl F_DUPFD_CLOEXEC");
  }
  return copies;
}

Fd open_pidfd(int pid) {
  const long fd = ::syscall(SYS_pidfd_open, pid, 0);
  if (fd < 0) throw_errno("pidfd_open");
  return Fd(static_cast<int>(fd));
}

void end_now(int pid) noexcept {
  ::kill(-pid, SIGKILL);
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace

std::string ExitStatus::describe() const {
  if (!known) return "is gone (another part of the program reaped it)";
  if (signal == 0) return "exited with code " + std::to_string(code);
  const char* const name = ::sigabbrev_np(signal);
  const char* const text = ::sigdescr_np(signal);
  return "was killed by " + (name != nullptr ? "SIG" + std::string(name) : "signal " + std::to_string(signal)) +
         (text != nullptr ? " (" + std::string(text) + ")" : "");
}

ChildProcess ChildProcess::spawn(const SpawnRequest& request) {
  fault_point();
  const std::vector<Fd> copies = lifted(request.descriptors);
  FileActions actions;
  for (std::size_t i = 0; i < copies.size(); ++i) actions.place(copies[i].get(), static_cast<int>(i));
  actions.close_from(static_cast<int>(copies.size()));
  const Attributes attributes;
  const std::vector<char*> argv = pointers(request.arguments);
  const std::vector<char*> envp = pointers(request.environment);
  pid_t pid = 0;
  const int rc =
      ::posix_spawn(&pid, request.program.c_str(), actions.get(), attributes.get(), argv.data(), envp.data());
  check(rc, ("posix_spawn of " + request.program).c_str());
  try {
    return {pid, open_pidfd(pid)};
  } catch (...) {  // no descriptor left for the pidfd: do not leave the child behind
    end_now(pid);
    throw;
  }
}

void ChildProcess::kill_and_reap() noexcept { end_now(pid_); }

bool ChildProcess::send(int signal) const noexcept {
  fault_point();
  return pidfd_.valid() && ::syscall(SYS_pidfd_send_signal, pidfd_.get(), signal, nullptr, 0) == 0;
}

std::optional<ExitStatus> ChildProcess::try_reap() {
  siginfo_t info{};
  const auto id = static_cast<id_t>(pidfd_.get());
  constexpr auto kPidFd = static_cast<idtype_t>(3);  // P_PIDFD, which glibc's headers hide from strict C++
  if (::waitid(kPidFd, id, &info, WEXITED | WNOHANG | WNOWAIT) < 0) {
    if (errno != ECHILD) return std::nullopt;
    return ExitStatus{};
  }
  if (info.si_pid == 0) return std::nullopt;
  ::kill(-pid_, SIGKILL);  // before reaping: until then the group's number cannot belong to anybody else
  ::waitid(kPidFd, id, &info, WEXITED | WNOHANG);
  if (info.si_code == CLD_EXITED) return ExitStatus{.code = info.si_status, .signal = 0, .known = true};
  return ExitStatus{.code = -1, .signal = info.si_status, .known = true};
}

}  // namespace drover::inline v1::os
