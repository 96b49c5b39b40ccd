// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <vector>

/// What the benchmarks measure with: clocks, CPU time and memory of processes, and placement. Thread-safe; failures
/// throw std::system_error unless said otherwise.
namespace bench {

/// CLOCK_MONOTONIC, in nanoseconds.
std::int64_t now_ns();

/// Nanoseconds of wall time that `work` took.
double time_ns(const std::function<void()>& work);

/// CPU time that a process has used so far (user and system, all its threads), in nanoseconds. The kernel's process
/// clock: the same account as rusage, but of any process, while it runs.
std::int64_t cpu_ns(pid_t pid);
std::int64_t cpu_ns(const std::vector<pid_t>& pids);

/// Proportional and resident set size in KiB, from smaps_rollup (exact, unlike statm).
double pss_kib(pid_t pid);
double rss_kib(pid_t pid);

/// The CPUs that this process was allowed when it asked first.
const std::vector<int>& allowed_cpus();

/// Restricts a thread (0: the calling one) to one CPU, the `index`th of the allowed ones (the last, if there are
/// fewer).
void pin(pid_t thread, std::size_t index);

/// Restricts the calling thread to one CPU and gives it its old ones back at the end. One thread at a time.
class Pinned {
 public:
  explicit Pinned(std::size_t index);
  ~Pinned();
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

 private:
  cpu_set_t before_;
};

/// Sleeps, so that what a measurement before has left spinning parks.
void pause_for_us(std::int64_t microseconds);

/// The middle value; sorts a copy. NaN when empty.
double median(std::vector<double> values);

/// Makes the compiler believe that `value` is read.
template <class T>
inline void keep(const T& value) {
  asm volatile("" : : "r,m"(value) : "memory");
}

/// Tells the core that this is a spin loop.
inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace bench
