// SPDX-License-Identifier: Apache-2.0
#include "drover/health/history.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <type_traits>

#include "drover/os/file_system.h"
#include "drover/os/host_files.h"

namespace drover::inline v1::health {
namespace {

constexpr std::size_t kMostHistory = 16U << 20U;
constexpr std::string_view kHeading = "drover-health 1";
constexpr double kMostTime = 1e10;  // seconds since boot

/// In as many digits as bring the same number back: a large counter must show what a small one shows.
std::string number(double value) {
  char text[40];
  const std::to_chars_result end = std::to_chars(text, text + sizeof text, value);
  return " " + std::string(text, end.ptr);
}
std::string time_text(double value) {
  char text[40];
  std::snprintf(text, sizeof text, " %.3f", value);
  return text;
}
std::string text_of(const Streak& streak) {
  return time_text(streak.since) + time_text(streak.last) + " " + std::to_string(streak.hits) +
         (streak.reported ? " 1" : " 0");
}
std::string text_of(const ProcessKey& key) {
  return " " + std::to_string(key.first) + " " + std::to_string(key.second);
}

/// The words of one line. What is missing or wrong makes the line bad as a whole.
class Words {
 public:
  explicit Words(std::string_view line) : line_(line) {}

  std::string_view next() {
    const std::string_view word = os::take_word(line_);
    good_ = good_ && !word.empty();
    return word;
  }
  double real() { return real_of(std::string(next())); }
  /// A number; nothing for "-", which is one that is not known, and for one that cannot be.
  std::optional<double> real_or_dash(double most) {
    const std::string_view word = next();
    if (word == "-") return std::nullopt;
    const double value = real_of(std::string(word));
    return good_ && value >= 0 && value <= most ? std::optional(value) : std::nullopt;
  }
  double time() {
    const double value = real();
    if (std::fabs(value) > kMostTime) good_ = false;
    return value;
  }
  std::uint64_t count() {
    const auto value = os::parse_number(next());
    good_ = good_ && value.has_value();
    return value.value_or(0);
  }
  ProcessKey key() {
    const std::uint64_t pid = count(), start = count();
    if (pid > (1U << 22U)) good_ = false;
    return {static_cast<int>(pid & 0x3FFFFFU), start};
  }
  Streak streak() {
    Streak streak;
    streak.since = time();
    streak.last = time();
    const std::uint64_t hits = count();
    streak.hits = hits > 1'000'000'000 ? 1'000'000'000 : static_cast<int>(hits);
    streak.reported = count() != 0;
    if (streak.since > streak.last) good_ = false;
    return streak;
  }
  bool more() const noexcept { return line_.find_first_not_of(' ') != line_.npos; }
  bool good() const noexcept { return good_; }

 private:
  double real_of(const std::string& word) {
    char* end = nullptr;
    const double value = std::strtod(word.c_str(), &end);
    if (end == word.c_str() || *end != '\0' || !std::isfinite(value)) good_ = false;
    return good_ ? value : 0;
  }

  std::string_view line_;
  bool good_ = true;
};

void read_process(Words words, Tracker& tracker) {
  const ProcessKey key = words.key();
  ProcessTrack track;
  track.seen = words.time();
  track.cpu_seconds = words.real();
  track.io_bytes = words.count();
  for (Streak* const streak : {&track.stuck, &track.killed, &track.defunct, &track.calm, &track.blocked})
    *streak = words.streak();
  if (const std::uint64_t thread = words.count(); thread != 0)
    track.stuck_threads = {static_cast<int>(thread & 0x3FFFFFU)};
  Words newer = words;  // what older programs did not write
  const Streak polls = newer.streak();
  if (newer.good()) track.polls = polls;
  while (newer.more() && track.stuck_threads.size() < kMostThreads) {
    const std::uint64_t thread = newer.count();
    if (newer.good() && !track.stuck_threads.empty())
      track.stuck_threads.push_back(static_cast<int>(thread & 0x3FFFFFU));
  }
  if (words.good()) tracker.processes()[key] = track;
}

void read_hold(Words words, Tracker& tracker) {
  const std::string gpu(words.next());
  const ProcessKey key = words.key();
  HoldTrack track;
  track.seen = words.time();
  track.was_busy = words.count() != 0;
  for (Streak* const streak : {&track.idle, &track.spinning, &track.gone}) *streak = words.streak();
  track.power.count = static_cast<int>(words.count() & 0xFFFFFFU);
  track.power.mean = words.real();
  track.power.squares = words.real();
  track.idle.untold = words.more() ? static_cast<int>(words.count() & 0xFFFFU) : 0;  // older programs wrote none
  if (words.good()) tracker.holds()[{gpu, key}] = track;
}

void read_gpu(Words words, Tracker& tracker) {
  const std::string gpu(words.next());
  GpuTrack track;
  track.seen = words.time();
  track.energy_j = words.real();
  track.idle_power_w = words.real();
  track.nvlink_bytes = words.real();
  track.unattributed = words.streak();
  Words newer = words;  // what older programs did not write
  const Streak slowed = newer.streak();
  if (newer.good()) track.slowed = slowed;
  if (words.good()) tracker.gpus()[gpu] = track;
}

/// What is not known is "-".
template <class T>
std::string optional_text(const std::optional<T>& value) {
  if constexpr (std::is_integral_v<T>) return value ? " " + std::to_string(*value) : " -";
  return value ? number(static_cast<double>(*value)) : " -";
}

/// Points that are not in order of time, or more than there should be, are left out.
void read_point(Words words, GpuSeries& series) {
  constexpr std::size_t kMostGpus = 1024;
  constexpr double kMostBytes = 1e15, kMostWatts = 1e5;
  const std::string gpu(words.next());
  GpuPoint point;
  point.at = words.time();
  point.cores = words.real_or_dash(1);
  if (const auto bytes = words.real_or_dash(kMostBytes)) point.memory_used = static_cast<std::uint64_t>(*bytes);
  point.power_w = words.real_or_dash(kMostWatts);
  if (!words.good() || (series.size() >= kMostGpus && series.count(gpu) == 0)) return;
  std::vector<GpuPoint>& points = series[gpu];
  if (points.size() < kSeriesPoints && (points.empty() || points.back().at < point.at)) points.push_back(point);
}

std::string series_text(const std::string& gpu, const std::vector<GpuPoint>& points) {
  std::string text;
  for (const GpuPoint& point : points) {
    text += "point " + gpu + time_text(point.at) + optional_text(point.cores) + optional_text(point.memory_used) +
            optional_text(point.power_w) + "\n";
  }
  return text;
}

bool is_word(const std::string& text) { return !text.empty() && text.find_first_of(" \t\n") == text.npos; }

}  // namespace

std::string history_text(const Tracker& tracker, const std::string& boot, double now, const GpuSeries& series) {
  std::string text = std::string(kHeading) + " " + boot + time_text(now) + "\n";
  for (const auto& [key, track] : tracker.processes()) {
    text += "process" + text_of(key) + time_text(track.seen) + number(track.cpu_seconds) + " " +
            std::to_string(track.io_bytes);
    for (const Streak* const streak : {&track.stuck, &track.killed, &track.defunct, &track.calm, &track.blocked})
      text += text_of(*streak);
    text += " " + std::to_string(track.stuck_threads.empty() ? 0 : track.stuck_threads.front()) + text_of(track.polls);
    for (std::size_t i = 1; i < track.stuck_threads.size(); ++i) text += " " + std::to_string(track.stuck_threads[i]);
    text += "\n";
  }
  for (const auto& [key, track] : tracker.holds()) {
    if (!is_word(key.first)) continue;
    text += "hold " + key.first + text_of(key.second) + time_text(track.seen) + (track.was_busy ? " 1" : " 0");
    for (const Streak* const streak : {&track.idle, &track.spinning, &track.gone}) text += text_of(*streak);
    text += " " + std::to_string(track.power.count) + number(track.power.mean) + number(track.power.squares) + " " +
            std::to_string(track.idle.untold) + "\n";
  }
  for (const auto& [uuid, track] : tracker.gpus()) {
    if (!is_word(uuid)) continue;
    text += "gpu " + uuid + time_text(track.seen) + number(track.energy_j) + number(track.idle_power_w) +
            number(track.nvlink_bytes) + text_of(track.unattributed) + text_of(track.slowed) + "\n";
  }
  for (const auto& [uuid, points] : series) {
    if (is_word(uuid)) text += series_text(uuid, points);
  }
  return text + "end\n";
}

void read_history(std::string_view text, const std::string& boot, Tracker& tracker, GpuSeries* series) {
  std::string_view heading = os::take_line(text);
  if (heading.substr(0, kHeading.size()) != kHeading) return;
  heading.remove_prefix(kHeading.size());
  if (os::take_word(heading) != boot || boot.empty()) return;  // times and pids of another boot mean nothing
  while (!text.empty()) {
    std::string_view line = os::take_line(text);
    const std::string_view kind = os::take_word(line);
    if (kind == "process") read_process(Words(line), tracker);
    if (kind == "hold") read_hold(Words(line), tracker);
    if (kind == "gpu") read_gpu(Words(line), tracker);
    if (kind == "point" && series != nullptr) read_point(Words(line), *series);
  }
}

History::History(std::string path, std::string boot, Tracker& tracker, GpuSeries& series)
    : path_(std::move(path)), boot_(std::move(boot)) {
  if (const auto text = os::read_own_file(path_, kMostHistory)) read_history(*text, boot_, tracker, &series);
}

void History::save(const Tracker& tracker, const GpuSeries& series, double now) const {
  static_cast<void>(os::replace_file(path_, history_text(tracker, boot_, now, series)));  // or another run did
}

}  // namespace drover::inline v1::health
