// SPDX-License-Identifier: Apache-2.0
#include "harness/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "harness/deadline.h"

extern char** environ;

namespace drover_test {
namespace {

void check(int error, const char* call) {
  if (error != 0) throw std::system_error(error, std::generic_category(), call);
}

std::vector<std::string> merged_environment(const Command& command) {
  std::map<std::string, std::string> merged = command.environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const auto equals = text.find('=');
    merged.emplace(text.substr(0, equals), equals == std::string::npos ? "" : text.substr(equals + 1));
  }
  std::vector<std::string> lines;
  for (const auto& [name, value] : merged) lines.push_back(name + "=" + value);
  return lines;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& string : strings) result.push_back(string.data());
  result.push_back(nullptr);
  return result;
}

struct Actions {
  Actions() { check(posix_spawn_file_actions_init(&value), "posix_spawn_file_actions_init"); }
  ~Actions() { posix_spawn_file_actions_destroy(&value); }
  posix_spawn_file_actions_t value;
};

/// Own process group; the signals that an outer shell may have ignored or blocked are as in a terminal.
struct Attributes {
  Attributes() {
    check(posix_spawnattr_init(&value), "posix_spawnattr_init");
    sigset_t defaults, none;
    sigemptyset(&none);
    sigemptyset(&defaults);
    for (const int signal : {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGPIPE}) sigaddset(&defaults, signal);
    posix_spawnattr_setsigdefault(&value, &defaults);
    posix_spawnattr_setsigmask(&value, &none);
    posix_spawnattr_setpgroup(&value, 0);
    posix_spawnattr_setflags(&value, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  }
  ~Attributes() { posix_spawnattr_destroy(&value); }
  posix_spawnattr_t value;
};

/// Appends what can be read now; closes the descriptor and sets it to -1 at the end of the output.
void read_into(int& fd, std::string& text) {
  char buffer[1 << 16];
  const ssize_t got = ::read(fd, buffer, sizeof buffer);
  if (got > 0) text.append(buffer, static_cast<std::size_t>(got));
  if (got > 0 || (got < 0 && (errno == EINTR || errno == EAGAIN))) return;
  ::close(fd);
  fd = -1;
}

}  // namespace

Subprocess::Subprocess(const Command& command)
    : end_(std::chrono::steady_clock::now() +
           std::chrono::duration_cast<std::chrono::steady_clock::duration>(command.limit)) {
  int out[2], err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) check(errno, "pipe2");
  out_fd_ = out[0];
  err_fd_ = err[0];
  Actions actions;
  posix_spawn_file_actions_addopen(&actions.value, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions.value, out[1], 1);
  posix_spawn_file_actions_adddup2(&actions.value, err[1], 2);
  if (!command.folder.empty()) posix_spawn_file_actions_addchdir_np(&actions.value, command.folder.c_str());
  Attributes attributes;
  std::vector<std::string> arguments = command.arguments;
  arguments.insert(arguments.begin(), command.program);
  std::vector<std::string> environment = merged_environment(command);
  const int error = posix_spawn(&pid_, command.program.c_str(), &actions.value, &attributes.value,
                                pointers(arguments).data(), pointers(environment).data());
  ::close(out[1]);
  ::close(err[1]);
  if (error == 0) return;
  ::close(out_fd_);
  ::close(err_fd_);
  check(error, ("posix_spawn " + command.program).c_str());
}

Subprocess::~Subprocess() {
  if (!reaped_) {
    ::kill(-pid_, SIGKILL);
    reap(0);
  }
  if (out_fd_ >= 0) ::close(out_fd_);
  if (err_fd_ >= 0) ::close(err_fd_);
}

void Subprocess::send(int signal) const {
  if (!reaped_) ::kill(pid_, signal);
}

bool Subprocess::wait_for_output(const std::string& text) {
  while (out_.find(text) == std::string::npos) {
    if (out_fd_ < 0 || !read_some()) return false;
  }
  return true;
}

Outcome Subprocess::finish() {
  while ((out_fd_ >= 0 || err_fd_ >= 0) && read_some()) {
  }
  const auto rest = std::max(end_ - std::chrono::steady_clock::now(), std::chrono::steady_clock::duration::zero());
  const bool open = out_fd_ >= 0 || err_fd_ >= 0;
  const bool ended = !open && eventually(rest, [&] { return reap(WNOHANG), reaped_; });
  if (!ended) {
    ::kill(-pid_, SIGKILL);
    reap(0);
  }
  Outcome outcome;
  outcome.timed_out = !ended;
  if (WIFEXITED(status_)) outcome.exit_code = WEXITSTATUS(status_);
  if (WIFSIGNALED(status_)) outcome.signal = WTERMSIG(status_);
  outcome.out = std::move(out_);
  outcome.err = std::move(err_);
  return outcome;
}

/// Waits for output and reads it. False when the limit passed.
bool Subprocess::read_some() {
  const auto rest = std::chrono::ceil<std::chrono::milliseconds>(end_ - std::chrono::steady_clock::now());
  if (rest.count() <= 0) return false;
  pollfd fds[2] = {{out_fd_, POLLIN, 0}, {err_fd_, POLLIN, 0}};  // poll skips negative descriptors
  if (poll(fds, 2, static_cast<int>(rest.count())) > 0) {
    if (fds[0].revents != 0) read_into(out_fd_, out_);
    if (fds[1].revents != 0) read_into(err_fd_, err_);
  }
  return true;
}

void Subprocess::reap(int flags) {
  if (reaped_) return;
  pid_t got;
  do got = waitpid(pid_, &status_, flags);
  while (got < 0 && errno == EINTR);
  reaped_ = got != 0;  // an error too: somebody else has reaped it
}

Outcome run(const Command& command) { return Subprocess(command).finish(); }

}  // namespace drover_test
