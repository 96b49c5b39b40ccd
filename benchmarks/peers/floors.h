// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "benchmarks/peers/peer_server.h"

/// The floors: the least that a mechanism can cost on this machine. Each returns nanoseconds a task first.
namespace bench::floors {

/// COUNT: index tasks claimed one by one from a shared counter by two processes; each stores one double in place.
std::vector<double> counter(const std::vector<std::string>& arguments);
/// COUNT: messages of 64 bytes through a single-producer single-consumer ring between two CPUs, each published at once.
std::vector<double> ring(const std::vector<std::string>& arguments);
/// COUNT: tasks from one process to another, each claimed by a compare-and-swap, and a result back through a ring.
std::vector<double> exchange(const std::vector<std::string>& arguments);

/// COUNT: round trips between two processes over one word. By spinning on two CPUs; by futex on two CPUs with a pause
/// of 200 us before each (the median, without the pause); by futex and by sched_yield on one CPU.
std::vector<double> spin_two_cpus(const std::vector<std::string>& arguments);
std::vector<double> futex_parked(const std::vector<std::string>& arguments);
std::vector<double> futex_one_cpu(const std::vector<std::string>& arguments);
std::vector<double> yield_one_cpu(const std::vector<std::string>& arguments);

/// COUNT PROGRAM ARGUMENT...: starts the program COUNT times, all at once, and waits for all. Nanoseconds in all.
std::vector<double> spawn_and_wait(const std::vector<std::string>& arguments);

/// SAMPLES ITERATIONS THREADS: the demo's Monte-Carlo kernel on plain threads. CPU time and wall time a sample, and the
/// sum.
std::vector<double> montecarlo_threads(const std::vector<std::string>& arguments);

}  // namespace bench::floors
