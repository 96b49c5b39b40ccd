// SPDX-License-Identifier: Apache-2.0
#include "drover/os/self.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

namespace drover::inline v1::os {

int current_pid() noexcept { return ::getpid(); }

std::vector<std::string> environment() {
  std::vector<std::string> result;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) result.emplace_back(*entry);
  return result;
}

std::optional<std::string> take_environment(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  std::string result = value;
  ::unsetenv(name);
  return result;
}

void set_process_name(const std::string& name) noexcept { ::prctl(PR_SET_NAME, name.c_str()); }

void exit_now(int code) noexcept { ::_exit(code); }

void die_with_parent(int parent, const Fd& life) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Owner and signal belong to the open file description, so each child needs one of its own: opened anew, not
  // inherited.
  const std::string path = "/proc/self/fd/" + std::to_string(life.get());
  const int own = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (own < 0) throw_errno("open of the parent's life line");
  ::fcntl(own, F_SETOWN, ::getpid());
  ::fcntl(own, F_SETSIG, SIGKILL);
  ::fcntl(own, F_SETFL, O_NONBLOCK | O_ASYNC);
  pollfd state{.fd = own, .events = POLLIN, .revents = 0};
  const bool closed = ::poll(&state, 1, 0) > 0;
  if (::getppid() != parent || closed) exit_now(0);  // it died before the two lines above were in force
}

}  // namespace drover::inline v1::os
