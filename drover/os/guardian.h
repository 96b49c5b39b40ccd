// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "drover/os/child_process.h"
#include "drover/os/fd.h"

namespace drover::inline v1::os {

/// A small process that outlives this one, however this one dies, and then kills the process groups it was told of:
/// what users' functions started in their workers goes with them. (A program that leaves its group by setsid is not
/// followed.)
///
/// One thread at a time; only the creating process. Destroyed, it lets the guardian end and reaps it.
class Guardian {
 public:
  /// Throws std::system_error, for example where the kernel runs no program from memory (vm.memfd_noexec = 2).
  static Guardian start();

  ~Guardian();
  Guardian(Guardian&&) noexcept = default;
  Guardian& operator=(Guardian&&) = delete;

  /// Readable when somebody has killed it.
  const Fd& pidfd() const noexcept { return process_.pidfd(); }
  void watch_group(int leader) const noexcept { tell(leader); }
  /// Before the leader's number can be given to another process.
  void forget_group(int leader) const noexcept { tell(-leader); }

 private:
  Guardian(Fd pipe, ChildProcess process);
  void tell(int message) const noexcept;

  int owner_;  ///< a fork of the owner lets it be
  Fd pipe_;
  ChildProcess process_;
};

}  // namespace drover::inline v1::os
