// SPDX-License-Identifier: Apache-2.0
#include "drover/os/thread_id.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <optional>
#include <string_view>

namespace drover::inline v1::os {

constinit thread_local ThreadId detail::this_thread = 0;

namespace {

constinit std::atomic<ThreadId> this_process{0};

/// What /proc/N/stat says of a thread.
struct Stat {
  int number = 0;
  char state = '?';
  std::uint64_t threads = 0;  ///< of its process
  std::uint64_t start = 0;    ///< clock ticks since boot
};

// No allocation: this runs while locks are held, and in the middle of whatever the user's program does. The name of a
// program, the one part of unknown text, has at most 64 bytes.
std::optional<Stat> parse_stat(std::string_view text) noexcept {
  Stat stat;
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

std::optional<Stat> read_stat(const char* path) noexcept {
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::array<char, 1024> text;
  ssize_t size = 0;
  do {
    size = ::read(fd, text.data(), text.size());
  } while (size < 0 && errno == EINTR);
  ::close(fd);
  if (size <= 0) return std::nullopt;
  return parse_stat({text.data(), static_cast<std::size_t>(size)});
}

std::optional<Stat> read_stat(int number) noexcept {
  std::array<char, 32> path;
  std::snprintf(path.data(), path.size(), "/proc/%d/stat", number);
  return read_stat(path.data());
}

/// 16 well-mixed bits, never 0 (the finaliser of MurmurHash3, public domain).
std::uint64_t mix16(std::uint64_t value) noexcept {
  value ^= value >> 33U;
  value *= 0xFF51'AFD7'ED55'8CCDU;
  value ^= value >> 33U;
  value *= 0xC4CE'B9FE'1A85'EC53U;
  value ^= value >> 33U;
  const std::uint64_t bits = value & 0xFFFFU;
  return bits != 0 ? bits : 1;
}

/// The namespaces in which thread numbers and start times mean what they mean here. 0: not known.
std::uint64_t namespaces() noexcept {
  struct stat pid_namespace {};
  struct stat time_namespace {};
  if (::stat("/proc/self/ns/pid", &pid_namespace) != 0) return 0;
  if (::stat("/proc/self/ns/time", &time_namespace) != 0) time_namespace.st_ino = 0;  // before Linux 5.6
  return mix16(pid_namespace.st_ino * 0x9E37'79B9'7F4A'7C15U + time_namespace.st_ino);
}

/// A /proc of another PID namespace has other numbers, and would say wrong things about our neighbours.
ThreadId make_id(int number, const std::optional<Stat>& stat) noexcept {
  const ThreadId known = (static_cast<ThreadId>(number) & kThreadNumberMask) | namespaces() << 48U;
  if (!stat) return known;  // no descriptor is free, for example: the start time is not known, see judge
  if (stat->number != number) return static_cast<ThreadId>(number) & kThreadNumberMask;
  return known | mix16(stat->start) << 32U;
}

void forget_after_fork() noexcept {
  detail::this_thread = 0;
  this_process.store(0, std::memory_order_relaxed);
}

void register_fork_handler() noexcept {
  [[maybe_unused]] static const int registered = ::pthread_atfork(nullptr, nullptr, forget_after_fork);
}

Liveness judge(ThreadId id, bool whole_process) noexcept {
  const int number = thread_number(id);
  if (number == 0) return Liveness::kDead;
  const std::uint32_t ours = namespace_mark(current_thread_id());
  if (ours == 0 || namespace_mark(id) != ours) return Liveness::kUnknown;
  // Under hidepid the processes of others are not in /proc, but still there for kill().
  if (::kill(number, 0) != 0 && errno == ESRCH) return Liveness::kDead;
  const auto stat = read_stat(number);
  if (!stat) return ::kill(number, 0) != 0 && errno == ESRCH ? Liveness::kDead : Liveness::kUnknown;
  if (stat->number != number) return Liveness::kUnknown;
  const std::uint64_t start = id >> 32U & 0xFFFFU;
  if (start != 0 && mix16(stat->start) != start) return Liveness::kDead;
  const bool ended = stat->state == 'Z' || stat->state == 'X' || stat->state == 'x';
  return ended && !(whole_process && stat->threads > 1) ? Liveness::kDead : Liveness::kAlive;
}

}  // namespace

ThreadId detail::find_this_thread() noexcept {
  register_fork_handler();
  const int number = static_cast<int>(::syscall(SYS_gettid));
  this_thread = make_id(number, read_stat("/proc/thread-self/stat"));
  return this_thread;
}

ThreadId current_process_id() noexcept {
  ThreadId id = this_process.load(std::memory_order_relaxed);
  if (id == 0) {
    register_fork_handler();
    id = make_id(::getpid(), read_stat("/proc/self/stat"));
    this_process.store(id, std::memory_order_relaxed);
  }
  return id;
}

Liveness liveness(ThreadId id) noexcept { return judge(id, false); }

Liveness process_liveness(ThreadId id) noexcept { return judge(id, true); }

}  // namespace drover::inline v1::os
