// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

#include "benchmarks/harness/measure.h"
#include "benchmarks/pool/figures.h"
#include "benchmarks/pool/tasks.h"

namespace bench {
namespace {

constexpr int kResults = 500'000;
constexpr int kTaskUs = 1'000;

double stream(drover::Pool& pool, int count) {
  double sum = 0;
  for (double value : pool.map<as_double>(drover::range(0, count), {.ordered = false, .chunk = 1})) sum += value;
  return sum;
}

double time_stream(drover::Pool& pool) {
  double sum = 0;
  stream(pool, kResults / 10);
  const double elapsed = time_ns([&] { sum = stream(pool, kResults); });
  if (sum != 0.5 * kResults * (kResults - 1.0)) throw std::runtime_error("a result is missing");
  return elapsed / kResults;
}

/// One worker and the caller, each on its CPU like the two ends of the ring.
void one_worker(Bench& bench) {
  drover::Pool pool({.workers = 1});
  pool.submit<as_double>(0).get();
  pin(worker_pids(pool).at(0), 1);
  const Pinned caller(0);
  bench.add(
      {.name = "map_chunk1_streamed",
       .unit = "ns/result",
       .drover = [&] { return time_stream(pool); },
       .peers = {{"ring of 64 B, publish each", bench.floor("ring " + std::to_string(kResults)), ratio_at_most(1.5)},
                 {"claim of a task and ring back", bench.floor("exchange " + std::to_string(kResults)), shown()}}});
}

/// Three parties on two cores cannot spin: shown, no goal.
void two_workers(Bench& bench) {
  drover::Pool pool({.workers = 2});
  bench.add({.name = "map_chunk1_streamed",
             .unit = "ns/result",
             .drover = [&] { return time_stream(pool); },
             .peers = {{"same ring (2 workers, shown)", bench.floor("ring " + std::to_string(kResults)), shown()}},
             .rounds = 5});
}

/// Stops the clock at the first result, not when the rest of the map is cancelled.
double first_result_us(drover::Pool& pool) {
  const std::vector<int> tasks(1'000, kTaskUs);
  const std::int64_t begin = now_ns();
  auto results = pool.map<busy_for_us>(tasks, {.ordered = false, .chunk = 1});
  keep(*results.begin());
  return kNsInUs * static_cast<double>(now_ns() - begin);
}

double task_and_round_trip_us(drover::Pool& pool) {
  return kNsInUs * time_ns([&] { pool.submit<busy_for_us>(kTaskUs).get(); });
}

void first_result(Bench& bench) {
  drover::Pool pool({.workers = 2});
  bench.add(
      {.name = "map_chunk1_streamed",
       .unit = "us to first result",
       .drover = [&] { return first_result_us(pool); },
       .peers = {{"one 1 ms task + round trip", [&] { return task_and_round_trip_us(pool); }, ratio_at_most(1)}}});
}

}  // namespace

void map_chunk1_streamed(Bench& bench) {
  one_worker(bench);
  two_workers(bench);
  first_result(bench);
}

}  // namespace bench
