// SPDX-License-Identifier: Apache-2.0
// 50,000 sums over sines on all cores; each arrives as soon as it is done.
#include <drover/drover.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <utility>

static std::pair<std::int64_t, double> simulate(std::int64_t seed) {
  double sum = 0;
  for (std::int64_t i = 1; i < 100'000; ++i) {
    sum += std::sin(static_cast<double>(seed * i)) * std::cos(static_cast<double>(i));
  }
  return {seed, sum};
}

int main(int argc, char** argv) {
  drover::init(argc, argv);  // a worker never returns from here

  drover::Pool pool;
  double best = 0;
  std::int64_t best_seed = 0, done = 0;
  for (auto [seed, sum] : pool.map<simulate>(drover::range(0, 50'000), {.ordered = false})) {
    if (sum > best) {
      best = sum;
      best_seed = seed;
    }
    if (++done % 5'000 == 0) std::printf("%lld done, best so far: %.9f\n", static_cast<long long>(done), best);
  }
  std::printf("seed %lld has the largest sum: %.9f\n", static_cast<long long>(best_seed), best);
}
