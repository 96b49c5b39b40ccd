// SPDX-License-Identifier: Apache-2.0
// One matrix of 800 MB in shared memory: filled on all cores, then read by four processes that know its name alone.
#include <drover/drover.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

static double sum_of(const drover::ArrayView<const double, 2>& rows) {
  double sum = 0;
  for (const double x : rows) sum += x;
  return sum;
}

static void report_mean(const std::string& name, int from, int to, drover::Queue<double> sums) {
  const auto matrix = drover::SharedArray<const double, 2>::open(name);
  const auto rows = matrix.rows(from, to);
  const double sum = sum_of(rows);
  std::printf("rows %d to %d: mean %+.3e\n", from, to, sum / static_cast<double>(rows.size()));
  sums.push(sum);
}

int main(int argc, char** argv) {
  drover::init(argc, argv);  // a spawned process never returns from here

  auto matrix = drover::SharedArray<double, 2>::create("example-matrix", {10'000, 10'000});
  drover::Pool pool;
  drover::fill_normal(pool, matrix, 42);

  auto sums = drover::Queue<double>::create(4);
  std::vector<drover::Process> processes;
  for (int i = 0; i < 4; ++i) {
    processes.push_back(drover::spawn<report_mean>(matrix.name(), 2'500 * i, 2'500 * (i + 1), sums));
  }
  double theirs = 0;
  for (drover::Process& process : processes) {
    process.join();
    theirs += sums.pop_for(std::chrono::seconds(1)).value_or(NAN);  // a process that failed has pushed none
  }
  const double own = drover::reduce<sum_of>(pool, matrix);
  const bool same = std::fabs(own - theirs) < 1e-6;  // in another order: rounding differs
  std::printf("sum %.6f, of the processes %.6f: %s\n", own, theirs, same ? "the same" : "NOT the same");
  return same ? 0 : 1;
}  // here the name goes; NumPy could have opened matrix.path() until now
