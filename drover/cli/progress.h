// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

namespace drover::inline v1::cli {

/// How far a job is.
struct Reached {
  std::int64_t done = 0;
  std::int64_t total = 1;
  double seconds = 0;  // since the start
};

/// One line of at most `columns` - 1 characters (the last column stays free, as some terminals wrap there). What does
/// not fit is left out, the least needed first: the counts, the bar, the rate, the time left.
std::string bar_line(const Reached& reached, std::size_t columns);

/// The same in words, for files and pipes: "5,000 of 50,000 samples, 1,420/s, 0:32 left".
std::string log_line(const Reached& reached, const char* things);

/// Shows the progress of one job on a stream: on a terminal a bar that is redrawn at most ten times a second, elsewhere
/// a line after every `step` things. One thread at a time. Borrows the stream.
class Progress {
 public:
  Progress(std::FILE* stream, std::int64_t total, std::int64_t step, const char* things);
  /// Leaves an empty line on a terminal, so that whatever comes next (a result, an error, the shell's prompt) is not
  /// mixed up with the bar; also when the job was interrupted.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// One more is done.
  void advance();
  /// Ends the display. Call advance() no more.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;

  void draw(Clock::time_point now);
  void show(std::string line) const;
  void print_line(Clock::time_point now);
  Reached reached(Clock::time_point now) const;

  std::FILE* const stream_;
  const std::int64_t total_, step_;
  const char* const things_;
  const bool bar_;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point next_draw_ = start_;
  std::int64_t done_ = 0;
  bool finished_ = false;
};

}  // namespace drover::inline v1::cli
