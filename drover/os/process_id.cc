// SPDX-License-Identifier: Apache-2.0
#include "drover/os/process_id.h"

#include <sys/stat.h>
#include <unistd.h>

#include <mutex>
#include <string>
#include <string_view>

#include "drover/os/fd.h"
#include "drover/os/file_system.h"

namespace drover::inline v1::os {
namespace {

std::uint64_t own_namespace() {
  struct stat status {};
  if (::stat("/proc/self/ns/pid", &status) < 0) throw_errno("stat /proc/self/ns/pid");
  return status.st_ino;
}

}  // namespace

std::optional<std::uint64_t> process_start_time(int pid) {
  const auto stat = read_small_file("/proc/" + std::to_string(pid) + "/stat");
  if (!stat) return std::nullopt;
  const std::size_t name_end = stat->rfind(')');  // the name before it may hold anything
  if (name_end == std::string::npos) return std::nullopt;
  std::string_view rest = std::string_view(*stat).substr(name_end + 1);
  const std::string_view state = take_word(rest);
  if (state == "Z" || state == "X" || state.empty()) return std::nullopt;
  constexpr int kFieldsBetween = 18;  // proc(5): the state is field 3, starttime field 22
  for (int i = 0; i < kFieldsBetween; ++i) take_word(rest);
  return parse_number(take_word(rest));
}

ProcessId ProcessId::current() {
  static std::mutex& mutex = *new std::mutex;
  static ProcessId known;
  const std::scoped_lock lock(mutex);
  if (known.pid == ::getpid()) return known;
  ProcessId self{.pid = ::getpid(), .user = ::geteuid(), .start_time = 0, .pid_namespace = own_namespace()};
  const auto start = process_start_time(self.pid);
  if (!start) throw_errno("read /proc/self/stat");
  self.start_time = *start;
  return known = self;
}

Liveness liveness(const ProcessId& process) {
  if (process.pid <= 0) return Liveness::kUnknown;
  if (process.pid_namespace != ProcessId::current().pid_namespace) return Liveness::kUnknown;
  return process_start_time(process.pid) == process.start_time ? Liveness::kAlive : Liveness::kDead;
}

}  // namespace drover::inline v1::os
