// SPDX-License-Identifier: Apache-2.0
#include "drover/os/file_system.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <system_error>

#include "drover/os/fd.h"

namespace drover::inline v1::os {
namespace {

[[noreturn]] void fail(int error, const char* call, const std::string& path) {
  throw std::system_error(error, std::generic_category(), std::string(call) + " " + path);
}

bool means_nothing_to_read(int error) {
  // ESRCH and ENODEV: the process or the cgroup went away between open and read. EOPNOTSUPP and EINVAL: the kernel
  // knows the file but not for this cgroup.
  static constexpr std::array kExpected = {ENOENT, ENOTDIR,    ESRCH,  ENODEV, EACCES,      EPERM,
                                           EISDIR, EOPNOTSUPP, EINVAL, ELOOP,  ENAMETOOLONG};
  return std::find(kExpected.begin(), kExpected.end(), error) != kExpected.end();
}

int open_for_reading(const std::string& path) {
  int fd = -1;
  do fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  while (fd < 0 && errno == EINTR);
  return fd;
}

ssize_t read_once(const Fd& file, char* data, std::size_t size) {
  ssize_t count = 0;
  do count = ::read(file.get(), data, size);
  while (count < 0 && errno == EINTR);
  return count;
}

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace

std::optional<std::string> read_small_file(const std::string& path, std::size_t max_bytes) {
  static constexpr std::size_t kStep = 4096;
  const Fd file(open_for_reading(path));
  if (!file.valid()) {
    if (means_nothing_to_read(errno)) return std::nullopt;
    fail(errno, "open", path);
  }
  std::string text;
  while (text.size() < max_bytes) {
    const std::size_t old_size = text.size();
    text.resize(std::min(max_bytes, old_size + std::max(kStep, old_size)));
    const ssize_t count = read_once(file, text.data() + old_size, text.size() - old_size);
    if (count < 0) {
      if (means_nothing_to_read(errno)) return std::nullopt;
      fail(errno, "read", path);
    }
    text.resize(old_size + static_cast<std::size_t>(count));
    if (count == 0) break;
  }
  return text;
}

std::uint64_t free_space(const std::string& path) {
  struct statvfs info {};
  int result = 0;
  do result = ::statvfs(path.c_str(), &info);
  while (result < 0 && errno == EINTR);
  if (result < 0) fail(errno, "statvfs", path);
  return std::uint64_t{info.f_bavail} * info.f_frsize;
}

std::optional<std::uint64_t> parse_number(std::string_view text) noexcept {
  text = trim(text);
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> keyed_number(std::string_view text, std::string_view key) noexcept {
  while (!text.empty()) {
    std::string_view line = take_line(text);
    if (line.substr(0, key.size()) != key) continue;
    line.remove_prefix(key.size());
    if (line.empty() || !is_blank(line.front())) continue;
    line = trim(line);
    return parse_number(line.substr(0, line.find_first_of(" \t")));
  }
  return std::nullopt;
}

std::string_view take_line(std::string_view& text) noexcept {
  const std::size_t length = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, length);
  text.remove_prefix(std::min(length + 1, text.size()));
  return line;
}

std::string_view take_word(std::string_view& text, char separator) noexcept {
  text.remove_prefix(std::min(text.find_first_not_of(separator), text.size()));
  const std::size_t length = std::min(text.find(separator), text.size());
  const std::string_view word = text.substr(0, length);
  text.remove_prefix(length);
  return word;
}

}  // namespace drover::inline v1::os
