// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/harness/area.h"
#include "benchmarks/harness/measure.h"
#include "benchmarks/shm/array.h"
#include "benchmarks/shm/matrix_demo.h"
#include "benchmarks/shm/mutex.h"
#include "benchmarks/shm/queue.h"
#include "drover/worker/init.h"

namespace {

using namespace bench;

void mutex(Bench& bench) {
  bench.add(mutex_uncontended());
  bench.add(mutex_contended());
}

constexpr NamedFigures kFigures[] = {{"attach_800mb", attach_800mb},
                                     {"sum_rows", sum_rows},
                                     {"fill", fill},
                                     {"mutex", mutex},
                                     {"queue_64b", queue_64b},
                                     {"queue_1mb", queue_1mb},
                                     {"matrix_demo", matrix_demo}};

}  // namespace

int main(int argc, char** argv) {
  drover::init(argc, argv);
  allowed_cpus();
  return run_area("shm", "Measures shared arrays and primitives against their floors and peers, in the same run.",
                  kFigures, argc, argv);
}
