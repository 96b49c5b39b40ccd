// SPDX-License-Identifier: Apache-2.0
// One matrix of 800 MB in shared memory: filled on all cores, then read by four processes that know its name alone.
#include <drover/drover.h>

#include <cstdio>
#include <string>
#include <vector>

static void report_mean(const std::string& name, int from, int to) {
  const auto matrix = drover::SharedArray<const double, 2>::open(name);
  const auto rows = matrix.rows(from, to);
  double sum = 0;
  for (const double x : rows) sum += x;
  std::printf("rows %d to %d: mean %+.3e\n", from, to, sum / static_cast<double>(rows.size()));
}

int main(int argc, char** argv) {
  drover::init(argc, argv);  // a spawned process never returns from here

  auto matrix = drover::SharedArray<double, 2>::create("example-matrix", {10'000, 10'000});
  {
    drover::Pool pool;
    drover::fill_normal(pool, matrix, 42);
  }
  std::vector<drover::Process> processes;
  for (int i = 0; i < 4; ++i) {
    processes.push_back(drover::spawn<report_mean>(matrix.name(), 2'500 * i, 2'500 * (i + 1)));
  }
  for (drover::Process& process : processes) process.join();
}  // here the name goes; NumPy could have opened matrix.path() until now
