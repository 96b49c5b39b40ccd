// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <climits>
#include <cstdlib>

#include "fault/jobs.h"
#include "fault/watchdog.h"
#include "harness/deadline.h"

namespace drover_test {
namespace {

using std::chrono::seconds;

constexpr std::size_t kItems = 12;
#ifdef __SANITIZE_ADDRESS__
constexpr bool kEveryPoint = false;  // here it is slow
#else
constexpr bool kEveryPoint = true;
#endif
constexpr int kEveryPointTo = kEveryPoint ? INT_MAX : 30;  // beyond, in growing steps
constexpr int kFewestKills = 10;                           // fewer: the library has no fault points
/// So many runs in a row without a kill end the enumeration. Of two workers the other one may do nearly all the work,
/// so that the first does not come to a point that it has, now and then.
constexpr int quiet_runs(std::size_t workers) { return workers == 1 ? 3 : 10; }
constexpr int kLastPoint = 2000;

int next_point(int point) { return point < kEveryPointTo ? point + 1 : point * 5 / 4; }

std::size_t restarts(const drover::Pool& pool) {
  std::size_t sum = 0;
  for (const drover::WorkerStats& worker : pool.stats().workers) sum += worker.restarts;
  return sum;
}

/// A job in a pool whose first worker dies at its `point`-th fault point. True when it did.
bool survives_kill_at(int point, Job job, std::size_t workers, std::size_t retries) {
  setenv("DROVER_FAULT", ("child-1:" + std::to_string(point)).c_str(), 1);
  drover::Pool pool(pool_for(job, workers));
  const Tally tally = run_job(pool, job, kItems, retries);
  const Tally after = run_job(pool, Job::kSubmit, 2, 1);
  unsetenv("DROVER_FAULT");
  EXPECT_EQ(tally.complaint(), "");
  EXPECT_EQ(after.complaint(), "");
  EXPECT_LE(tally.total_lost(), retries == 0 ? 1U : 0U);
  EXPECT_EQ(after.total_lost(), 0U);
  if (tally.total_lost() != 0) {
    EXPECT_TRUE(eventually(seconds(10), [&] { return restarts(pool) == 1; })) << "the worker was not replaced";
  }
  EXPECT_LE(restarts(pool), 1U);
  // A worker that died after its last item may not have been reaped yet.
  return eventually(std::chrono::milliseconds(100), [&] { return restarts(pool) != 0; });
}

class KillWorkerPoints : public testing::TestWithParam<JobName> {};

void enumerate(const JobName& job, std::size_t workers, std::size_t retries) {
  int runs = 0, kills = 0, quiet = 0, point = 0;
  for (; quiet < quiet_runs(workers) && point < kLastPoint; point = next_point(point)) {
    const std::string what = std::string(job.name) + " with " + std::to_string(workers) + " workers, " +
                             std::to_string(retries) + " retries, a worker killed at point " + std::to_string(point);
    SCOPED_TRACE(what);
    const Watchdog watchdog(what, seconds(30));
    const bool killed = survives_kill_at(point, job.job, workers, retries);
    ++runs;
    kills += killed ? 1 : 0;
    quiet = killed ? 0 : quiet + 1;
    if (testing::Test::HasFailure()) break;
  }
  std::printf("%s, %zu workers, %zu retries: killed at %d points, up to %d, in %d runs\n", job.name, workers, retries,
              kills, point, runs);
  EXPECT_GE(kills, kFewestKills);
}

TEST_P(KillWorkerPoints, TheOnlyWorkerFailsAtMostTheRunningItem) { enumerate(GetParam(), 1, 0); }

TEST_P(KillWorkerPoints, TheOnlyWorkerCostsNothingWithRetries) { enumerate(GetParam(), 1, 3); }

TEST_P(KillWorkerPoints, OneOfTwoWorkersFailsAtMostTheRunningItem) { enumerate(GetParam(), 2, 0); }

INSTANTIATE_TEST_SUITE_P(All, KillWorkerPoints, testing::ValuesIn(kJobs), [](const auto& job) {
  std::string name = job.param.name;
  std::erase(name, '-');
  return name;
});

}  // namespace
}  // namespace drover_test
