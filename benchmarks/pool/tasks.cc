// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/pool/tasks.h"

#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "benchmarks/harness/measure.h"
#include "benchmarks/harness/slots.h"
#include "drover/cli/montecarlo.h"

namespace bench {
namespace {

void verify_slots(int count) {
  for (int i = 0; i < count; ++i) {
    if (slots()[i] != i) throw std::runtime_error("task " + std::to_string(i) + " did not run");
  }
}

}  // namespace

void store_in_place(int i) { slots()[i] = i; }

double as_double(int i) { return i; }

double sum_of(std::array<double, 8> values) {
  double sum = 0;
  for (double value : values) sum += value;
  return sum;
}

int busy_for_us(int microseconds) {
  for (const std::int64_t end = now_ns() + std::int64_t{1000} * microseconds; now_ns() < end;) {
  }
  return microseconds;
}

double montecarlo(int seed) { return drover::cli::sum_by_terms(seed, kMontecarloIterations); }

void busy_until_killed(int slot) {
  flag(static_cast<std::size_t>(slot)).store(getpid());
  for (int spins = 0;; ++spins) keep(spins);
}

void busy_with_nested(int slot) {
  drover::Pool pool({.workers = 1});
  auto nested = pool.submit<busy_until_killed>(slot + 1);
  await_flag(static_cast<std::size_t>(slot) + 1);
  busy_until_killed(slot);
}

std::vector<pid_t> worker_pids(drover::Pool& pool) {
  for (const std::int64_t begin = now_ns(); now_ns() - begin < 10'000'000'000; pause_for_us(200)) {
    std::vector<pid_t> pids;
    bool ready = true;
    for (const auto& worker : pool.stats().workers) {
      pids.push_back(worker.pid);
      ready = ready && worker.ready;
    }
    if (ready) return pids;
  }
  throw std::runtime_error("the workers were not ready within 10 s");
}

void store_all(drover::Pool& pool, int count, drover::MapOptions options) {
  for (auto&& done : pool.map<store_in_place>(drover::range(0, count), options)) keep(done);
}

double time_store_all(drover::Pool& pool, int count, drover::MapOptions options) {
  std::fill_n(slots(), count, -1);
  store_all(pool, count / 10, options);
  const double elapsed = time_ns([&] { store_all(pool, count, options); });
  verify_slots(count);
  return elapsed / count;
}

}  // namespace bench
