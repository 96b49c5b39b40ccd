// SPDX-License-Identifier: Apache-2.0
#include "drover/os/thread_id.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <optional>

#include "drover/os/process_stat.h"

namespace drover::inline v1::os {

constinit thread_local ThreadId detail::this_thread = 0;

namespace {

constinit std::atomic<ThreadId> this_process{0};

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
std::uint64_t namespace_bits() noexcept {
  const Namespaces own = own_namespaces();
  return own.pid == 0 ? 0 : mix16(own.pid * 0x9E37'79B9'7F4A'7C15U + own.time);
}

/// A /proc of another PID namespace has other numbers, and would say wrong things about our neighbours.
ThreadId make_id(int number, const std::optional<ProcessStat>& stat) noexcept {
  const ThreadId known = (static_cast<ThreadId>(number) & kThreadNumberMask) | namespace_bits() << 48U;
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
  const Sighting seen = look_at_number(number, whole_process);
  const std::uint64_t start = id >> 32U & 0xFFFFU;
  const bool another = seen.state == Liveness::kAlive && start != 0 && mix16(seen.start) != start;
  return another ? Liveness::kDead : seen.state;
}

}  // namespace

ThreadId detail::find_this_thread() noexcept {
  register_fork_handler();
  const int number = static_cast<int>(::syscall(SYS_gettid));
  this_thread = make_id(number, read_process_stat("/proc/thread-self/stat"));
  return this_thread;
}

ThreadId current_process_id() noexcept {
  ThreadId id = this_process.load(std::memory_order_relaxed);
  if (id == 0) {
    register_fork_handler();
    id = make_id(::getpid(), read_process_stat("/proc/self/stat"));
    this_process.store(id, std::memory_order_relaxed);
  }
  return id;
}

Liveness liveness(ThreadId id) noexcept { return judge(id, false); }

Liveness process_liveness(ThreadId id) noexcept { return judge(id, true); }

}  // namespace drover::inline v1::os
