// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/peers/floors.h"

int main() {
  using namespace bench::floors;
  return bench::serve({{"counter", counter},
                       {"ring", ring},
                       {"exchange", exchange},
                       {"spin_two_cpus", spin_two_cpus},
                       {"futex_parked", futex_parked},
                       {"futex_one_cpu", futex_one_cpu},
                       {"yield_one_cpu", yield_one_cpu},
                       {"spawn_and_wait", spawn_and_wait},
                       {"montecarlo_threads", montecarlo_threads}});
}
