// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

#include "benchmarks/harness/measure.h"
#include "benchmarks/pool/figures.h"
#include "benchmarks/pool/tasks.h"

namespace bench {
namespace {

/// A pool that has worked and now rests.
void work_then_rest(drover::Pool& pool) {
  double sum = 0;
  for (double value : pool.map<as_double>(drover::range(0, 100'000), {.ordered = false})) sum += value;
  keep(sum);
  pause_for_us(100'000);
}

/// Caller and workers together, over one second.
double cpu_us_in_a_second(drover::Pool& pool) {
  std::vector<pid_t> everybody = worker_pids(pool);
  everybody.push_back(getpid());
  work_then_rest(pool);
  const std::int64_t before = cpu_ns(everybody);
  pause_for_us(1'000'000);
  return static_cast<double>(cpu_ns(everybody) - before) * kNsInUs;
}

double largest_worker_mb(drover::Pool& pool) {
  work_then_rest(pool);
  double largest = 0;
  for (pid_t pid : worker_pids(pool)) largest = std::max(largest, pss_kib(pid) / 1024);
  return largest;
}

double resident_mb() { return rss_kib(getpid()) / 1024; }

/// How much the caller grows between the first tenth of the results and the last one.
double growth_mb(drover::Pool& pool, int count) {
  double first = 0;
  double sum = 0;
  int seen = 0;
  for (double value : pool.map<as_double>(drover::range(0, count), {.ordered = false})) {
    sum += value;
    if (++seen == count / 10) first = resident_mb();
  }
  const double last = resident_mb();
  if (sum != 0.5 * count * (count - 1.0)) throw std::runtime_error("a result is missing");
  return last - first;
}

}  // namespace

void idle_cpu(Bench& bench) {
  drover::Pool pool({.workers = 2});
  bench.add({.name = "idle_cpu",
             .unit = "us of CPU in 1 s",
             .drover = [&] { return cpu_us_in_a_second(pool); },
             .goal = value_at_most(200),
             .rounds = 1});
}

void idle_pss(Bench& bench) {
  drover::Pool pool({.workers = 2});
  bench.add({.name = "idle_pss",
             .unit = "MiB a worker",
             .drover = [&] { return largest_worker_mb(pool); },
             .goal = value_at_most(1.5),
             .rounds = 5});
}

void stream_memory(Bench& bench) {
  const int count = bench.longer() ? 100'000'000 : 10'000'000;
  drover::Pool pool({.workers = 2});
  bench.add({.name = "stream_memory",
             .unit = bench.longer() ? "MiB more, 1e8 results" : "MiB more, 1e7 results",
             .drover = [&] { return growth_mb(pool, count); },
             .goal = value_at_most(1),
             .rounds = 1});
}

}  // namespace bench
