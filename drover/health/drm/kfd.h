// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "drover/health/sample.h"
#include "drover/os/host_files.h"

/// AMD's compute driver (KFD): which processes have compute queues on which GPU, and the memory of each. Everybody may
/// read it, also about other users' processes. Its pids are those of the machine, in a container too.
namespace drover::inline v1::health::drm {

/// A process on one GPU.
struct KfdProcess {
  int pid = 0;
  std::uint64_t memory_bytes = 0;
  Reading occupancy{Reading::kNotSupported, 0};  ///< percent of the GPU's compute units, at this moment
  std::uint64_t copy_us = 0;                     ///< time of its copy engines so far
};

/// One thread at a time.
class Kfd {
 public:
  explicit Kfd(std::string root) : root_(std::move(root)) {}

  /// Finds out which number KFD gives to which PCI slot. To be called again when GPUs come or go.
  void discover();
  bool present() const noexcept { return !gpus_.empty(); }

  /// The processes on the GPU in this slot ("0000:c1:00.0"), which must not sleep.
  std::vector<KfdProcess> processes(const std::string& slot) const;

 private:
  struct Gpu {
    std::string id, slot;
    std::uint64_t compute_units = 0;
  };
  static void read_process(int pid, const os::HostFolder& folder, const Gpu& gpu, std::vector<KfdProcess>& found);

  std::string root_;
  std::vector<Gpu> gpus_;
};

/// "0000:c1:00.0", from the properties of a node of KFD's topology. Empty when they do not say. Pure.
std::string slot_of_properties(std::string_view properties);

}  // namespace drover::inline v1::health::drm
