// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <thread>

#include "drover/base/duration.h"
#include "drover/health/health.h"
#include "drover/os/fd.h"

namespace drover::inline v1::cli {

/// Looks at the machine on a thread of its own, at the interval of the options: a look may take as long as a driver
/// that hangs, or for ever where the kernel does, and keys must be heard meanwhile. A thread, not a process: reports
/// need not travel, and the driver, which is what hangs, is called in another process anyway. Thread-safe.
class Looker {
 public:
  /// Throws what health::Watch throws for options that cannot mean anything.
  explicit Looker(const health::InspectOptions& options);
  /// The thread is joined when it has ended, and else left to itself: then nothing but exit_now() or a signal may end
  /// this process, as its statics would go while they are used.
  ~Looker();
  Looker(const Looker&) = delete;
  Looker& operator=(const Looker&) = delete;

  /// Begins. Signals that are blocked in the calling thread are blocked in the new one.
  void start();
  /// Signalled when there is a report, or an end by an error.
  const os::EventFd& event() const noexcept;
  /// The last report; nullptr before the first. Throws what ended the thread.
  std::shared_ptr<const health::Report> report() const;
  /// For how many seconds the look in progress has lasted; 0: none is.
  double looking_s() const;
  /// Ends it: the history is saved after the look in progress. False when that does not come back within `limit`.
  bool stop(Duration limit);

 private:
  struct State;
  static void run(const std::shared_ptr<State>& state);

  const std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace drover::inline v1::cli
