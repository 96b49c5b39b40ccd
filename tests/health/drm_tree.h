// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "drover/health/scenario/scenario.h"
#include "health/fixture.h"

namespace drover_test {

/// A GPU of AMD or Intel as /sys shows it.
struct Card {
  int number = 0;  ///< of card0; its render node is renderD128 and so on
  std::string slot = "0000:03:00.0", vendor = "0x1002", device = "0x740f", driver = "amdgpu";
  std::string runtime = "active";
  std::map<std::string, std::string> files = {};  ///< in the folder of the PCI device, beside what all have
};
void write_card(Machine& machine, const Card& card);

/// The same GPU for the compute driver: `id` is its number there.
void write_kfd_node(Machine& machine, int node, unsigned id, unsigned location, unsigned compute_units = 104);
void write_kfd_process(Machine& machine, int pid, unsigned id, unsigned long long vram, unsigned long long copy_us = 0,
                       int occupancy = -1);

/// A descriptor of a process: what it is a link to, and its fdinfo.
void write_descriptor(Machine& machine, int pid, int number, const std::string& path, const std::string& info);

/// The GPUs that are not NVIDIA's, and what processes do on them.
void write_drm_world(Machine& machine, const drover::health::World& world);

}  // namespace drover_test
