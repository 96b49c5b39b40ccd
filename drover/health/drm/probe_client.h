// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "drover/base/duration.h"
#include "drover/health/drm/device.h"
#include "drover/health/drm/helper.h"
#include "drover/health/helper/process.h"
#include "drover/health/sample.h"

namespace drover::inline v1::health::drm {

/// Looks at AMD's and Intel's GPUs (Probe) through a helper process, each time with a deadline; there is none where
/// there are no such GPUs. A GPU that did not answer is left alone for twice the deadline, and for as long
/// as the helper that asked it hangs: the others are seen meanwhile.
/// One thread at a time. Owns the helper.
class ProbeClient {
 public:
  /// `container`, `wake`: as for Probe.
  ProbeClient(std::string root, bool container, bool wake, Duration deadline);

  /// Whether there are such GPUs, as of now.
  bool needed();
  /// Whether a helper was started at some time.
  bool started() const noexcept { return started_; }
  /// 0: there is none now.
  int helper_pid() const noexcept { return helper_ ? helper_->pid() : 0; }
  /// Starts a look and returns at once. `processes`: all that there are, by pid. `at`: seconds since boot.
  void begin(const std::vector<ProcessBrief>& processes, double at);
  /// The GPUs in order of their PCI slots, indices from 0, at most `deadline` and helper::kTelling after begin(). One
  /// that did not answer is there, with `stuck_in` or `not_asked`.
  std::vector<GpuSample> finish();
  /// In place of begin() and finish(): as if none had answered, because of `what`.
  std::vector<GpuSample> unasked(const std::string& what) const;

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kAny = ~std::size_t{0};
  /// A helper that did not come back, and on whose account.
  struct Hung {
    std::unique_ptr<helper::Process> helper;
    std::size_t device;  ///< index, or kAny: it is not known which
    std::string what;
    Clock::time_point until;  ///< it is not asked again before that
  };

  const Hung* hung(std::size_t device) const;
  std::vector<std::uint32_t> all_hung() const;
  void explain_silence();
  bool take(const helper::MessageReader::Message& message);
  void give_up(std::size_t device, const std::string& what);
  GpuSample silent(std::size_t device, const std::string& what) const;

  const std::string root_, argument_;
  const Duration deadline_;
  std::vector<std::string> names_;  // in /sys/class/drm
  std::vector<Device> devices_;
  std::unique_ptr<helper::Process> helper_;
  bool started_ = false;
  std::string not_asked_;  // why nobody asked the GPUs that are silent in this round, and do not hang
  std::vector<Hung> hung_;
  std::vector<std::optional<GpuSample>> round_;
  Clock::time_point asked_at_{};
};

}  // namespace drover::inline v1::health::drm
