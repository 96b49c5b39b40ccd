// SPDX-License-Identifier: Apache-2.0
#include "drover/os/process_id.h"

#include <unistd.h>

#include <mutex>

#include "drover/os/fd.h"
#include "drover/os/process_stat.h"

namespace drover::inline v1::os {

std::optional<std::uint64_t> process_start_time(int pid) noexcept {
  const Sighting seen = look_at_number(pid, true);
  return seen.state == Liveness::kAlive ? std::optional(seen.start) : std::nullopt;
}

ProcessId ProcessId::current() {
  static std::mutex& mutex = *new std::mutex;
  static ProcessId known;
  const std::scoped_lock lock(mutex);
  if (known.pid == ::getpid()) return known;
  const Namespaces own = own_namespaces();
  if (own.pid == 0) throw_errno("stat /proc/thread-self/ns/pid");
  const auto stat = read_process_stat("/proc/self/stat");
  if (!stat) throw_errno("read /proc/self/stat");
  // A /proc of another PID namespace would say wrong things about our neighbours.
  const std::uint64_t namespaces = stat->number == ::getpid() ? own.pid ^ own.time << 32U : 0;
  return known = {.pid = ::getpid(), .user = ::geteuid(), .start_time = stat->start, .namespaces = namespaces};
}

Liveness liveness(const ProcessId& process) {
  if (process.pid <= 0) return Liveness::kUnknown;
  if (!in_our_namespaces(process)) return Liveness::kUnknown;
  const Sighting seen = look_at_number(process.pid, true);
  const bool another = seen.state == Liveness::kAlive && seen.start != process.start_time;
  return another ? Liveness::kDead : seen.state;
}

bool in_our_namespaces(const ProcessId& process) {
  return process.namespaces != 0 && process.namespaces == ProcessId::current().namespaces;
}

Liveness liveness_of_number(int pid) noexcept { return look_at_number(pid, true).state; }

}  // namespace drover::inline v1::os
