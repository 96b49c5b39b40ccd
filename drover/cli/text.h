// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace drover::inline v1::cli {

/// 50000 -> "50,000".
std::string grouped(std::int64_t number);

/// Things per second: "1,420" from 100 on, below that three digits: "12.3", "0.0457".
std::string rate_text(double per_second);

/// Seconds as "0:32", "12:05" or "1:02:05"; what is unknown, or longer than a year, is "?".
std::string clock_text(double seconds);

/// "drover: TEXT" on standard error, which may be closed.
void complain(std::string_view text) noexcept;
/// Sends what was printed. Throws std::system_error when it cannot be written: a full disk, a closed output. Then
/// output is given up, and what is printed later goes nowhere, so that this is told once.
void flush_output();
/// Prints a whole text by one write, as far as the output takes it, so that the lines of ranks which share a pipe mix
/// as little as can be. Throws as flush_output().
void print_whole(const std::string& text);

}  // namespace drover::inline v1::cli
