// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <stdexcept>

#include "benchmarks/harness/measure.h"
#include "benchmarks/pool/figures.h"
#include "benchmarks/pool/tasks.h"

namespace bench {
namespace {

void first_result(drover::Pool& pool) {
  if (pool.submit<as_double>(7).get() != 7) throw std::runtime_error("a wrong answer");
}

double start_ms() {
  std::optional<drover::Pool> pool;
  return kNsInMs * time_ns([&] {
           pool.emplace(drover::PoolOptions{.workers = 2});
           first_result(*pool);
         });
}

double stop_ms() {
  std::optional<drover::Pool> pool(std::in_place, drover::PoolOptions{.workers = 2});
  first_result(*pool);
  return kNsInMs * time_ns([&] { pool.reset(); });
}

/// Start, first result, all workers ready, and stop: what is spawned bare has also ended.
double whole_life_ms(int workers) {
  return kNsInMs * time_ns([&] {
           drover::Pool pool({.workers = workers});
           first_result(pool);
           if (worker_pids(pool).size() != static_cast<std::size_t>(workers))
             throw std::runtime_error("too few workers");
         });
}

}  // namespace

void start_first_result(Bench& bench) {
  constexpr int kMany = 100;
  bench.add(
      {.name = "start_first_result",
       .unit = "ms",
       .drover = start_ms,
       .peers = {{"vfork + exec + wait", bench.floor("spawn_and_wait 1 /bin/true", kNsInMs), ratio_at_most(10)}}});
  const std::string bare = "spawn_and_wait " + std::to_string(kMany) + " " + own_program() + " " + kExitAtOnce;
  bench.add({.name = "start_first_result",
             .unit = "ms, 100 workers ready, and stop",
             .drover = [] { return whole_life_ms(kMany); },
             .peers = {{"100 x bare spawn + exit", bench.floor(bare, kNsInMs), ratio_at_most(2)}},
             .rounds = 5});
}

void stop(Bench& bench) { bench.add({.name = "stop", .unit = "ms", .drover = stop_ms, .goal = value_at_most(5)}); }

}  // namespace bench
