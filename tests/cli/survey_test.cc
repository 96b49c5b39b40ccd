// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include "drover/array/shared_array.h"
#include "drover/cli/process_survey.h"
#include "drover/pool/pool.h"
#include "harness/deadline.h"
#include "harness/hanging_files.h"
#include "pool/worker_stats.h"

namespace {

using drover::cli::ListedPool;
using drover::cli::ListedProcess;
using drover::cli::Survey;
using drover::cli::take_survey;
using drover_test::eventually;

int twice(int value) { return 2 * value; }

/// A copy of this program that sleeps, with all its descriptors and mappings.
class Fork {
 public:
  Fork() : pid_(fork()) {
    if (pid_ > 0) return;
    for (;;) pause();
  }
  ~Fork() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Fork(const Fork&) = delete;
  Fork& operator=(const Fork&) = delete;
  int pid() const { return pid_; }

 private:
  int pid_;
};

const ListedProcess* find_process(const Survey& survey, int pid) {
  const auto& all = survey.processes;
  const auto it = std::find_if(all.begin(), all.end(), [&](const auto& process) { return process.pid == pid; });
  return it == all.end() ? nullptr : &*it;
}

std::vector<ListedPool> pools_of(const Survey& survey, int pid) {
  std::vector<ListedPool> pools;
  for (const ListedPool& pool : survey.pools) {
    if (pool.owner == pid) pools.push_back(pool);
  }
  return pools;
}

std::string own_name() { return "cli-survey-" + std::to_string(getpid()); }

}  // namespace

TEST(Survey, APoolBelongsToWhoMadeItAndNotToItsForks) {
  drover::Pool pool({.workers = 2});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(pool.submit<twice>(i).get(), 2 * i);
  ASSERT_TRUE(eventually(std::chrono::seconds(10), [&] { return drover_test::all_ready(pool); }));
  const Fork fork;
  const Survey survey = take_survey();
  const auto pools = pools_of(survey, getpid());
  ASSERT_EQ(pools.size(), 1U);
  ASSERT_TRUE(pools[0].facts);
  EXPECT_EQ(pools[0].facts->workers, 2U);
  EXPECT_EQ(pools[0].facts->tasks, 5U);
  EXPECT_GE(pools[0].facts->age, 0);
  EXPECT_LT(pools[0].facts->age, 60);
  EXPECT_EQ(pools[0].running, 2U);
  EXPECT_GT(pools[0].memory, 0U);
  EXPECT_TRUE(pools_of(survey, fork.pid()).empty());
  EXPECT_EQ(find_process(survey, getpid())->pools, 1U);
}

TEST(Survey, SaysWhoHasMappedABlockOfAnother) {
  const auto array = drover::SharedArray<double, 1>::create(own_name(), {1000});
  const Fork fork;
  const Survey survey = take_survey();
  const ListedProcess* const self = find_process(survey, getpid());
  ASSERT_NE(self, nullptr);
  EXPECT_EQ(self->blocks, 1U);
  EXPECT_EQ(self->attached, std::vector<std::string>());
  const ListedProcess* const other = find_process(survey, fork.pid());
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(other->blocks, 0U);
  EXPECT_EQ(other->attached, std::vector<std::string>{own_name()});
}

TEST(Survey, AProcessWithALockedMemoryMapHoldsUpNothing) {
  const auto array = drover::SharedArray<double, 1>::create(own_name(), {1000});
  const Fork locked, free;
  const drover_test::HangingFile maps("/proc/" + std::to_string(locked.pid()) + "/maps");
  const Survey survey = take_survey();
  EXPECT_EQ(find_process(survey, free.pid())->attached, std::vector<std::string>{own_name()});
  const ListedProcess* const process = find_process(survey, locked.pid());
  ASSERT_NE(process, nullptr);
  EXPECT_EQ(process->attached, std::nullopt);
}
