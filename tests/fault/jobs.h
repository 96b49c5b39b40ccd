// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "drover/drover.h"

namespace drover_test {

/// The ways in which tasks and results travel.
enum class Job {
  kOrdered,
  kUnordered,
  kChunked,
  kStream,
  kWide,
  kSpilled,
  kVoid,         ///< functions without a result, whose items are only counted
  kVoidChunked,  ///< the same, several at once
  kTimed,
  kLeft,  ///< the loop over the results is left before its end
  kSubmit,
  kSubmitSpilled,
  kSubmitVoid,
  kSubmitTimed,
  kDropped,      ///< every other future is dropped at once
  kInitialized,  ///< in a pool with an initializer
};

struct JobName {
  Job job;
  const char* name;
};
inline constexpr JobName kJobs[] = {
    {Job::kOrdered, "map-ordered"},
    {Job::kUnordered, "map-unordered"},
    {Job::kChunked, "map-chunked"},
    {Job::kStream, "map-stream-inputs"},
    {Job::kWide, "map-wide-results"},
    {Job::kSpilled, "map-large-results"},
    {Job::kVoid, "map-no-results"},
    {Job::kVoidChunked, "map-no-results-chunked"},
    {Job::kTimed, "map-timed"},
    {Job::kLeft, "map-left-early"},
    {Job::kSubmit, "submit"},
    {Job::kSubmitSpilled, "submit-large"},
    {Job::kSubmitVoid, "submit-no-result"},
    {Job::kSubmitTimed, "submit-timed"},
    {Job::kDropped, "submit-dropped"},
    {Job::kInitialized, "initialized"},
};

/// What became of each item of a job.
struct Tally {
  explicit Tally(std::size_t items) : delivered(items), lost(items) {}

  std::vector<int> delivered;  ///< times its right result came
  std::vector<int> lost;       ///< times it failed with WorkerLost
  std::vector<std::string> problems;

  std::size_t total_lost() const;
  /// "" when each item came or was lost exactly once, and in order where that was asked for.
  std::string complaint() const;
};

/// The pool that a job is meant for.
drover::PoolOptions pool_for(Job job, std::size_t workers);

/// Runs `items` tasks with known answers and counts what comes back. Throws when the pool ends.
Tally run_job(drover::Pool& pool, Job job, std::size_t items, std::size_t retries);

}  // namespace drover_test
