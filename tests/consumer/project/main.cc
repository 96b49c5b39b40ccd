// SPDX-License-Identifier: Apache-2.0
#include <drover/drover.h>

#include <cstdio>

int square(int number) { return number * number; }

int main(int argc, char** argv) {
  drover::init(argc, argv);
  drover::Pool pool({.workers = 2});
  long sum = pool.submit<square>(100).get();
  for (int value : pool.map<square>(drover::range(0, 100), {.ordered = false})) sum += value;
  std::printf("%ld\n", sum);
  return sum == 10'000 + 328'350 ? 0 : 1;
}
