// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "drover/base/duration.h"
#include "drover/health/nvml/records.h"
#include "drover/health/sample.h"
#include "drover/os/child_process.h"

namespace drover::inline v1::health::nvml {

/// Asks the driver through a helper process, each time with a deadline. What never comes back is left behind: it
/// belongs to nobody's output, and this process can end. One thread at a time. Owns the helper.
class Client {
 public:
  /// `devices`: how many NVIDIA devices PCI shows, which decides what a missing driver means.
  Client(Duration deadline, std::size_t devices) : deadline_(deadline), devices_(devices) {}
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// Starts a round and returns at once. The first one starts the helper: std::system_error when that cannot be done.
  void begin();
  /// The answers to begin(), at most `deadline` after it. A GPU that did not answer is there, with `stuck_in`, and as
  /// it was when it last did.
  DriverSample finish();

  /// 0: there is none yet.
  int helper_pid() const noexcept { return helper_ ? helper_->pid() : 0; }

 private:
  void start_helper();
  void end_helper() noexcept;
  void forget_helper();
  void receive_until(std::chrono::steady_clock::time_point end);
  void take(const MessageReader::Message& message);
  bool complete() const;
  DriverSample assemble();
  void describe_failure(DriverSample& sample) const;
  void describe_silence(DriverSample& sample) const;

  const Duration deadline_;
  const std::size_t devices_;
  std::optional<os::ChildProcess> helper_;
  os::Fd requests_, answers_;
  MessageReader reader_;
  std::chrono::steady_clock::time_point started_at_{}, asked_at_{};
  std::optional<Ready> ready_;
  bool ended_ = false;   ///< the helper is gone, or talks nonsense
  bool silent_ = false;  ///< it did not tell in time that the driver is initialised: later rounds do not wait for that
  std::vector<std::optional<GpuSample>> round_, last_;
  std::vector<std::string> stuck_;  ///< calls that have not come back, also of earlier rounds: nobody waits for those
};

}  // namespace drover::inline v1::health::nvml
