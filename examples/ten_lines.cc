// SPDX-License-Identifier: Apache-2.0
// The example of README.md, word for word below this line.
#include <drover/drover.h>

#include <cstdio>

static double square(int x) { return x * x; }

int main(int argc, char** argv) {
  drover::init(argc, argv);  // a worker process never returns from here
  drover::Pool pool({.workers = 4});
  for (double y : pool.map<square>(drover::range(0, 10))) std::printf("%g\n", y);
}
