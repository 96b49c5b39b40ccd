// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "drover/health/drm/clients.h"
#include "drover/health/drm/device.h"
#include "drover/health/drm/engine_use.h"
#include "drover/health/drm/kfd.h"
#include "drover/health/drm/processes.h"
#include "drover/health/drm/progress.h"
#include "drover/health/sample.h"

namespace drover::inline v1::health::drm {

/// AMD's and Intel's GPUs without any library of theirs: what the kernel shows under /sys and /proc. One thread at a
/// time. May wait in the driver for ever when that is ill: ProbeClient asks it with a deadline.
class Probe {
 public:
  /// `container`: pids are not the machine's own, so those of KFD mean nothing. `wake`: looks at GPUs that are powered
  /// down, too, which wakes them.
  Probe(std::string root, bool container, bool wake);

  /// The GPUs in order of their PCI slots, indices from 0. `processes`: all that there are, by pid. `at`: seconds since
  /// boot. `leave_alone`: GPUs, by index, of which nothing is read; they are not in the result.
  std::vector<GpuSample> look(const std::vector<ProcessBrief>& processes, double at,
                              const std::vector<std::uint32_t>& leave_alone = {});

  /// Of the look that goes on.
  const Progress& progress() const noexcept { return progress_; }

 private:
  struct Past {
    double looked = -1;
    double energy_mj = -1;
    std::map<int, std::uint64_t> copy_us;  // of KFD's processes
  };
  bool rediscover();
  GpuSample look_at(std::size_t index, const ClientList& list, double at);
  void add_queues(std::vector<ProcessUse>& uses, const std::vector<KfdProcess>& queues, Past& past) const;

  const std::string root_;
  const bool container_, wake_;
  std::vector<std::string> names_;  // in /sys/class/drm
  std::vector<Device> devices_;
  std::vector<Past> past_;
  ClientScan scan_;
  EngineUse engines_;
  Kfd kfd_;
  Progress progress_;
};

}  // namespace drover::inline v1::health::drm
