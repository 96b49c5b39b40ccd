// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstring>

#include "benchmarks/harness/area.h"
#include "benchmarks/harness/measure.h"
#include "benchmarks/harness/slots.h"
#include "benchmarks/pool/figures.h"
#include "drover/drover.h"

namespace {

using namespace bench;

constexpr NamedFigures kFigures[] = {{"map_chunk1", map_chunk1},
                                     {"map_chunk1_streamed", map_chunk1_streamed},
                                     {"map_auto", map_auto},
                                     {"submit_pipelined", submit_pipelined},
                                     {"roundtrip_hot", roundtrip_hot},
                                     {"roundtrip_parked", roundtrip_parked},
                                     {"roundtrip_one_cpu", roundtrip_one_cpu},
                                     {"start_first_result", start_first_result},
                                     {"stop", stop},
                                     {"montecarlo_efficiency", montecarlo_efficiency},
                                     {"worker_death_ms", worker_death_ms},
                                     {"parent_death_ms", parent_death_ms},
                                     {"idle_cpu", idle_cpu},
                                     {"idle_pss", idle_pss},
                                     {"stream_memory", stream_memory}};

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], kExitAtOnce) == 0) _exit(0);
  drover::init(argc, argv);
  if (argc > 1 && std::strcmp(argv[1], kPlayParent) == 0) play_parent();
  create_slots();
  allowed_cpus();
  return run_area("pool", "Measures the pool against its floors and peers, in the same run.", kFigures, argc, argv);
}
