// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What the kernel tells about an open DRM device, from /proc/PID/fdinfo/N. Pure, takes any bytes, and leaves out what
/// makes no sense. Source: Documentation/gpu/drm-usage-stats.rst of the Linux kernel.
namespace drover::inline v1::health::drm {

/// One class of engines. amdgpu and i915 tell the time that they worked, xe cycles of a clock that it tells too.
struct Engine {
  std::string name;  ///< "gfx", "compute", "render", "rcs"
  std::optional<std::uint64_t> ns, cycles, total_cycles;
  std::uint32_t capacity = 1;  ///< how many there are of this class
};

/// What one opening of a device did and holds.
struct Client {
  std::string driver, device;  ///< "amdgpu", "0000:0b:00.0"
  std::uint64_t id = 0;        ///< the same number on one device, in other descriptors or processes: the same client
  std::vector<Engine> engines;
  std::optional<std::uint64_t> video_bytes;   ///< in the GPU's own memory
  std::optional<std::uint64_t> system_bytes;  ///< in the machine's
};

/// nullopt when the descriptor is not of a DRM device, or its driver tells nothing about clients.
std::optional<Client> parse_fdinfo(std::string_view text);

/// The name of a device file: "renderD128" for "/dev/dri/renderD128", "card1" for "/dev/dri/card1". Empty for any other
/// path.
std::string_view node_of(std::string_view path);

}  // namespace drover::inline v1::health::drm
