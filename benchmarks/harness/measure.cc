// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/harness/measure.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <limits>
#include <string>
#include <system_error>

namespace bench {
namespace {

[[noreturn]] void fail(int error, const char* call) { throw std::system_error(error, std::generic_category(), call); }

std::int64_t read_clock(clockid_t clock) {
  timespec time{};
  if (clock_gettime(clock, &time) != 0) fail(errno, "clock_gettime");
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

double smaps_kib(pid_t pid, const std::string& key) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/smaps_rollup");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(key, 0) == 0) return std::stod(line.substr(key.size()));
  }
  fail(ENOENT, "smaps_rollup");
}

cpu_set_t current_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) fail(errno, "sched_getaffinity");
  return set;
}

}  // namespace

std::int64_t now_ns() { return read_clock(CLOCK_MONOTONIC); }

double time_ns(const std::function<void()>& work) {
  const std::int64_t begin = now_ns();
  work();
  return static_cast<double>(now_ns() - begin);
}

std::int64_t cpu_ns(pid_t pid) {
  clockid_t clock{};
  if (int error = clock_getcpuclockid(pid, &clock); error != 0) fail(error, "clock_getcpuclockid");
  return read_clock(clock);
}

std::int64_t cpu_ns(const std::vector<pid_t>& pids) {
  std::int64_t sum = 0;
  for (pid_t pid : pids) sum += cpu_ns(pid);
  return sum;
}

double pss_kib(pid_t pid) { return smaps_kib(pid, "Pss:"); }
double rss_kib(pid_t pid) { return smaps_kib(pid, "Rss:"); }

const std::vector<int>& allowed_cpus() {
  static const std::vector<int> cpus = [] {
    const cpu_set_t set = current_cpus();
    std::vector<int> list;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &set)) list.push_back(cpu);
    }
    return list;
  }();
  return cpus;
}

void pin(pid_t thread, std::size_t index) {
  const std::vector<int>& cpus = allowed_cpus();
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpus[std::min(index, cpus.size() - 1)], &set);
  if (sched_setaffinity(thread, sizeof set, &set) != 0) fail(errno, "sched_setaffinity");
}

Pinned::Pinned(std::size_t index) : before_(current_cpus()) { pin(0, index); }

Pinned::~Pinned() { sched_setaffinity(0, sizeof before_, &before_); }

void pause_for_us(std::int64_t microseconds) {
  timespec rest{microseconds / 1'000'000, microseconds % 1'000'000 * 1000};
  while (clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, &rest) == EINTR) {
  }
}

double median(std::vector<double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace bench
