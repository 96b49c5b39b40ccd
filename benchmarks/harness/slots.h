// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>

/// A block of doubles that the benchmark and all processes it starts see: where empty tasks store their result in
/// place, and where tasks that will be killed say who they are. Not through Drover, so that nothing of Drover is
/// measured twice.
namespace bench {

inline constexpr std::size_t kSlots = std::size_t{1} << 22;

/// Makes the block (a memfd: no name to leave behind) and says in the environment where it is. Once, in the benchmark
/// itself, before anything is started. Throws std::system_error.
void create_slots();

/// The block, already faulted in. Maps it at the first call. Any process that the benchmark started; thread-safe.
double* slots();

/// One slot as a flag between processes.
inline std::atomic_ref<double> flag(std::size_t index) { return std::atomic_ref<double>(slots()[index]); }

/// Waits until flag(index) is not zero and returns it; throws std::runtime_error after 10 s.
double await_flag(std::size_t index);

}  // namespace bench
