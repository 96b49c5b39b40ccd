// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <string>

#include "drover/base/errors.h"

namespace drover_test {

/// What `body` gives, run in a fork of this process, which ends without destructors; negative: the signal that ended
/// it. What waits there for what cannot come is ended by SIGALRM.
inline int in_fork(const std::function<int()>& body) {
  constexpr unsigned kPatience = 20;
  const pid_t child = fork();
  if (child == 0) {
    alarm(kPatience);
    _exit(body());
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/// Whether `call` throws the error of something that belongs to the process before a fork.
inline bool is_refused(const std::function<void()>& call) {
  try {
    call();
    return false;
  } catch (const drover::Error& error) {
    return std::string(error.what()).find("this is a fork of it") != std::string::npos;
  }
}

}  // namespace drover_test
