// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/pool/figures.h"
#include "benchmarks/pool/tasks.h"

namespace bench {

void map_chunk1(Bench& bench) {
  constexpr int kTasks = 1'000'000;
  drover::Pool pool({.workers = 2});
  const std::string count = std::to_string(kTasks);
  bench.add({.name = "map_chunk1",
             .unit = "ns/task",
             .drover = [&] { return time_store_all(pool, kTasks, {.ordered = false, .chunk = 1}); },
             .peers = {{"shared counter, 2 processes", bench.floor("counter " + count), ratio_at_most(1.5)},
                       {"oneTBB parallel_for grain 1", bench.tbb("map_grain1 " + count), ratio_at_most(2)}}});
}

}  // namespace bench
