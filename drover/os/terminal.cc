// SPDX-License-Identifier: Apache-2.0
#include "drover/os/terminal.h"

#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "drover/os/file_system.h"

namespace drover::inline v1::os {
namespace {

constexpr std::size_t kDefaultWidth = 80;
constexpr std::size_t kMaxWidth = 10'000;

struct Character {
  std::size_t length = 0;  // 0: not valid UTF-8
  std::uint32_t code = 0;
};

std::uint32_t byte_at(std::string_view text, std::size_t i) { return static_cast<unsigned char>(text[i]); }

/// Length of the sequence that a lead byte announces, with the smallest code that needs it (RFC 3629).
struct Lead {
  std::size_t length;
  std::uint32_t bits;
  std::uint32_t smallest;
};

Lead lead_of(std::uint32_t byte) {
  if (byte < 0x80) return {1, byte, 0};
  if ((byte & 0xE0U) == 0xC0) return {2, byte & 0x1FU, 0x80};
  if ((byte & 0xF0U) == 0xE0) return {3, byte & 0x0FU, 0x800};
  if ((byte & 0xF8U) == 0xF0) return {4, byte & 0x07U, 0x10000};
  return {0, 0, 0};
}

Character first_character(std::string_view text) {
  const Lead lead = lead_of(byte_at(text, 0));
  if (lead.length == 0 || lead.length > text.size()) return {};
  std::uint32_t code = lead.bits;
  for (std::size_t i = 1; i < lead.length; ++i) {
    if ((byte_at(text, i) & 0xC0U) != 0x80) return {};
    code = code << 6U | (byte_at(text, i) & 0x3FU);
  }
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < lead.smallest || code > 0x10FFFF || surrogate) return {};
  return {lead.length, code};
}

bool is_harmless(std::uint32_t code) {
  if (code == '\t') return true;
  if (code < 0x20 || (code >= 0x7F && code <= 0x9F)) return false;  // terminals obey C1 codes in UTF-8 too
  return !(code >= 0x2028 && code <= 0x202E) && !(code >= 0x2066 && code <= 0x2069);
}

void append_escaped(std::string& out, std::uint32_t byte) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  out += "\\x";
  out += kDigits[byte >> 4U];
  out += kDigits[byte & 0xFU];
}

}  // namespace

bool is_terminal(int fd) noexcept { return ::isatty(fd) == 1; }

std::size_t terminal_width(int fd) noexcept {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char* const columns = std::getenv("COLUMNS");
  const auto width = parse_number(columns == nullptr ? "" : columns);
  return width && *width >= 1 && *width <= kMaxWidth ? static_cast<std::size_t>(*width) : kDefaultWidth;
}

bool colour_allowed(int fd) noexcept {
  return colour_allowed(is_terminal(fd), std::getenv("TERM"), std::getenv("NO_COLOR"));
}

bool colour_allowed(bool terminal, const char* term, const char* no_color) noexcept {
  if (!terminal || term == nullptr) return false;
  if (no_color != nullptr && *no_color != '\0') return false;
  const std::string_view name = term;
  return !name.empty() && name != "dumb";
}

std::string sanitize(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character character = first_character(text);
    const std::size_t length = character.length == 0 ? 1 : character.length;
    if (character.length > 0 && is_harmless(character.code)) {
      out += text.substr(0, length);
    } else {
      for (std::size_t i = 0; i < length; ++i) append_escaped(out, byte_at(text, i));
    }
    text.remove_prefix(length);
  }
  return out;
}

bool waits_for_standard_input(const std::string& syscall_text) noexcept {
  long call = -1;
  unsigned long first = 0;  // a descriptor, or one more than the highest
  if (std::sscanf(syscall_text.c_str(), "%ld %lx", &call, &first) != 2) return false;
  if (call == SYS_read) return first == 0;
#ifdef SYS_select
  if (call == SYS_select) return first == 1;
#endif
  return call == SYS_pselect6 && first == 1;
}

}  // namespace drover::inline v1::os
