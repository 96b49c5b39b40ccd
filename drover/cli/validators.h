// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

namespace drover::inline v1::cli {

/// A number from 1 to `most`, or the word. Digits only: CLI11 by itself reads 010 as eight and takes 0x10.
CLI::Validator whole_number(std::int64_t most, const std::string& or_word = "");

/// The value of an option: "90s", "2m", "1h" or a number of seconds. Throws UsageError with the option's name.
double seconds_of(const std::string& option, const std::string& text);

}  // namespace drover::inline v1::cli
