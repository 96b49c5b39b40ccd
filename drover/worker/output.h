// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "drover/worker/service.h"

namespace drover::inline v1::worker {

/// Passes what a child writes to one of its streams on to a stream of this process, a whole line at a time, and keeps
/// the last 4 KiB. When this process's stream is full the child's is not read on: the writer waits, nobody else does.
/// Service thread only.
class OutputPump {
 public:
  /// `target` is a descriptor number of this process (1 or 2), written to but not owned.
  OutputPump(Service& service, os::Fd source, int target);
  ~OutputPump();
  OutputPump(const OutputPump&) = delete;
  OutputPump& operator=(const OutputPump&) = delete;

  /// Reads what is left (the child is dead) and passes it on, an unfinished line too. What this process's stream does
  /// not take now follows later: the pump lives on until then, or until the service has ended and waited a second.
  static void finish(std::unique_ptr<OutputPump> pump);
  /// Reads what is left in the child's stream; tail() is complete then.
  void read_rest();
  /// The last lines, at most 4 KiB.
  const std::string& tail() const noexcept { return tail_; }

 private:
  enum class Read { kMore, kNothing, kEnd };
  void on_readable();
  void flush();
  bool watch_source() noexcept;
  Read read_some();
  void pass_on(bool whole);
  static void drain(const std::shared_ptr<OutputPump>& pump);
  void stop_watching();

  Service& service_;
  os::Fd source_;
  int target_;
  Service::Key key_ = 0;
  Service::Key timer_ = 0;
  bool ended_ = false;
  std::string pending_;
  std::string tail_;
};

}  // namespace drover::inline v1::worker
