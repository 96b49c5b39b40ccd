// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <climits>

#include "fault/jobs.h"
#include "fault/scenario_path.h"

namespace drover_test {
namespace {

using std::chrono::seconds;

constexpr double kLimitMs = 1000;  // 100 ms on a machine that has nothing else to do
#ifdef __SANITIZE_ADDRESS__
constexpr int kEveryPointTo = 60;  // beyond, in growing steps: here it is slow
#else
constexpr int kEveryPointTo = INT_MAX;
#endif
constexpr int kLastPoint = 5000;
constexpr int kQuietRuns = 3;             // so many runs in a row without a kill end the enumeration
constexpr std::size_t kFewestKills = 15;  // fewer: the library has no fault points

int next_point(int point) { return point < kEveryPointTo ? point + 1 : point * 5 / 4; }

/// Kills the scenario at its fault points one after the other, until runs need no kill.
void enumerate(const std::vector<std::string>& arguments) {
  int point = 0;
  std::vector<double> times;
  for (int quiet = 0; quiet < kQuietRuns; point = next_point(point)) {
    SCOPED_TRACE(arguments[0] + ", killed at point " + std::to_string(point));
    const Family family;
    Command command = scenario(arguments, family);
    command.environment["DROVER_FAULT"] = "parent:" + std::to_string(point);
    Subprocess program(command);
    const Outcome outcome = program.finish();  // workers hold the output open: all that wrote to it are gone now
    ASSERT_FALSE(outcome.timed_out);
    const auto gone = family.gone_after(seconds(10));
    ASSERT_TRUE(gone) << family.members().size() << " processes are left";
    EXPECT_LE(*gone, kLimitMs);
    ASSERT_LT(point, kLastPoint);
    if (outcome.signal == 0) {
      EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
      ++quiet;
      continue;
    }
    quiet = 0;
    times.push_back(*gone);
    ASSERT_EQ(outcome.signal, SIGKILL) << outcome.out << outcome.err;
  }
  EXPECT_GE(times.size(), kFewestKills);
  std::sort(times.begin(), times.end());
  std::printf("%s: killed at %zu points, up to %d; all gone after %.1f ms (median), %.1f ms (worst)\n",
              arguments.size() > 1 ? arguments[1].c_str() : arguments[0].c_str(), times.size(), point,
              times.empty() ? 0 : times[times.size() / 2], times.empty() ? 0 : times.back());
}

class KillParentPoints : public testing::TestWithParam<JobName> {};

TEST_P(KillParentPoints, LeavesNothing) { enumerate({"job", GetParam().name, "6", "2"}); }

INSTANTIATE_TEST_SUITE_P(All, KillParentPoints, testing::ValuesIn(kJobs), [](const auto& job) {
  std::string name = job.param.name;
  std::erase(name, '-');
  return name;
});

TEST(KillParent, WhileItDealsWithDeathsLeavesNothing) { enumerate({"deaths"}); }

}  // namespace
}  // namespace drover_test
