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

/// One finding, over several lines, sanitized. Pure.
std::string finding_text(const health::Finding& finding, const TextStyle& style);
/// Whom and what a finding is about, but for the command: as it was told, not sanitized. Pure.
std::string who_text(const health::Finding& finding);
/// A line of that severity, wrapped, sanitized, with its line end. Pure.
std::string heading_text(const std::string& text, health::Severity severity, const TextStyle& style);
/// The severity that goes with an exit code.
health::Severity severity_of_code(int code) noexcept;
/// At most `most` bytes, not ending inside a character; "..." at the end when something was cut. Pure.
std::string cut(std::string text, std::size_t most);

/// The verdict alone, on one line of at most `columns` characters, for monitors (Nagios, NHC, prologs). Pure.
std::string check_line(const std::string& verdict, std::size_t columns);

/// `text` broken at blanks into lines of at most `width` bytes; every line but the first begins with `indent` blanks
/// (the first is taken to stand behind so many already). A word that is too long is broken, never inside a character.
std::string wrapped(std::string_view text, std::size_t width, std::size_t indent);

}  // namespace drover::inline v1::cli
