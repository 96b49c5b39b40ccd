// SPDX-License-Identifier: Apache-2.0
#include "drover/health/thresholds.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>

#include "drover/base/errors.h"

namespace drover::inline v1::health {
namespace {

using enum Limit;
using enum LimitUnit;

constexpr double kMinute = 60, kHour = 3600, kMiB = 1024.0 * 1024, kGiB = 1024 * kMiB;

// Sources of the defaults: the rules of the project's facts page; time limits of R8 as sites use them (mail after 60,
// cancel after 120 minutes: Princeton's job_defense_shield, Northeastern's IdleBot; Jupyter culling after 12 hours).
constexpr std::array<LimitInfo, static_cast<std::size_t>(kCount)> kTable = {{
    {kGap, "history.gap", 20 * kMinute, kSeconds, "looks further apart do not add up"},
    {kConfirm, "confirm", 3, kNumber, "samples that a condition needs, beside its time"},
    {kClear, "clear", 3, kNumber, "samples without it before a reported condition is over"},
    {kGrace, "grace", 5 * kMinute, kSeconds, "no verdict on idle or spinning for so long after a process started"},
    {kUnknownExit, "unknown.exit", 1, kNumber, "1: exit code 3 when something cannot be judged; 0: it does not count"},
    {kR1Call, "r1.call", 5, kSeconds, "R1: a driver that does not answer for so long is at fault"},
    {kR1Recent, "r1.recent", kHour, kSeconds,
     "R1: an Xid in the kernel's log counts for so long; after that it is a note"},
    {kR1Slow, "r1.slow", 10 * kMinute, kSeconds, "R1: slowed down by its hardware, at work, for so long: a warning"},
    {kR2State, "r2.state", 60, kSeconds, "R2: a thread uninterruptible for so long is stuck"},
    {kR2Kill, "r2.kill", 10, kSeconds, "R2: alive for so long with SIGKILL pending is stuck"},
    {kR2Storage, "r2.storage", 15 * kMinute, kSeconds,
     "R2: in storage for so long, and neither reading, writing nor working: a warning"},
    {kR3Hold, "r3.hold", 5, kSeconds, "R3: a zombie that still holds memory after so long"},
    {kR4Twice, "r4.twice", 2, kSeconds, "R4: listed but gone, seen twice so far apart"},
    {kR5Hold, "r5.hold", 60, kSeconds, "R5: orphaned, and idle or spinning for so long"},
    {kR6Low, "r6.low", 60, kSeconds, "R6: spinning for so long: low confidence"},
    {kR6Medium, "r6.medium", 5 * kMinute, kSeconds, "R6: medium confidence, and a warning"},
    {kR6High, "r6.high", 10 * kMinute, kSeconds, "R6: high confidence"},
    {kR6Cores, "r6.sm", 0.95, kShare, "R6: at least this busy"},
    {kR6Memory, "r6.memory", 0.05, kShare, "R6: memory controller at most this busy"},
    {kR6PowerOfLimit, "r6.power", 0.35, kShare, "R6: power below this share of the limit, or ..."},
    {kR6PowerOfIdle, "r6.idle", 1.5, kNumber, "... below so many times the idle power seen here"},
    {kR6Flat, "r6.flat", 0.05, kShare, "R6: deviation of the power divided by its mean, at most"},
    {kR6Pcie, "r6.pcie", 20e6, kBytesPerSecond, "R6: PCIe traffic at most"},
    {kR6Nvlink, "r6.nvlink", 1e6, kBytesPerSecond, "R6: NVLink traffic at most"},
    {kR6Io, "r6.io", 4096, kBytesPerSecond, "R6: what the process reads and writes at most"},
    {kR7Hold, "r7.hold", 10 * kMinute, kSeconds, "R7: blocked for so long"},
    {kR7Cpu, "r7.cpu", 0.01, kShare, "R7: of one core at most"},
    {kR7Io, "r7.io", 4096, kBytesPerSecond, "R7: what the process reads and writes at most"},
    {kR8Warn, "r8.warn", kHour, kSeconds, "R8: idle for so long: a warning"},
    {kR8Advise, "r8.advise", 2 * kHour, kSeconds, "R8: idle for so long: advice to end it"},
    {kR8Interactive, "r8.interactive", 12 * kHour, kSeconds, "R8: the warning for notebooks and debuggers"},
    {kR8Vram, "r8.vram", 2 * kGiB, kBytes, "R8: holds at least this much, and ..."},
    {kR8VramShare, "r8.share", 0.05, kShare, "... at least this share of the GPU's memory"},
    {kR8Cpu, "r8.cpu", 0.05, kShare, "R8: of one core at most"},
    {kR8Io, "r8.io", 1e5, kBytesPerSecond, "R8: what the process reads and writes at most"},
    {kR9Vram, "r9.vram", 1 * kGiB, kBytes, "R9: unattributed memory over this, and ..."},
    {kR9VramShare, "r9.share", 0.05, kShare, "... over this share of the GPU's memory"},
    {kR9Samples, "r9.samples", 3, kNumber, "R9: in so many samples"},
    {kMemoryPressure, "memory.pressure", 0.10, kShare, "host: all tasks waiting for memory, over a minute"},
    {kMemoryLeft, "memory.left", 0.02, kShare, "host: memory available, of all or of the limit"},
    {kThrottled, "cpu.throttled", 0.25, kShare,
     "host: periods of the cgroup's CPU quota in which it was used up, of all"},
}};

constexpr bool in_order() {
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    if (kTable[i].limit != static_cast<Limit>(i)) return false;
  }
  return true;
}
static_assert(in_order(), "the table is indexed by Limit");

struct Suffix {
  std::string_view text;
  double factor;
};
constexpr Suffix kTimes[] = {{"ms", 1e-3}, {"s", 1},          {"min", kMinute}, {"m", kMinute},
                             {"h", kHour}, {"d", 24 * kHour}, {"", 1}};
constexpr Suffix kSizes[] = {{"KiB", 1024}, {"MiB", kMiB}, {"GiB", kGiB}, {"kB", 1e3},
                             {"MB", 1e6},   {"GB", 1e9},   {"B", 1},      {"", 1}};
constexpr Suffix kShares[] = {{"%", 0.01}, {"", 1}};
constexpr Suffix kNumbers[] = {{"", 1}};

template <std::size_t N>
double factor_of(std::string_view suffix, const Suffix (&known)[N], std::string_view whole) {
  for (const Suffix& one : known) {
    if (one.text == suffix) return one.factor;
  }
  std::string list;
  for (const Suffix& one : known) list += one.text.empty() ? "" : " " + std::string(one.text);
  throw InvalidArgument("'" + std::string(whole) + "' has no unit that is known here" +
                        (list.empty() ? "; write a plain number" : "; write one of:" + list));
}

double factor_of(std::string_view suffix, LimitUnit unit, std::string_view whole) {
  switch (unit) {
    case kSeconds:
      return factor_of(suffix, kTimes, whole);
    case kBytes:
    case kBytesPerSecond:
      return factor_of(suffix, kSizes, whole);
    case kShare:
      return factor_of(suffix, kShares, whole);
    case kNumber:
      break;
  }
  return factor_of(suffix, kNumbers, whole);
}

/// More means nothing, and would not fit where whole numbers are made of it.
double most_of(LimitUnit unit) {
  switch (unit) {
    case kSeconds:
      return 36'500 * 24 * kHour;
    case kBytes:
    case kBytesPerSecond:
      return 1024 * 1024 * 1024 * kGiB;
    case kShare:
      return 1000;
    case kNumber:
      break;
  }
  return 1e6;
}

std::string format(const char* pattern, double value) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, pattern, value);
  return buffer;
}

/// The largest unit in which the value is at least 1, so that `set` reads it back as it was.
template <std::size_t N>
std::string with_suffix(double value, const Suffix (&known)[N]) {
  const Suffix* best = nullptr;
  for (const Suffix& one : known) {
    if (!one.text.empty() && one.factor <= value && (best == nullptr || one.factor > best->factor)) best = &one;
  }
  return best == nullptr ? format("%.10g", value) : format("%.10g", value / best->factor) + std::string(best->text);
}

std::string value_text(double value, LimitUnit unit) {
  static constexpr Suffix kPlainTimes[] = {{"s", 1}, {"m", kMinute}, {"h", kHour}};
  static constexpr Suffix kPlainSizes[] = {{"B", 1}, {"KiB", 1024}, {"MiB", kMiB}, {"GiB", kGiB}};
  static constexpr Suffix kPlainRates[] = {{"B", 1}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}};
  switch (unit) {
    case kSeconds:
      return with_suffix(value, kPlainTimes);
    case kBytes:
      return with_suffix(value, kPlainSizes);
    case kBytesPerSecond:
      return with_suffix(value, kPlainRates);
    case kShare:
      return format("%.10g", value * 100) + "%";
    case kNumber:
      break;
  }
  return format("%.10g", value);
}

}  // namespace

Thresholds::Thresholds() {
  for (const LimitInfo& info : kTable) set(info.limit, info.value);
}

void Thresholds::set(std::string_view assignment) {
  const std::size_t equals = assignment.find('=');
  const std::string_view name = assignment.substr(0, equals);
  const auto found =
      std::find_if(kTable.begin(), kTable.end(), [&](const LimitInfo& info) { return info.name == name; });
  if (equals == assignment.npos || found == kTable.end()) {
    std::string names;
    for (const LimitInfo& info : kTable) names += std::string(names.empty() ? "" : ", ") + info.name;
    throw InvalidArgument("'" + std::string(assignment) + "' is no threshold; write NAME=VALUE with one of: " + names);
  }
  const double value = parse_quantity(assignment.substr(equals + 1), found->unit), most = most_of(found->unit);
  if (value > most) {
    throw InvalidArgument("'" + std::string(assignment) + "' is too much: " + found->name + " may be from 0 to " +
                          value_text(most, found->unit));
  }
  set(found->limit, value);
}

std::string Thresholds::text(Limit limit) const {
  const LimitInfo& info = kTable[static_cast<std::size_t>(limit)];
  return std::string(info.name) + "=" + value_text((*this)[limit], info.unit);
}

const std::array<LimitInfo, static_cast<std::size_t>(Limit::kCount)>& Thresholds::table() noexcept { return kTable; }

double parse_quantity(std::string_view text, LimitUnit unit) {
  double value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !std::isfinite(value) || value < 0) {
    throw InvalidArgument("'" + std::string(text) + "' does not begin with a number that is at least 0");
  }
  const double result = value * factor_of(text.substr(static_cast<std::size_t>(stop - text.data())), unit, text);
  if (!std::isfinite(result)) throw InvalidArgument("'" + std::string(text) + "' is too large");
  return result;
}

std::string duration_text(double seconds) {
  if (!(seconds >= 0)) return "?";
  if (seconds < 9.95) return format(seconds < 0.9995 ? "%.2g s" : "%.1f s", seconds);
  if (seconds < 120) return format("%.0f s", seconds);
  const double minutes = std::floor(seconds / 60);
  if (minutes < 120) return format("%.0f min", minutes);
  const double hours = std::floor(minutes / 60);
  if (hours < 48) return format("%.0f h ", hours) + format("%02.0f min", minutes - 60 * hours);
  const double days = std::floor(hours / 24);
  return format("%.0f d ", days) + format("%.0f h", hours - 24 * days);
}

std::string bytes_text(double bytes) {
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes < 1000) return format("%.0f B", bytes);
  std::size_t unit = 0;
  for (bytes /= 1024; bytes >= 1000 && unit + 1 < std::size(kUnits); ++unit) bytes /= 1024;
  return format(bytes < 99.95 ? "%.1f " : "%.0f ", bytes) + kUnits[unit];
}

std::string upper(std::string text) {
  for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return text;
}

std::string percent_text(double share) { return format("%.0f %%", 100 * share); }

std::string watts_text(double watts) { return format("%.0f W", watts); }

std::string plural(std::size_t count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace drover::inline v1::health
