// SPDX-License-Identifier: Apache-2.0
#include "drover/cli/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "drover/cli/text.h"
#include "drover/os/terminal.h"

namespace drover::inline v1::cli {
namespace {

constexpr std::chrono::milliseconds kRedraw{100};

double rate(const Reached& reached) {
  return reached.seconds > 0 ? static_cast<double>(reached.done) / reached.seconds : 0;
}

double seconds_left(const Reached& reached) {
  return reached.done > 0 ? static_cast<double>(reached.total - reached.done) / rate(reached) : HUGE_VAL;
}

std::string bar(const Reached& reached, std::size_t cells) {
  const double share = static_cast<double>(reached.done) / static_cast<double>(reached.total);
  const auto full = static_cast<std::size_t>(share * static_cast<double>(cells));
  std::string text(cells, ' ');
  std::fill_n(text.begin(), full, '=');
  if (full < cells) text[full] = '>';
  return "[" + text + "]";
}

}  // namespace

std::string bar_line(const Reached& reached, std::size_t columns) {
  constexpr std::size_t kFrame = 2, kLeast = 10;  // brackets; cells below which a bar says nothing
  const std::size_t room = std::max<std::size_t>(columns, 2) - 1;
  std::string text = fmt::format("{} %", reached.done * 100 / reached.total).substr(0, room);
  const auto add = [&](const std::string& piece, std::size_t keep_free) {
    if (text.size() + 2 + piece.size() + keep_free <= room) text += "  " + piece;
  };
  const std::string counts = grouped(reached.done) + "/" + grouped(reached.total);
  add(clock_text(seconds_left(reached)) + " left", 0);
  add(rate_text(rate(reached)) + "/s", 0);
  add(counts, kLeast + kFrame + 1);
  if (text.size() + 1 + kFrame + kLeast > room) return text;
  return bar(reached, room - text.size() - 1 - kFrame) + " " + text;
}

std::string log_line(const Reached& reached, const char* things) {
  return fmt::format("{} of {} {}, {}/s, {} left", grouped(reached.done), grouped(reached.total), things,
                     rate_text(rate(reached)), clock_text(seconds_left(reached)));
}

Progress::Progress(std::FILE* stream, std::int64_t total, std::int64_t step, const char* things)
    : stream_(stream), total_(total), step_(step), things_(things), bar_(os::is_terminal(fileno(stream))) {
  if (bar_) draw(start_);
}

Progress::~Progress() { finish(); }

void Progress::advance() {
  ++done_;
  if (bar_) {
    const auto now = Clock::now();
    if (now >= next_draw_) draw(now);
  } else if (done_ % step_ == 0 || done_ == total_) {
    print_line(Clock::now());
  }
}

void Progress::finish() {
  if (finished_ || !bar_) return;
  finished_ = true;
  show("");
}

void Progress::draw(Clock::time_point now) {
  next_draw_ = now + kRedraw;
  show(bar_line(reached(now), os::terminal_width(fileno(stream_))));
}

void Progress::show(std::string line) const {
  // Blanks clear the line on every terminal, also one without escape sequences. The cursor goes back to the first
  // column at once: there the terminal's echo of Ctrl-C lands on the bar, and not on a line of its own.
  line.resize(std::max<std::size_t>(os::terminal_width(fileno(stream_)), 2) - 1, ' ');
  std::fputs(("\r" + line + "\r").c_str(), stream_);
  std::fflush(stream_);
}

void Progress::print_line(Clock::time_point now) {
  std::fputs((log_line(reached(now), things_) + "\n").c_str(), stream_);
  std::fflush(stream_);
}

Reached Progress::reached(Clock::time_point now) const {
  return {done_, total_, std::chrono::duration<double>(now - start_).count()};
}

}  // namespace drover::inline v1::cli
