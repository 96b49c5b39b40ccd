// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "drover/health/rules/rules.h"
#include "health/played_reports.h"

/// What is advised ends what is accused, and nothing that works beside it.
namespace {

using namespace drover::health;
using namespace drover_test;

struct Case {
  const char* situation;
  Rule rule;
  std::vector<const char*> says, says_not;
};

class AdviceAbout : public testing::TestWithParam<Case> {};

TEST_P(AdviceAbout, EndsNothingThatWorksBeside) {
  const std::string all = joined(shipped(GetParam().situation, GetParam().rule).action);
  for (const char* const text : GetParam().says) EXPECT_NE(all.find(text), std::string::npos) << text << "\n" << all;
  for (const char* const text : GetParam().says_not)
    EXPECT_EQ(all.find(text), std::string::npos) << text << "\n" << all;
}

INSTANTIATE_TEST_SUITE_P(
    Situations, AdviceAbout,
    testing::Values(
        Case{"idle-kernel-beside-busy-one", Rule::kR8, {"do not end slurm 77 as a whole: pid", "4000"}, {"scancel"}},
        Case{"idle-step-of-sweep", Rule::kR8, {"scancel 77.2 (that step)"}, {}},
        Case{"idle-titled-in-array", Rule::kR8, {"scancel 34567890_7"}, {}},
        Case{"idle-beside-titled-engine", Rule::kR8, {"as a whole: pid 4001"}, {"qdel"}},
        Case{"idle-executor-of-yarn", Rule::kR8, {"kill -TERM 4000"}, {"systemctl"}},
        Case{"idle-task-of-prefect", Rule::kR8, {"kill -TERM 4000"}, {"systemctl"}},
        Case{"idle-container-of-user", Rule::kR8, {"as that user: docker stop 0123456789ab"}, {}},
        Case{"idle-cgroup-like-a-pod", Rule::kR8, {"kill -TERM 4000"}, {"kubectl"}},
        Case{"idle-escaped-unit", Rule::kR8, {"systemctl stop 'embed@llama\\x2d3.service'"}, {}},
        Case{"idle-environment-of-other-job", Rule::kR8, {"scancel 77"}, {"scancel 70"}},
        Case{"idle-ranks-of-two-nodes", Rule::kR8, {"look at all nodes at once"}, {"scancel", "kill -"}},
        Case{"idle-rank-beside-busy-one", Rule::kR8, {"end nobody while it is at work"}, {"scancel", "kill -"}},
        Case{"resting-stopped-on-mig", Rule::kR8, {"kill -CONT 2500"}, {"kill -TERM"}},
        Case{"dead-beside-device-plugin", Rule::kR4, {"reset"}, {"kill -"}},
        Case{"leak-beside-monitor", Rule::kR9, {}, {"kill -"}},
        Case{"defunct-below-busy-parent", Rule::kR3, {"kill -CHLD 100"}, {"kill -TERM 100"}},
        Case{"defunct-below-batch-script", Rule::kR3, {}, {"scancel", "kill -TERM"}}),
    [](const auto& one) {
      std::string name = one.param.situation;
      std::erase(name, '-');
      return name;
    });

}  // namespace
