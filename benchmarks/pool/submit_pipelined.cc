// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

#include "benchmarks/harness/measure.h"
#include "benchmarks/pool/figures.h"
#include "benchmarks/pool/tasks.h"

namespace bench {
namespace {

constexpr int kBatch = 10'000;
constexpr int kTasks = 100'000;

/// One batch: all submitted, then all futures read in that order and dropped. The sum of the results.
double run_batch(drover::Pool& pool, std::vector<drover::Future<double>>& futures) {
  for (int i = 0; i < kBatch; ++i) {
    futures.push_back(pool.submit<sum_of>(std::array<double, 8>{static_cast<double>(i), 1, 2, 3, 4, 5, 6, 7}));
  }
  double sum = 0;
  for (auto& future : futures) sum += future.get();
  futures.clear();
  return sum;
}

double time_submit(drover::Pool& pool) {
  std::vector<drover::Future<double>> futures;
  futures.reserve(kBatch);
  run_batch(pool, futures);
  double sum = 0;
  const double elapsed = time_ns([&] {
    for (int done = 0; done < kTasks; done += kBatch) sum += run_batch(pool, futures);
  });
  constexpr double kBatchSum = 0.5 * kBatch * (kBatch - 1.0) + 28.0 * kBatch;
  if (sum != kBatchSum * (kTasks / kBatch)) throw std::runtime_error("a result is missing");
  return elapsed / kTasks;
}

}  // namespace

void submit_pipelined(Bench& bench) {
  drover::Pool pool({.workers = 2});
  const std::string request = "submit " + std::to_string(kTasks) + " " + std::to_string(kBatch);
  bench.add({.name = "submit_pipelined",
             .unit = "ns/task",
             .drover = [&] { return time_submit(pool); },
             .peers = {{"oneTBB task_group.run", bench.tbb(request), ratio_at_most(1)}}});
}

}  // namespace bench
