// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "drover/health/report.h"

namespace drover::inline v1::cli {

struct TextStyle {
  std::size_t columns = 80;  ///< lines are at most this long, down to 40
  bool colour = false;
};

/// The report for people. Whatever processes call themselves is shown sanitized. Pure.
std::string inspect_text(const health::Report& report, const TextStyle& style);

/// The verdict alone, on one line of at most `columns` characters, for monitors (Nagios, NHC, prologs). Pure.
std::string check_line(const health::Report& report, std::size_t columns);

/// `text` broken at blanks into lines of at most `width` bytes; every line but the first begins with `indent` blanks
/// (the first is taken to stand behind so many already). A word that is too long is broken, never inside a character.
std::string wrapped(std::string_view text, std::size_t width, std::size_t indent);

}  // namespace drover::inline v1::cli
