// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace drover::inline v1::health {

/// Every number that a verdict depends on. The table in thresholds.cc has names, defaults, units and meanings.
enum class Limit {
  kGap,
  kConfirm,
  kClear,
  kGrace,
  kUnknownExit,
  kR1Call,
  kR1Recent,
  kR1Slow,
  kR2State,
  kR2Kill,
  kR2Storage,
  kR3Hold,
  kR4Twice,
  kR5Hold,
  kR6Low,
  kR6Medium,
  kR6High,
  kR6Cores,
  kR6Memory,
  kR6PowerOfLimit,
  kR6PowerOfIdle,
  kR6Flat,
  kR6Pcie,
  kR6Nvlink,
  kR6Io,
  kR7Hold,
  kR7Cpu,
  kR7Io,
  kR8Warn,
  kR8Advise,
  kR8Interactive,
  kR8Vram,
  kR8VramShare,
  kR8Cpu,
  kR8Io,
  kR9Vram,
  kR9VramShare,
  kR9Samples,
  kMemoryPressure,
  kMemoryLeft,
  kThrottled,
  kCount
};

enum class LimitUnit { kSeconds, kBytes, kBytesPerSecond, kShare, kNumber };

struct LimitInfo {
  Limit limit;
  const char* name;
  double value;
  LimitUnit unit;
  const char* meaning;
};

/// The limits of one inspection. A value; const methods may run concurrently.
class Thresholds {
 public:
  Thresholds();

  double operator[](Limit limit) const noexcept { return values_[static_cast<std::size_t>(limit)]; }
  void set(Limit limit, double value) noexcept { values_[static_cast<std::size_t>(limit)] = value; }

  /// Takes `r8.warn=30m`. Throws InvalidArgument, with the names that there are or the largest value, when it cannot
  /// mean anything: at most 36,500 days, 2^60 bytes, 100,000 % or 1,000,000.
  void set(std::string_view assignment);

  /// "r8.warn=1h", as it is in force; `set` takes it back.
  std::string text(Limit limit) const;

  static const std::array<LimitInfo, static_cast<std::size_t>(Limit::kCount)>& table() noexcept;

 private:
  std::array<double, static_cast<std::size_t>(Limit::kCount)> values_;
};

/// "90s", "1.5h", "2GiB", "35%", "0.05" as a number of seconds, bytes or a share. Throws InvalidArgument. Pure.
double parse_quantity(std::string_view text, LimitUnit unit);
/// Seconds as "45 s", "12 min", "3 h 05 min", "2 d 3 h". Pure.
std::string duration_text(double seconds);
/// Bytes as "512 B", "3.2 MiB", "71.4 GiB". Pure.
std::string bytes_text(double bytes);
/// 0.355 as "36 %". Pure.
std::string percent_text(double share);
/// 62.4 as "62 W". Pure.
std::string watts_text(double watts);
/// "1 note", "2 notes". Pure.
std::string plural(std::size_t count, const char* noun);
/// ASCII letters become capitals, whatever the locale; the rest stays.
std::string upper(std::string text);

}  // namespace drover::inline v1::health
