// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "drover/health/report.h"

/// What the live view's screens are made of. All pure.
namespace drover::inline v1::cli {

/// How text looks. Where colours are not allowed, only bold and reversed are left: they are none.
enum class Ink { kPlain, kBold, kFaint, kGood, kBusy, kWarning, kCritical, kUnknown };

/// A row of the screen. Its text is printable ASCII and nothing else, so that bytes are columns.
class Line {
 public:
  Line() = default;
  /// Text of ours, or sanitized by `ascii`.
  explicit Line(std::string_view text, Ink ink = Ink::kPlain) { add(text, ink); }

  Line& add(std::string_view text, Ink ink = Ink::kPlain);
  /// Blanks up to a column, at least one when something stands there already.
  Line& to(std::size_t column);
  Line& reversed() {
    reversed_ = true;
    return *this;
  }
  /// Reversed, and with a `>` in the first column, for those who do not see that.
  Line& marked();

  std::size_t width() const noexcept { return text_.size(); }
  const std::string& text() const noexcept { return text_; }
  /// Exactly `columns` wide, with the escape sequences that colour it.
  std::string drawn(std::size_t columns, bool colour) const;

 private:
  struct Span {
    std::size_t begin;
    Ink ink;
  };
  std::string text_;
  std::vector<Span> spans_;
  bool reversed_ = false;
};

/// Text from elsewhere as printable ASCII: control characters as `\xNN`, all others that are not ASCII as `?`.
std::string ascii(std::string_view text);
/// At most `most` characters; "..." at the end when something was cut.
std::string shortened(std::string text, std::size_t most);
/// "[|||||     ]": `cells` between the brackets, of which `share` are full. A share that is not 0 is at least one.
std::string bar(double share, std::size_t cells);
/// "45s", "12m", "3h05", "2d03": at most 5 characters up to 999 days.
std::string short_time(double seconds);
/// "512M", "38.2G", "1.4T": at most 6 characters.
std::string short_bytes(double bytes);

Ink ink_of(health::Severity severity);
/// Four letters: "CRIT", "WARN", "UNKN", "note".
const char* short_word(health::Severity severity);

}  // namespace drover::inline v1::cli
