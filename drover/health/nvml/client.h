// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "drover/base/duration.h"
#include "drover/health/helper/process.h"
#include "drover/health/nvml/helper.h"
#include "drover/health/sample.h"

namespace drover::inline v1::health::nvml {

/// Asks the driver through a helper process, each time with a deadline. What never comes back is left behind: it
/// belongs to nobody's output, and this process can end. One thread at a time. Owns the helper.
class Client {
 public:
  /// `devices`: how many NVIDIA devices PCI shows, which decides what a missing driver means.
  Client(Duration deadline, std::size_t devices) : deadline_(deadline), devices_(devices) {}

  /// Starts a round and returns at once. The first one starts the helper: std::system_error when that cannot be done.
  void begin();
  /// The answers to begin(), at most `deadline` and helper::kTelling after it. A GPU that did not answer is there, with
  /// `stuck_in`, and as it was when it last did.
  DriverSample finish();

  /// 0: there is none.
  int helper_pid() const noexcept { return session_ ? session_->helper.pid() : 0; }

 private:
  using Clock = std::chrono::steady_clock;
  /// All that one helper told.
  struct Session {
    explicit Session() : helper(kRole, "1") {}
    bool complete() const;
    bool of_no_use() const;

    helper::Process helper;
    const Clock::time_point started_at = Clock::now();
    std::uint32_t number = 0;  ///< of the round
    std::optional<helper::Ready> ready;
    bool silent = false;  ///< it did not tell in time that the driver is initialised: later rounds do not wait for that
    std::vector<std::optional<GpuSample>> round, last;
    std::vector<std::string> stuck;  ///< calls that have not come back, also of earlier rounds: nobody waits for those
  };

  void take(const helper::MessageReader::Message& message);
  DriverSample assemble() const;
  GpuSample without_answer(std::size_t index) const;
  void describe_failure(DriverSample& sample) const;
  void describe_silence(DriverSample& sample) const;

  const Duration deadline_;
  const std::size_t devices_;
  std::optional<Session> session_;
  Clock::time_point asked_at_{};
};

}  // namespace drover::inline v1::health::nvml
