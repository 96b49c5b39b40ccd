// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

namespace drover::inline v1::detail {

/// How fast a user's range of inputs is, so that a slow one (lines of a socket, files that are read) holds back neither
/// workers nor results, and a fast one pays next to nothing. Until it has given kProof inputs in a row promptly it is
/// watched with the steady clock, and each input is published at once; from then on the coarse clock is looked at for
/// every eighth input, which is when they are published, and tells that the range has become slow. So a pause finds few
/// inputs that wait with it. One thread.
class RangePace {
 public:
  /// The range is going to be asked, after a pause that was not its own.
  void begin() noexcept;
  /// It gave an input. True when what there is should be published now.
  bool note() noexcept;
  /// One of its last inputs has kept us waiting for long: results that are there come before it is asked again.
  bool slow() const noexcept { return slow_left_ != 0; }

 private:
  static constexpr int kProof = 64;
  static constexpr std::chrono::microseconds kPrompt{50};
  static constexpr std::chrono::milliseconds kSlow{2};    ///< long against what it costs when workers run dry
  static constexpr std::chrono::milliseconds kPause{20};  ///< two steps of the slowest coarse clock
  bool proven() const noexcept { return prompt_ == kProof; }
  void note_one(std::chrono::nanoseconds took) noexcept;

  int prompt_ = 0;                              ///< inputs in a row that came promptly
  int slow_left_ = 0;                           ///< inputs until the last slow one is forgotten
  std::chrono::steady_clock::time_point last_;  ///< until it is proven: when it was asked
  std::int64_t tick_ = 0;                       ///< since then: of the coarse clock
  int since_tick_ = 0;                          ///< inputs
};

}  // namespace drover::inline v1::detail
