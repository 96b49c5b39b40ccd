// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "drover/health/drm/clients.h"
#include "drover/health/sample.h"

namespace drover::inline v1::health::drm {

/// How busy engines were between two looks, from counters that only grow. One thread at a time.
class EngineUse {
 public:
  struct Shares {
    std::map<int, Reading> by_pid;  ///< percent of the busiest class of engines, rounded up; why there is none
    Reading all;                    ///< the same of all clients together
    /// Percent of the busiest class among those that the GPU's own figure counts, not rounded: for amdgpu that is
    /// graphics and compute, and neither video nor copies.
    std::map<int, double> told;
  };

  /// What the clients of one device did since they were last given; clients that are new did all they did since then.
  /// `at` and `before`: the times of this look and of the last one of this device, in seconds; negative: there is none.
  Shares add(std::size_t device, const std::vector<OwnedClient>& clients, double at, double before);

 private:
  using Counter = std::tuple<std::size_t, std::uint64_t, std::string>;  // device, client, engine
  struct Count {
    std::uint64_t busy = 0;
    double seen = -1;
  };
  double share_of(const OwnedClient& owned, const Engine& engine, double at, double before);

  std::map<Counter, Count> counters_;
  std::map<std::pair<std::size_t, std::string>, std::uint64_t> clocks_, next_clocks_;  // of xe, by device and engine
};

}  // namespace drover::inline v1::health::drm
