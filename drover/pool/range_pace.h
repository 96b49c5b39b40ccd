// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

namespace drover::inline v1::detail {

/// How fast a user's range of inputs is, so that a slow one (lines of a socket, files that are read) holds back neither
/// workers nor results, and a fast one pays next to nothing. Until it has given kProof inputs in a row without delay it
/// is watched with the steady clock, and each input is published at once; from then on a look at the coarse clock tells
/// that it has become slow. One thread.
class RangePace {
 public:
  /// The range is going to be asked, after a pause that was not its own.
  void begin() noexcept;
  /// It gave an input. True when what there is should be published now.
  bool note() noexcept;
  /// It has kept us waiting not long ago: results that are there come before it is asked again.
  bool slow() const noexcept { return slow_; }

 private:
  static constexpr int kProof = 64;
  static constexpr std::chrono::microseconds kDelay{50};
  bool proven() const noexcept { return prompt_ == kProof; }

  int prompt_ = 0;  ///< inputs in a row that came without delay
  bool slow_ = false;
  std::chrono::steady_clock::time_point last_;  ///< until it is proven: when it was asked
  std::int64_t tick_ = 0;                       ///< since then: of the coarse clock
  int since_tick_ = 0;                          ///< inputs
};

}  // namespace drover::inline v1::detail
