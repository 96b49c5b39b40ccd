// SPDX-License-Identifier: Apache-2.0
#include "drover/cli/text.h"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <system_error>

#include "drover/os/terminal.h"

namespace drover::inline v1::cli {
namespace {

[[noreturn]] void give_up_output(int error) {
  static_cast<void>(std::freopen("/dev/null", "w", stdout));  // without the rest that waits in the stream
  throw std::system_error(error, std::generic_category(), "cannot write to standard output");
}

}  // namespace

std::string grouped(std::int64_t number) {
  std::string text = std::to_string(number);
  const std::ptrdiff_t first = number < 0 ? 1 : 0;
  for (auto at = std::ssize(text) - 3; at > first; at -= 3) text.insert(static_cast<std::size_t>(at), 1, ',');
  return text;
}

std::string rate_text(double per_second) {
  return per_second >= 99.95 ? grouped(std::llround(per_second)) : fmt::format("{:.3g}", per_second);
}

std::string clock_text(double seconds) {
  constexpr double kYear = 365.0 * 24 * 3600;
  if (!(seconds >= 0 && seconds < kYear)) return "?";
  const auto whole = static_cast<std::int64_t>(std::ceil(seconds));
  const auto minutes = whole / 60 % 60, rest = whole % 60;
  if (whole < 3600) return fmt::format("{}:{:02}", minutes, rest);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, minutes, rest);
}

void complain(std::string_view text) noexcept {
  try {
    std::fputs(("drover: " + os::sanitize(text) + "\n").c_str(), stderr);
  } catch (const std::exception&) {  // no memory
  }
}

void flush_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) give_up_output(errno);
}

void print_whole(const std::string& text) {
  flush_output();
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) give_up_output(errno);
}

}  // namespace drover::inline v1::cli
