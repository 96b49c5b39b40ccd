// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/pool/figures.h"
#include "benchmarks/pool/tasks.h"

namespace bench {

void map_auto(Bench& bench) {
  constexpr int kTasks = 4'000'000;
  drover::Pool pool({.workers = 2});
  bench.add(
      {.name = "map_auto",
       .unit = "ns/task",
       .drover = [&] { return time_store_all(pool, kTasks, {.ordered = false}); },
       .peers = {{"oneTBB auto partitioner", bench.tbb("map_auto " + std::to_string(kTasks)), value_at_most(5)}}});
}

}  // namespace bench
