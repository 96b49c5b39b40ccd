// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "drover/health/sample.h"

namespace drover::inline v1::health::drm {

/// What is known about one process on one GPU, before it is decided what that says.
struct ProcessUse {
  int pid = 0;
  std::uint32_t uses = 0;
  Reading memory{Reading::kNotSupported, 0};     ///< bytes
  Reading share{Reading::kNotSupported, 0};      ///< percent of the engines that count their time; rounded up
  bool computes = false;                         ///< has queues of AMD's KFD, whose time no engine counts
  Reading occupancy{Reading::kNotSupported, 0};  ///< percent of the cores that its queues fill at this very moment
  bool copied = false;                           ///< its queues copied something since the last look
  /// Percent of the engines that the GPU's own figure counts, not rounded; nullopt: `share` is of just those.
  std::optional<double> told = {};
};

/// Fills in rows, activity and whether they can be trusted. `gpu` has its readings already: its own utilisation tells
/// whether there is work that no process accounts for. A process of which it is not known whether it did that work gets
/// a row with `use_code`; when there are only such, nothing is known about any. `first`: there is no look before this
/// one, so nothing is known about what happened in between. Pure.
void fill_processes(GpuSample& gpu, std::vector<ProcessUse> uses, bool first);

}  // namespace drover::inline v1::health::drm
