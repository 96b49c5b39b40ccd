// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <set>

#include "drover/os/child_process.h"
#include "drover/os/fd.h"
#include "drover/os/name_table.h"

namespace drover::inline v1::os {

/// A small process that outlives this one, however this one ends, and then kills the process groups it was told of
/// (what users' functions started in their workers goes with them; a program that leaves its group by setsid is not
/// followed) and removes the names that this process has in /dev/shm. While this process lives, it puts a name back
/// that another program has removed: Python's resource tracker does that when a Python process that has opened the
/// block ends.
///
/// Thread-safe; only the creating process. Destroyed, it ends the guardian and reaps it.
class Guardian {
 public:
  /// The guardian of this process, or a new one; it runs unless it cannot be started (see running). It ends when the
  /// last holder lets go. In a fork of the creating process: another one.
  static std::shared_ptr<Guardian> shared();

  ~Guardian();
  Guardian(const Guardian&) = delete;
  Guardian& operator=(const Guardian&) = delete;

  /// Starts it again if somebody has killed it. When it cannot be started (vm.memfd_noexec = 2), that is logged, and
  /// things stay behind only if this process is killed.
  void ensure_running();
  bool running() const;
  /// A copy of its pidfd, readable when it is dead. An invalid descriptor when none runs.
  Fd pidfd() const;

  /// These wait for a guardian that cannot read, for a second; then it is killed, and there is another.

  void watch_group(int leader);
  /// Before the leader's number can be given to another process.
  void forget_group(int leader);

  /// Before the name is made; `live` once it is there, and no longer before it is removed; `remove` after that.
  NameTable::Slot add_name(std::string_view name, const FileId& file);
  void set_name_live(NameTable::Slot slot, bool live);
  void remove_name(NameTable::Slot slot);

 private:
  struct Running {
    Fd channel;
    ChildProcess process;
    bool keeps_names = false;  ///< it was told to
  };

  Guardian();
  Running start() const;
  void start_anew();
  void tell(int message);
  bool send(int message) noexcept;
  bool send_all() noexcept;
  void let_end() noexcept;

  const int owner_;
  mutable std::mutex mutex_;
  NameTable names_;  // all below: protected by mutex_
  std::set<int> groups_;
  std::optional<Running> running_;
};

}  // namespace drover::inline v1::os
