// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "drover/health/helper/records.h"
#include "drover/health/helper/role.h"
#include "drover/os/child_process.h"

namespace drover::inline v1::health::helper {

/// A helper, as the process sees it that wants to know. Destroying it ends the helper, as far as that can be done: what
/// hangs in a driver is left behind, belongs to nobody's output, and keeps nobody from ending. One thread at a time.
class Process {
 public:
  using Clock = std::chrono::steady_clock;

  /// Starts it; `argument` is for the helper. Throws std::system_error.
  Process(const Role& role, const std::string& argument);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  int pid() const noexcept { return process_.pid(); }

  /// False when it has ended, or does not read all of it before `end`: then it is of no more use.
  bool send(const std::string& message, Clock::time_point end);
  /// nullopt when nothing came before `end`, or it has ended.
  std::optional<MessageReader::Message> receive(Clock::time_point end);
  /// It is gone, or talks nonsense.
  bool ended() const noexcept { return ended_; }
  void call_ended() noexcept { ended_ = true; }
  /// Whether one of its threads waits in the kernel and cannot be interrupted, as in a driver that hangs. One that is
  /// stopped, or gets no CPU, does not.
  bool uninterruptible() const;

  /// Tells it to end, and whether it has. To be asked again of one that hangs.
  bool end() noexcept;

 private:
  struct Ends;
  Process(const Role& role, const std::string& argument, Ends ends);

  os::Fd requests_, answers_;
  os::ChildProcess process_;
  MessageReader reader_;
  bool ended_ = false;
  bool reaped_ = false;
};

/// What is left of a GPU that gave no answer: who it is, and what was on it when it last did. `stuck_in`: what did not
/// come back; empty: the GPU was not asked, and `not_asked` says why, unless the driver's state does.
void mark_unanswered(GpuSample& gpu, const std::string& stuck_in, const std::string& not_asked);

/// Why a GPU was not asked in time, when its helper neither answers nor waits in the kernel.
inline constexpr const char* kDoesNotRun =
    "the process that asks its driver does not run: it is stopped, or gets no CPU; look again, or with a longer "
    "--deadline";

/// By so much longer than the deadline a helper is waited for, so that it can tell what hangs.
inline constexpr std::chrono::milliseconds kTelling{250};

}  // namespace drover::inline v1::health::helper
