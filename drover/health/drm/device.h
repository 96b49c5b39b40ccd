// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "drover/health/sample.h"

/// AMD's and Intel's GPUs, by what amdgpu, i915 and xe show under /sys. Sources: Documentation/gpu/amdgpu and
/// Documentation/ABI/testing/sysfs-driver-intel-{i915,xe}-hwmon of the Linux kernel.
namespace drover::inline v1::health::drm {

/// What a sensor says beyond these is not true.
inline constexpr std::uint64_t kMostMilliwatts = 10'000'000, kMostDegrees = 200;

/// A GPU, by what does not change. A value.
struct Device {
  std::string slot;                ///< of PCI: "0000:c1:00.0"
  std::string vendor;              ///< "amd", "intel"
  std::string driver;              ///< "amdgpu", "i915", "xe"; empty: none is bound
  std::string name, uuid;          ///< uuid: the chip's own number, or "PCI-" and the slot; no two have the same
  std::string card, pci, hwmon;    ///< folders under /sys; hwmon: empty when there is none
  std::vector<std::string> nodes;  ///< "card0", "renderD128"
  int minor = -1;                  ///< of the render node; -1: there is none
  bool integrated = false;         ///< it has no memory of its own

  /// Tells `gpu` which one it is.
  void identify(GpuSample& gpu) const;
};

/// All that there are, in order of their slots. `root` goes before /sys. Thread-safe.
std::vector<Device> find_devices(const std::string& root);

/// Whether it is powered down. Reading almost anything else of such a device would wake it. Thread-safe.
bool asleep(const Device& device);

/// Fills in `gpu`'s readings as of now; what this driver does not tell has the reason. Thread-safe. May wait in the
/// driver when that is ill.
void read_numbers(const Device& device, GpuSample& gpu);

}  // namespace drover::inline v1::health::drm
