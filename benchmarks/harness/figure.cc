// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/harness/figure.h"

#include <algorithm>

#include "benchmarks/harness/measure.h"

namespace bench {
namespace {

constexpr double kTolerance = 0.05;
constexpr std::int64_t kSettleUs = 2'000;  // what the one before has left spinning is parked by then

/// The values of one contender: the mean of its two measurements, a round each.
struct Series {
  const Measure* measure;
  std::vector<double> rounds = {};
  std::string reason = {};
};

void measure_once(Series& series) {
  if (!series.reason.empty()) return;
  pause_for_us(kSettleUs);
  try {
    series.rounds.back() += (*series.measure)() / 2;
  } catch (const Unavailable& error) {
    series.reason = error.what();
  }
}

void run_round(std::vector<Series>& contenders) {
  for (Series& series : contenders) series.rounds.push_back(0);
  std::for_each(contenders.begin(), contenders.end(), measure_once);
  std::for_each(contenders.rbegin(), contenders.rend(), measure_once);
}

bool is_met(const Goal& goal, double value, double ratio) {
  switch (goal.kind) {
    case Goal::Kind::kRatioAtMost:
      return ratio <= goal.limit * (1 + kTolerance);
    case Goal::Kind::kRatioAtLeast:
      return ratio >= goal.limit * (1 - kTolerance);
    case Goal::Kind::kValueAtMost:
      return value <= goal.limit * (1 + kTolerance);
    case Goal::Kind::kShown:
      break;
  }
  return true;
}

void fill(Entry& entry, const std::vector<double>& spread) {
  const auto [low, high] = std::minmax_element(spread.begin(), spread.end());
  entry.min = *low;
  entry.max = *high;
  if (entry.goal.kind != Goal::Kind::kShown) entry.met = is_met(entry.goal, *entry.value, entry.ratio.value_or(0));
}

Entry against_nobody(const Figure& figure, const Series& drover) {
  Entry entry{figure.name, figure.unit, {}, median(drover.rounds), {}, {}, {}, {}, figure.goal, {}};
  fill(entry, drover.rounds);
  return entry;
}

Entry against(const Figure& figure, const Series& drover, const Peer& peer, const Series& other) {
  Entry entry{figure.name, figure.unit, peer.name, median(drover.rounds), {}, {}, {}, {}, peer.goal, {}, other.reason};
  if (!other.reason.empty()) return entry;
  std::vector<double> ratios;
  for (std::size_t i = 0; i < drover.rounds.size(); ++i) ratios.push_back(drover.rounds[i] / other.rounds[i]);
  entry.peer_value = median(other.rounds);
  entry.ratio = median(ratios);
  fill(entry, ratios);
  return entry;
}

}  // namespace

std::vector<Entry> run(const Figure& figure) {
  std::vector<Series> contenders{{&figure.drover}};
  for (const Peer& peer : figure.peers) contenders.push_back({&peer.measure});
  for (int round = 0; round < figure.rounds; ++round) run_round(contenders);
  if (!contenders[0].reason.empty()) throw Unavailable(contenders[0].reason);
  if (figure.peers.empty()) return {against_nobody(figure, contenders[0])};
  std::vector<Entry> entries;
  for (std::size_t i = 0; i < figure.peers.size(); ++i) {
    entries.push_back(against(figure, contenders[0], figure.peers[i], contenders[i + 1]));
  }
  return entries;
}

}  // namespace bench
