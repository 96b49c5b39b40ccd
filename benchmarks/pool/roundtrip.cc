// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

#include "benchmarks/harness/measure.h"
#include "benchmarks/pool/figures.h"
#include "benchmarks/pool/tasks.h"

namespace bench {
namespace {

void round_trip(drover::Pool& pool, int i) {
  if (pool.submit<as_double>(i).get() != i) throw std::runtime_error("a wrong answer");
}

double mean_us(drover::Pool& pool, int count) {
  for (int i = 0; i < count / 10; ++i) round_trip(pool, i);
  return kNsInUs / count * time_ns([&] {
           for (int i = 0; i < count; ++i) round_trip(pool, i);
         });
}

/// The median round trip when both sides have gone to sleep before each: a pause longer than any spinning.
double parked_us(drover::Pool& pool, int count) {
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    pause_for_us(200);
    times.push_back(kNsInUs * time_ns([&] { round_trip(pool, i); }));
  }
  return median(times);
}

}  // namespace

void roundtrip_hot(Bench& bench) {
  constexpr int kCalls = 20'000;
  drover::Pool pool({.workers = 1});
  round_trip(pool, 0);
  pin(worker_pids(pool).at(0), 1);
  const Pinned caller(0);
  bench.add({.name = "roundtrip_hot",
             .unit = "us",
             .drover = [&] { return mean_us(pool, kCalls); },
             .peers = {{"spinning word, 2 CPUs", bench.floor("spin_two_cpus " + std::to_string(kCalls), kNsInUs),
                        ratio_at_most(3)}}});
}

void roundtrip_parked(Bench& bench) {
  constexpr int kCalls = 150;
  drover::Pool pool({.workers = 1});
  round_trip(pool, 0);
  pin(worker_pids(pool).at(0), 1);
  const Pinned caller(0);
  bench.add({.name = "roundtrip_parked",
             .unit = "us",
             .drover = [&] { return parked_us(pool, kCalls); },
             .peers = {{"futex ping-pong, 2 CPUs", bench.floor("futex_parked " + std::to_string(kCalls), kNsInUs),
                        ratio_at_most(1.2)}}});
}

void roundtrip_one_cpu(Bench& bench) {
  constexpr int kCalls = 5'000;
  const Pinned everybody(0);  // before the pool is made: it must see that it has one CPU
  drover::Pool pool({.workers = 1});
  const std::string count = std::to_string(kCalls);
  bench.add({.name = "roundtrip_one_cpu",
             .unit = "us",
             .drover = [&] { return mean_us(pool, kCalls); },
             .peers = {{"futex ping-pong, 1 CPU", bench.floor("futex_one_cpu " + count, kNsInUs), ratio_at_most(2)},
                       {"sched_yield, 1 CPU (shown)", bench.floor("yield_one_cpu " + count, kNsInUs), shown()}}});
}

}  // namespace bench
