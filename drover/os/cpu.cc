// SPDX-License-Identifier: Apache-2.0
#include "drover/os/cpu.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <system_error>

#include "drover/os/cgroup.h"
#include "drover/os/file_system.h"

namespace drover::inline v1::os {
namespace {

constexpr std::size_t kMaxCpus = 65'536;  // beyond any Linux (NR_CPUS is at most 8,192); bounds what a list may ask for

std::vector<std::size_t> numbers_of(const cpu_set_t& set, std::size_t bytes) {
  std::vector<std::size_t> cpus;
  for (std::size_t cpu = 0; cpu < bytes * 8; ++cpu) {
    if (CPU_ISSET_S(cpu, bytes, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

struct FreeCpuSet {
  void operator()(cpu_set_t* set) const { CPU_FREE(set); }
};

std::optional<std::size_t> tightest_quota(const std::string& root) {
  std::optional<std::size_t> tightest;
  for (const CpuQuota& quota : cgroup_cpu_quotas(root))
    tightest = std::min(tightest.value_or(quota.cpus()), quota.cpus());
  return tightest;
}

std::optional<std::size_t> slurm_limit(const char* text) {
  if (text == nullptr) return std::nullopt;
  const auto number = parse_number(text);
  if (!number || *number == 0 || *number > kMaxCpus) return std::nullopt;
  return static_cast<std::size_t>(*number);
}

/// `first-last` or `first`.
std::optional<std::pair<std::size_t, std::size_t>> parse_cpu_range(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto first = parse_number(text.substr(0, dash));
  const auto last = dash == text.npos ? first : parse_number(text.substr(dash + 1));
  if (!first || !last || *first > *last || *last >= kMaxCpus) return std::nullopt;
  return std::pair(static_cast<std::size_t>(*first), static_cast<std::size_t>(*last));
}

}  // namespace

std::size_t usable_cpus(const CpuLimits& limits) noexcept {
  std::size_t cpus = limits.affinity;
  if (limits.quota) cpus = std::min(cpus, *limits.quota);
  if (limits.slurm_cpus_per_task) cpus = std::min(cpus, *limits.slurm_cpus_per_task);
  return std::max<std::size_t>(cpus, 1);
}

CpuLimits read_cpu_limits(const std::string& root, const EnvironmentLookup& environment) {
  static constexpr const char* kSlurm = "SLURM_CPUS_PER_TASK";
  CpuLimits limits;
  limits.affinity = allowed_cpus().size();
  limits.quota = tightest_quota(root);
  limits.slurm_cpus_per_task = slurm_limit(environment ? environment(kSlurm) : std::getenv(kSlurm));
  return limits;
}

std::size_t usable_cpus() { return usable_cpus(read_cpu_limits()); }

std::vector<std::size_t> allowed_cpus() {
  // A kernel built for more CPUs than the mask has bits answers EINVAL, whatever the machine really has.
  for (std::size_t cpus = CPU_SETSIZE; cpus <= kMaxCpus; cpus *= 2) {
    const std::unique_ptr<cpu_set_t, FreeCpuSet> set(CPU_ALLOC(cpus));
    if (!set) break;
    const std::size_t bytes = CPU_ALLOC_SIZE(cpus);
    CPU_ZERO_S(bytes, set.get());
    if (::sched_getaffinity(0, bytes, set.get()) == 0) return numbers_of(*set, bytes);
    if (errno != EINVAL) break;
  }
  throw std::system_error(errno, std::generic_category(), "sched_getaffinity");
}

std::optional<std::vector<std::size_t>> parse_cpu_list(std::string_view text) {
  std::vector<bool> named;
  text = take_line(text);
  while (!text.empty()) {
    const auto range = parse_cpu_range(text.substr(0, text.find(',')));
    if (!range) return std::nullopt;
    text.remove_prefix(std::min(text.find(','), text.size() - 1) + 1);
    named.resize(std::max(named.size(), range->second + 1));
    std::fill_n(named.begin() + static_cast<std::ptrdiff_t>(range->first), range->second - range->first + 1, true);
  }
  std::vector<std::size_t> cpus;
  for (std::size_t cpu = 0; cpu < named.size(); ++cpu) {
    if (named[cpu]) cpus.push_back(cpu);
  }
  return cpus;
}

}  // namespace drover::inline v1::os
