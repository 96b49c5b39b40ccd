// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "benchmarks/harness/bench.h"

namespace bench {

// One function a figure of targets.md, each in the file of its name (P1-P5, P7, P8, P10, and what issue 3 adds).
void map_chunk1(Bench& bench);
void map_chunk1_streamed(Bench& bench);
void map_auto(Bench& bench);
void submit_pipelined(Bench& bench);
void roundtrip_hot(Bench& bench);
void roundtrip_parked(Bench& bench);
void roundtrip_one_cpu(Bench& bench);
void start_first_result(Bench& bench);
void stop(Bench& bench);
void montecarlo_efficiency(Bench& bench);
void worker_death_ms(Bench& bench);
void parent_death_ms(Bench& bench);
void idle_cpu(Bench& bench);
void idle_pss(Bench& bench);
void stream_memory(Bench& bench);

/// What the program does when it plays the parent that will be killed: two busy workers, each with a busy one of its
/// own.
inline constexpr const char* kPlayParent = "--play-parent";
/// What it does when it is only spawned: it ends at once.
inline constexpr const char* kExitAtOnce = "--exit-at-once";
[[noreturn]] void play_parent();

}  // namespace bench
