// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "drover/health/rules/rules.h"
#include "health/played_reports.h"

/// What serves and waits is well, and no advice ends what others do beside.
namespace {

using namespace drover::health;
using namespace drover_test;

bool says(const std::vector<std::string>& lines, const char* text) {
  return joined(lines).find(text) != std::string::npos;
}

TEST(Advice, EndsNoJobOrContainerInWhichAPersonHasAShell) {
  const Finding job = shipped("idle-interactive-slurm", Rule::kR8);
  EXPECT_FALSE(says(job.action, "scancel")) << joined(job.action);
  EXPECT_TRUE(says(job.action, "do not end slurm 91 as a whole: pid 60 (bash)")) << joined(job.action);
  EXPECT_TRUE(says(job.action, "kill -TERM 4000")) << joined(job.action);
  const Finding container = shipped("idle-container-with-shell", Rule::kR8);
  EXPECT_FALSE(says(container.action, "docker stop")) << joined(container.action);
  EXPECT_TRUE(says(container.action, "as a whole: pid 95 (bash)")) << joined(container.action);
}

TEST(Advice, EndsAContainerOfWhichTheProcessIsTheFirstOne) {
  const Finding finding = shipped("idle-container-looked-into", Rule::kR8);
  EXPECT_TRUE(says(finding.action, "docker stop 5d41402abc4b")) << joined(finding.action);
}

TEST(Advice, EndsAJobOfAnotherBatchSystemByItsOwnCommand) {
  EXPECT_TRUE(says(shipped("idle-in-pbs", Rule::kR8).action, "qdel 1234.head1"));
}

TEST(Advice, EndsOneTaskOfAnArrayAndNotAll) {
  const Finding slurm = shipped("idle-in-array-of-slurm", Rule::kR8);
  EXPECT_TRUE(says(slurm.action, "scancel 34567890_1")) << joined(slurm.action);
  EXPECT_TRUE(says(shipped("idle-below-array-of-slurm", Rule::kR8).action, "scancel 99"));
  const Finding lsf = shipped("idle-in-array-of-lsf", Rule::kR8);
  EXPECT_TRUE(says(lsf.action, "bkill '77[3]'")) << joined(lsf.action);
}

TEST(Advice, EndsATaskOfAirflowAndNotItsScheduler) {
  const Finding finding = shipped("idle-task-of-airflow-unit", Rule::kR8);
  EXPECT_FALSE(says(finding.action, "systemctl")) << joined(finding.action);
  EXPECT_TRUE(says(finding.action, "kill -TERM 82 (the launcher)")) << joined(finding.action);
}

TEST(Advice, EndsNobodyOfAPoolWhileOneOfItWorks) {
  const Finding finding = shipped("spinning-one-of-pool", Rule::kR6);
  EXPECT_EQ(finding.confidence, Confidence::kMedium);
  EXPECT_TRUE(says(finding.action, "end nobody while it is at work")) << joined(finding.action);
  EXPECT_FALSE(says(finding.action, "kill -")) << joined(finding.action);
}

TEST(Advice, EndsNoFirstProcessOfAContainerForAZombie) {
  const Finding finding = shipped("defunct-below-first-of-container", Rule::kR3);
  EXPECT_FALSE(says(finding.action, "kill -TERM 90")) << joined(finding.action);
  EXPECT_TRUE(says(finding.action, "with which its container ends")) << joined(finding.action);
}

TEST(Advice, NamesALockThatMayBeStaleBeforeAnybodyIsEnded) {
  const Finding finding = shipped("blocked-stale-lock", Rule::kR7);
  EXPECT_TRUE(says(finding.action, "torch_extensions/*/*/lock")) << joined(finding.action);
  EXPECT_TRUE(says(finding.action, "end nobody while who has the lock is at work")) << joined(finding.action);
  EXPECT_FALSE(says(finding.action, "kill -")) << joined(finding.action);
}

}  // namespace
