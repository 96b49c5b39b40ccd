// SPDX-License-Identifier: Apache-2.0
#include "drover/cli/validators.h"

#include <fmt/format.h>

#include <charconv>
#include <system_error>

#include "drover/base/errors.h"
#include "drover/cli/command.h"
#include "drover/cli/text.h"
#include "drover/health/thresholds.h"

namespace drover::inline v1::cli {

CLI::Validator whole_number(std::int64_t most, const std::string& or_word) {
  const auto check = [most, or_word](const std::string& text) -> std::string {
    std::int64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    const bool good = error == std::errc() && stop == end && text.front() != '0' && value >= 1 && value <= most;
    if (good || (!or_word.empty() && text == or_word)) return "";
    const std::string also = or_word.empty() ? "" : ", nor " + or_word;
    return fmt::format("'{}' is not a whole number from 1 to {}{}", text, grouped(most), also);
  };
  return CLI::Validator(check, "");
}

double seconds_of(const std::string& option, const std::string& text) {
  try {
    return health::parse_quantity(text, health::LimitUnit::kSeconds);
  } catch (const InvalidArgument& error) {
    throw UsageError(option + ": " + error.what());
  }
}

}  // namespace drover::inline v1::cli
