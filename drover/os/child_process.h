// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "drover/os/fd.h"

namespace drover::inline v1::os {

/// How a process ended.
struct ExitStatus {
  int code = -1;   ///< what it gave to exit(), or -1
  int signal = 0;  ///< the signal that ended it, or 0
  /// False when somebody else reaped the child (SIGCHLD ignored, a foreign wait): all that is known is that it is gone.
  bool known = false;

  bool success() const noexcept { return known && signal == 0 && code == 0; }
  /// "exited with code 3", "was killed by SIGSEGV (Segmentation fault)".
  std::string describe() const;
};

struct SpawnRequest {
  std::string program;
  std::vector<std::string> arguments;    ///< argv, argv[0] first
  std::vector<std::string> environment;  ///< the whole of it, NAME=value
  std::vector<int> descriptors;          ///< descriptors[i] becomes i in the child; all others are closed there
};

/// Owns a child: a process group of its own, no signal blocked or ignored, found through a pidfd so that no other
/// process can ever be meant. Destroying it while the child lives leaves the child alone. One thread at a time.
class ChildProcess {
 public:
  /// Never forks the address space (posix_spawn), so it is safe with any number of threads. Throws std::system_error.
  /// The calling thread's end counts as the parent's end (PDEATHSIG): call it from a thread that lasts.
  static ChildProcess spawn(const SpawnRequest& request);

  int pid() const noexcept { return pid_; }
  /// Readable once the child is dead.
  const Fd& pidfd() const noexcept { return pidfd_; }

  /// False when it is gone already.
  bool send(int signal) const noexcept;
  /// If it is dead: kills what is left of its process group, reaps it and tells how it ended. Once only.
  std::optional<ExitStatus> try_reap();
  /// Kills it with its process group and reaps it: for a child that nobody is going to look after.
  void kill_and_reap() noexcept;

 private:
  ChildProcess(int pid, Fd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}
  int pid_;
  Fd pidfd_;
};

}  // namespace drover::inline v1::os
