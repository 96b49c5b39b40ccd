// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <csignal>

#include "fault/scenario_path.h"

namespace drover_test {
namespace {

using std::chrono::seconds;

constexpr double kLimitMs = 1000;  // 100 ms on a machine that has nothing else to do

/// Waits until `tasks` have said that they are under way.
void expect_tasks(Subprocess& program, const std::vector<int>& tasks) {
  for (const int task : tasks) {
    ASSERT_TRUE(program.wait_for_output("task " + std::to_string(task) + "\n")) << "task " << task;
  }
}

void expect_all_gone(const char* what, const Family& family) {
  const auto gone = family.gone_after(seconds(10));
  ASSERT_TRUE(gone) << family.members().size() << " processes are left";
  std::printf("%s: all gone after %.1f ms\n", what, *gone);
  EXPECT_LE(*gone, kLimitMs);
}

void expect_death_of_all(const char* name, const std::vector<int>& tasks) {
  const Family family;
  Subprocess program(scenario({name}, family));
  expect_tasks(program, tasks);
  program.send(SIGKILL);
  expect_all_gone(name, family);
}

TEST(ParentDeath, EndsBusyWorkers) { expect_death_of_all("busy", {0, 1}); }

TEST(ParentDeath, EndsSleepingTasks) { expect_death_of_all("asleep", {0, 1}); }

TEST(ParentDeath, EndsBusyWorkersOfNestedPools) { expect_death_of_all("nested", {0, 1, 10, 11}); }

TEST(ParentDeath, EndsWorkersOfAPoolMadeByAThreadThatEnded) { expect_death_of_all("thread", {0, 1}); }

TEST(ParentDeath, EndsWorkersThatBlockAllSignals) { expect_death_of_all("deaf", {0, 1}); }

TEST(ParentDeath, EndsStoppedWorkers) { expect_death_of_all("stopped", {0, 1}); }

TEST(ParentDeath, EndsTheWorkersOfAStoppedParent) {
  const Family family;
  Subprocess program(scenario({"busy"}, family));
  expect_tasks(program, {0, 1});
  program.send(SIGSTOP);
  program.send(SIGKILL);
  expect_all_gone("stopped parent", family);
}

TEST(ParentDeath, EndsWhatAUsersFunctionStarted) {
  const Family family;
  Subprocess program(scenario({"subprocess"}, family));
  expect_tasks(program, {0, 1});
  program.send(SIGKILL);
  expect_all_gone("subprocesses of tasks", family);
}

}  // namespace
}  // namespace drover_test
