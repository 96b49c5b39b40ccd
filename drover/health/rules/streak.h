// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace drover::inline v1::health {

enum class Holds { kNo, kYes, kUnknown };

/// For how long a condition has held without a break. Values.
struct Streak {
  double since = 0, last = 0;
  int hits = 0;
  int misses = 0;         ///< in a row, since it last held
  bool reported = false;  ///< from then on it takes several misses to end it, so that a report does not flicker
  int untold = 0;         ///< looks in a row that could not tell

  bool holds() const noexcept { return hits > 0; }
  double length() const noexcept { return hits > 0 ? last - since : 0; }

  /// So many seconds in which nobody can tell are a gap, and end it.
  static constexpr double kMoment = 60;

  /// One more look, which covers the time `from` to `at`. One that cannot tell neither adds nor breaks, unless it is
  /// one of `clear_after` in a row that make a gap. Looks further apart than `gap` do not add up.
  void add(double from, double at, Holds answer, double gap, int clear_after) noexcept {
    if (hits > 0 && (at - last > gap || last > at)) *this = Streak();
    if (from > at || at - from > gap) from = at;
    if (answer == Holds::kUnknown) {
      if (hits > 0 && ++untold >= clear_after && at - last >= kMoment) *this = Streak();
      return;
    }
    untold = 0;
    if (answer == Holds::kNo) {
      if (hits > 0 && (!reported || ++misses >= clear_after)) *this = Streak();
      return;
    }
    if (hits == 0) since = from;
    ++hits;
    misses = 0;
    last = at;
  }
};

/// Mean and deviation of what was measured while a condition held (Welford's method).
struct Spread {
  int count = 0;
  double mean = 0, squares = 0;

  void add(double value) noexcept {
    ++count;
    const double delta = value - mean;
    mean += delta / count;
    squares += delta * (value - mean);
  }
  /// Variance, over the squared mean; 0 when nothing is known.
  double relative_variance() const noexcept {
    return count < 2 || mean == 0 ? 0 : squares / (count - 1) / (mean * mean);
  }
};

}  // namespace drover::inline v1::health
