// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <array>
#include <vector>

#include "drover/drover.h"

/// The functions that the benchmark's workers run, and what every figure needs of a pool.
namespace bench {

inline constexpr int kMontecarloIterations = 100'000;

/// The empty task, result in place: slots()[i] = i.
void store_in_place(int i);
/// The empty task, result streamed or returned.
double as_double(int i);
/// 64 bytes of arguments.
double sum_of(std::array<double, 8> values);
/// Computes for that long, by the clock.
int busy_for_us(int microseconds);
/// One sample of the demo.
double montecarlo(int seed);
/// Says its pid in flag(slot), then computes until killed.
void busy_until_killed(int slot);
/// The same, with a pool of its own that has one worker busy at slot + 1.
void busy_with_nested(int slot);

/// The pids of the workers, once all of them are ready. Throws std::runtime_error after 10 s.
std::vector<pid_t> worker_pids(drover::Pool& pool);

/// Runs store_in_place over 0 ... count - 1 and waits for all.
void store_all(drover::Pool& pool, int count, drover::MapOptions options);

/// The same with the slots cleared before and verified after; a short map warms up. Nanoseconds a task.
double time_store_all(drover::Pool& pool, int count, drover::MapOptions options);

}  // namespace bench
