// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

/// How a figure is taken: Drover, its floor and its peers in the same run, alternating, so that a noisy machine
/// disturbs all of them alike. The figure is the median of the ratios of the rounds; absolute values are for people.
namespace bench {

/// What a figure must reach; it is met within 5 %. A ratio is Drover's value divided by the peer's.
struct Goal {
  enum class Kind { kShown, kRatioAtMost, kRatioAtLeast, kValueAtMost };
  Kind kind = Kind::kShown;
  double limit = 0;
};
constexpr Goal ratio_at_most(double limit) { return {Goal::Kind::kRatioAtMost, limit}; }
constexpr Goal ratio_at_least(double limit) { return {Goal::Kind::kRatioAtLeast, limit}; }
constexpr Goal value_at_most(double limit) { return {Goal::Kind::kValueAtMost, limit}; }
constexpr Goal shown() { return {}; }

/// A peer is not installed, or cannot run here. Its entry is null with this reason and is not counted.
class Unavailable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// One measurement: warms up, runs, verifies what was computed, returns the value in the figure's unit.
using Measure = std::function<double()>;

struct Peer {
  std::string name;
  Measure measure;
  Goal goal = {};
};

struct Figure {
  std::string name;
  std::string unit;
  Measure drover;
  std::vector<Peer> peers = {};  ///< one entry each; without any, one entry with a null peer
  Goal goal = {};                ///< of a figure without peers
  int rounds = 9;
};

/// One entry of the report. `min` and `max` belong to the ratio, or to the value when there is no peer.
struct Entry {
  std::string name, unit;
  std::optional<std::string> peer;
  std::optional<double> value, peer_value, ratio, min, max;
  Goal goal;
  std::optional<bool> met;
  std::string reason = {};  ///< why values are missing
};

/// Runs all rounds. In each one everybody is measured twice, forwards and then backwards (ABBA). Throws what `drover`
/// throws; a peer's Unavailable becomes the reason of its entry.
std::vector<Entry> run(const Figure& figure);

}  // namespace bench
