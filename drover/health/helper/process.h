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

}  // namespace drover::inline v1::health::helper
