// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cmath>
#include <stdexcept>

#include "benchmarks/harness/measure.h"
#include "benchmarks/pool/figures.h"
#include "benchmarks/pool/tasks.h"

namespace bench {
namespace {

constexpr int kSamples = 200;
constexpr int kWorkers = 2;

/// One sweep, by Drover or by the threads: nanoseconds of CPU and of wall time a sample, and the sum of all samples.
struct Sweep {
  double cpu, wall, sum;
};

Sweep sweep_by_drover(drover::Pool& pool) {
  std::vector<pid_t> everybody = worker_pids(pool);
  everybody.push_back(getpid());
  double sum = 0;
  const std::int64_t cpu = cpu_ns(everybody);
  const double wall = time_ns([&] {
    for (double value : pool.map<montecarlo>(drover::range(0, kSamples), {.ordered = false})) sum += value;
  });
  return {static_cast<double>(cpu_ns(everybody) - cpu) / kSamples, wall / kSamples, sum};
}

Sweep sweep_by_threads(PeerProcess& floors) {
  const std::vector<double> answer = floors.ask("montecarlo_threads " + std::to_string(kSamples) + " " +
                                                std::to_string(kMontecarloIterations) + " " + std::to_string(kWorkers));
  return {answer.at(0), answer.at(1), answer.at(2)};
}

/// Both must have computed the same; only the order of the sum differs.
double samples_per_second(double ns, double sum, double& expected) {
  if (expected == 0) expected = sum;
  if (std::abs(sum - expected) > 1e-9) throw std::runtime_error("a wrong sum");
  return 1e9 / ns;
}

}  // namespace

void montecarlo_efficiency(Bench& bench) {
  drover::Pool pool({.workers = kWorkers});
  pool.submit<montecarlo>(1).get();
  double expected = 0;
  const auto figure = [&](const char* unit, double Sweep::*time, const char* peer, Goal goal, int rounds) {
    const auto rate = [&, time](Sweep sweep) { return samples_per_second(sweep.*time, sweep.sum, expected); };
    bench.add({.name = "montecarlo_efficiency",
               .unit = unit,
               .drover = [&, rate] { return rate(sweep_by_drover(pool)); },
               .peers = {{peer, [&, rate] { return rate(sweep_by_threads(bench.floors())); }, goal}},
               .rounds = rounds});
  };
  figure("samples/s of CPU time", &Sweep::cpu, "plain threads", ratio_at_least(0.98), 9);
  figure("samples/s of wall time", &Sweep::wall, "plain threads, wall (shown)", shown(), 5);
}

}  // namespace bench
