// SPDX-License-Identifier: Apache-2.0
#include "drover/os/process_stat.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <string_view>

namespace drover::inline v1::os {
namespace {

// The name of a program, the one part of unknown text, has at most 64 bytes.
std::optional<ProcessStat> parse_stat(std::string_view text) noexcept {
  ProcessStat stat;
  if (std::from_chars(text.data(), text.data() + text.size(), stat.number).ec != std::errc()) return std::nullopt;
  const std::size_t name_end = text.rfind(')');  // a name may hold blanks and brackets
  if (name_end == std::string_view::npos || name_end + 2 >= text.size()) return std::nullopt;
  text.remove_prefix(name_end + 2);
  stat.state = text.front();
  // Field 3 is the state; 20 is the number of threads, 22 the start time (proc(5)).
  for (int field = 4; field <= 22; ++field) {
    const std::size_t blank = text.find(' ');
    if (blank == std::string_view::npos) return std::nullopt;
    text.remove_prefix(blank + 1);
    if (field == 20) std::from_chars(text.data(), text.data() + text.size(), stat.threads);
    if (field == 22 && std::from_chars(text.data(), text.data() + text.size(), stat.start).ec != std::errc()) {
      return std::nullopt;
    }
  }
  return stat;
}

std::uint64_t inode_of(const char* path) noexcept {
  struct stat status {};
  return ::stat(path, &status) == 0 ? status.st_ino : 0;
}

/// Under hidepid the processes of others are not in /proc, but still there for kill().
bool is_nobody(int number) noexcept { return ::kill(number, 0) != 0 && errno == ESRCH; }

}  // namespace

std::optional<ProcessStat> read_process_stat(const char* path) noexcept {
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::array<char, 1024> text;
  ssize_t size = 0;
  do {
    size = ::read(fd, text.data(), text.size());
  } while (size < 0 && errno == EINTR);
  const int error = errno;
  ::close(fd);
  errno = error;
  if (size <= 0) return std::nullopt;
  return parse_stat({text.data(), static_cast<std::size_t>(size)});
}

Sighting look_at_number(int number, bool whole_process) noexcept {
  if (is_nobody(number)) return {.state = Liveness::kDead};
  std::array<char, 32> path;
  std::snprintf(path.data(), path.size(), "/proc/%d/stat", number);
  const auto stat = read_process_stat(path.data());
  if (!stat) return {.state = is_nobody(number) ? Liveness::kDead : Liveness::kUnknown};
  if (stat->number != number) return {};  // a /proc of another PID namespace
  const bool ended = stat->state == 'Z' || stat->state == 'X' || stat->state == 'x';
  // The first thread of a process that lives on is such a zombie.
  if (ended && !(whole_process && stat->threads > 1)) return {.state = Liveness::kDead};
  return {.state = Liveness::kAlive, .start = stat->start};
}

Namespaces own_namespaces() noexcept {
  return {.pid = inode_of("/proc/thread-self/ns/pid"), .time = inode_of("/proc/thread-self/ns/time")};
}

}  // namespace drover::inline v1::os
