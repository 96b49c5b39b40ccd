// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "benchmarks/harness/figure.h"
#include "benchmarks/harness/peer_process.h"

namespace bench {

/// What a figure is measured with: the peers, and where its entries go. One thread at a time.
class Bench {
 public:
  explicit Bench(bool longer) : longer_(longer) {}

  /// `--long`: more rounds, bigger runs.
  bool longer() const { return longer_; }

  /// A measurement that a floor or oneTBB answers: the first number, multiplied by `scale`.
  Measure floor(std::string request, double scale = 1) { return asking(floors_, std::move(request), scale); }
  Measure tbb(std::string request, double scale = 1) { return asking(tbb_, std::move(request), scale); }
  PeerProcess& floors() { return floors_; }

  void add(Figure figure) {
    if (longer_) figure.rounds *= 3;
    for (Entry& entry : run(figure)) entries_.push_back(std::move(entry));
  }
  void add(Entry entry) { entries_.push_back(std::move(entry)); }
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  static Measure asking(PeerProcess& peer, std::string request, double scale) {
    return [&peer, request = std::move(request), scale] { return peer.ask(request).at(0) * scale; };
  }

  bool longer_;
  PeerProcess floors_{"drover-peer-floor"};
  PeerProcess tbb_{"drover-peer-tbb"};
  std::vector<Entry> entries_;
};

inline constexpr double kNsInUs = 1e-3;  ///< scales for Bench::floor
inline constexpr double kNsInMs = 1e-6;

}  // namespace bench
