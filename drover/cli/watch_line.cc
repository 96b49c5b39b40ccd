// SPDX-License-Identifier: Apache-2.0
#include "drover/cli/watch_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "drover/os/terminal.h"

namespace drover::inline v1::cli {
namespace {

const char* sequence(Ink ink, bool colour) {
  switch (ink) {
    case Ink::kPlain:
      return "";
    case Ink::kBold:
      return "\x1b[1m";
    case Ink::kFaint:
      return colour ? "\x1b[36m" : "";
    case Ink::kGood:
      return colour ? "\x1b[32m" : "";
    case Ink::kBusy:
      return colour ? "\x1b[34m" : "";
    case Ink::kWarning:
      return colour ? "\x1b[1;33m" : "\x1b[1m";
    case Ink::kCritical:
      return colour ? "\x1b[1;31m" : "\x1b[1m";
    case Ink::kUnknown:
      return colour ? "\x1b[1;35m" : "\x1b[1m";
  }
  return "";
}

}  // namespace

Line& Line::add(std::string_view text, Ink ink) {
  if (spans_.empty() || spans_.back().ink != ink) spans_.push_back({text_.size(), ink});
  text_ += text;
  return *this;
}

Line& Line::to(std::size_t column) {
  const std::size_t blanks = column > text_.size() ? column - text_.size() : text_.empty() ? 0 : 1;
  return add(std::string(blanks, ' '));
}

Line& Line::marked() {
  if (text_.empty()) add(" ");
  text_.front() = '>';
  return reversed();
}

std::string Line::drawn(std::size_t columns, bool colour) const {
  std::string text = text_.substr(0, columns);
  text.resize(columns, ' ');
  // One ink on reversed ground: the colours of parts would be hard to read there.
  if (reversed_) return "\x1b[7m" + text + "\x1b[0m";
  std::string drawn;
  for (std::size_t i = 0; i < spans_.size(); ++i) {
    const std::size_t begin = std::min(spans_[i].begin, columns);
    const std::size_t end = i + 1 < spans_.size() ? std::min(spans_[i + 1].begin, columns) : columns;
    const std::string_view ink = sequence(spans_[i].ink, colour);
    drawn.append(ink).append(text, begin, end - begin).append(ink.empty() ? "" : "\x1b[0m");
  }
  return spans_.empty() ? text : drawn;
}

std::string ascii(std::string_view text) {
  const std::string safe = os::sanitize(text);
  std::string result;
  for (const char c : safe) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7F) {
      result += c;
    } else if (byte < 0x80) {
      result += ' ';  // a tab
    } else if (byte >= 0xC0) {
      result += '?';  // the first byte of a character; the others are left out
    }
  }
  return result;
}

std::string shortened(std::string text, std::size_t most) {
  if (text.size() <= most) return text;
  text.resize(most);
  if (most > 6) text.replace(most - 3, 3, "...");
  return text;
}

std::string bar(double share, std::size_t cells) {
  const double clamped = share > 0 ? std::min(share, 1.0) : 0;
  auto full = static_cast<std::size_t>(std::lround(clamped * static_cast<double>(cells)));
  if (clamped >= 0.005) full = std::max<std::size_t>(full, 1);
  full = std::min(full, cells);
  return "[" + std::string(full, '|') + std::string(cells - full, ' ') + "]";
}

std::string short_time(double seconds) {
  if (!(seconds >= 0)) return "-";
  const auto whole = static_cast<std::int64_t>(std::min(seconds, 1e9));
  if (whole < 60) return fmt::format("{}s", whole);
  if (whole < 3600) return fmt::format("{}m", whole / 60);
  if (whole < 24 * 3600) return fmt::format("{}h{:02}", whole / 3600, whole / 60 % 60);
  const std::int64_t days = whole / (24 * 3600);
  return days < 100 ? fmt::format("{}d{:02}", days, whole / 3600 % 24) : fmt::format("{}d", days);
}

std::string short_bytes(double bytes) {
  static constexpr const char* kUnits = "KMGTP";
  double value = std::max(bytes, 0.0) / 1024;
  std::size_t unit = 0;
  while (value >= 1023.5 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  return fmt::format(fmt::runtime(value < 99.95 && unit >= 2 ? "{:.1f}{}" : "{:.0f}{}"), value, kUnits[unit]);
}

Ink ink_of(health::Severity severity) {
  switch (severity) {
    case health::Severity::kCritical:
      return Ink::kCritical;
    case health::Severity::kWarning:
      return Ink::kWarning;
    case health::Severity::kUnknown:
      return Ink::kUnknown;
    case health::Severity::kInfo:
      break;
  }
  return Ink::kPlain;
}

const char* short_word(health::Severity severity) {
  switch (severity) {
    case health::Severity::kCritical:
      return "CRIT";
    case health::Severity::kWarning:
      return "WARN";
    case health::Severity::kUnknown:
      return "UNKN";
    case health::Severity::kInfo:
      break;
  }
  return "note";
}

}  // namespace drover::inline v1::cli
