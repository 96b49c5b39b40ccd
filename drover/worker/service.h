// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "drover/os/epoll.h"
#include "drover/os/guardian.h"
#include "drover/os/memory.h"
#include "drover/os/self.h"
#include "drover/os/signals.h"

namespace drover::inline v1::worker {

/// The one thread behind all pools and processes of a program. It alone starts children (the kernel ties a child to the
/// thread that started it), waits for their ends, passes their output on, keeps deadlines and tells sleepers about
/// signals. It sleeps in epoll, never touches task data and blocks all signals.
///
/// Threads: post, call and shared are thread-safe; everything under "service thread" runs there only.
/// Processes: only the creating process. Destroy it from another thread than its own.
class Service {
 public:
  using Callback = std::function<void()>;
  using Key = std::uint64_t;

  /// The running service, or a new one. It ends when the last holder lets go.
  static std::shared_ptr<Service> shared();

  Service();
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  /// Runs `callback` on the service thread, soon. It must not throw.
  void post(Callback callback);
  /// Runs `callback` on the service thread and waits; its exception is thrown here.
  void call(const Callback& callback);

  /// False in a fork of the creating process, where there is no such thread: nothing of this is then to be touched, the
  /// destructor included.
  bool belongs_to_this_process() const noexcept { return os::current_pid() == owner_; }
  /// Throws Error in a fork.
  void require_owner() const {
    if (!belongs_to_this_process()) refuse_fork();
  }
  [[noreturn]] static void refuse_fork();

  /// The read end of the life line: when this process is gone, however it died, the write end is closed.
  const os::Fd& life_line() const noexcept { return life_line_.read_end; }

  // Service thread only.

  /// Has the process group of a child killed when this process is gone. A guardian process is started soon for the
  /// first.
  void guard_group(int leader);
  void unguard_group(int leader) noexcept;

  /// Calls `callback` while `fd` is readable. The descriptor must stay open until unwatch.
  Key watch(const os::Fd& fd, Callback callback);
  void unwatch(const os::Fd& fd, Key key);
  /// Calls `callback` once, at or soon after `when`.
  Key at(std::chrono::steady_clock::time_point when, Callback callback);
  void forget(Key timer) { timers_.erase(timer); }
  /// As at; the service does not end before (but waits no longer than a second in all).
  void linger(std::chrono::steady_clock::time_point when, Callback callback);
  /// For the children that end.
  os::OomLedger& oom_ledger() noexcept { return oom_ledger_; }

  /// Calls `callback` when SIGINT or SIGTERM has come.
  Key on_interrupt(Callback callback);
  void remove_on_interrupt(Key key) { interrupt_callbacks_.erase(key); }

 private:
  struct Timer {
    std::chrono::steady_clock::time_point when;
    Callback callback;
  };

  void run();
  void run_posted();
  void run_timers();
  void dispatch(Key key);
  os::Deadline next_deadline() const;
  bool may_end();
  void forget_past_lingering();
  void start_guardian();
  void on_guardian_end();

  const int owner_ = os::current_pid();
  os::Epoll epoll_;
  os::EventFd wake_;
  os::EventFd interrupt_;
  os::InterruptListener interrupt_listener_{interrupt_};
  os::Pipe life_line_ = os::make_pipe();

  std::mutex mutex_;
  std::vector<Callback> posted_;  // protected by mutex_
  bool stopping_ = false;         // protected by mutex_

  Key next_key_ = 2;  // 0 is wake_, 1 is interrupt_
  std::map<Key, Callback> watched_;
  os::Deadline patience_;       ///< when it ends, asked to, whatever lingers
  std::vector<Key> lingering_;  ///< timers, some of them past
  std::map<Key, Timer> timers_;
  std::map<Key, Callback> interrupt_callbacks_;
  std::set<int> guarded_groups_;
  std::shared_ptr<os::Guardian> guardian_;
  os::Fd guardian_pidfd_;
  Key guardian_key_ = 0;
  int guardian_starts_ = 0;
  int guardian_failures_ = 0;  ///< to start or to watch it, in a row
  os::OomLedger oom_ledger_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace drover::inline v1::worker
