// SPDX-License-Identifier: Apache-2.0
#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_group.h>

#include <array>
#include <stdexcept>

#include "benchmarks/harness/measure.h"
#include "benchmarks/peers/peer_server.h"

namespace {

using Strings = std::vector<std::string>;
using Slots = std::vector<double>;

template <class Partitioner>
void store_all(Slots& slots, std::size_t count) {
  tbb::parallel_for(
      tbb::blocked_range<std::size_t>(0, count, 1),
      [&slots](const tbb::blocked_range<std::size_t>& part) {
        for (std::size_t i = part.begin(); i != part.end(); ++i) slots[i] = static_cast<double>(i);
      },
      Partitioner());
}

/// Every task stores one double in place.
template <class Partitioner>
std::vector<double> map(const Strings& arguments) {
  static Slots slots;
  const std::size_t count = bench::task_count(arguments);
  slots.assign(count, -1);
  store_all<Partitioner>(slots, count / 10);
  const double elapsed = bench::time_ns([&] { store_all<Partitioner>(slots, count); });
  bench::verify_in_place(slots.data(), count);
  return {elapsed / static_cast<double>(count)};
}

/// One producer; arguments of 64 bytes, a stored result each. As many tasks outstanding as BATCH.
double submit_all(Slots& results, std::size_t batch) {
  tbb::task_group group;
  const double elapsed = bench::time_ns([&] {
    for (std::size_t i = 0; i < batch; ++i) {
      const std::array<double, 8> values{static_cast<double>(i), 1, 2, 3, 4, 5, 6, 7};
      group.run([values, result = &results[i]] {
        double sum = 0;
        for (double value : values) sum += value;
        *result = sum;
      });
    }
    group.wait();
  });
  for (std::size_t i = 0; i < batch; ++i) {
    if (results[i] != static_cast<double>(i + 28)) throw std::runtime_error("a task did not run");
  }
  return elapsed;
}

/// COUNT BATCH
std::vector<double> submit(const Strings& arguments) {
  const std::size_t batch = std::stoul(arguments.at(1));
  const std::size_t batches = bench::task_count(arguments) / batch;
  Slots results(batch);
  submit_all(results, batch);
  double elapsed = 0;
  for (std::size_t i = 0; i < batches; ++i) elapsed += submit_all(results, batch);
  return {elapsed / static_cast<double>(batches * batch)};
}

}  // namespace

int main() {
  tbb::global_control two_threads(tbb::global_control::max_allowed_parallelism, 2);
  return bench::serve(
      {{"map_grain1", map<tbb::simple_partitioner>}, {"map_auto", map<tbb::auto_partitioner>}, {"submit", submit}});
}
