// SPDX-License-Identifier: Apache-2.0
#include "drover/pool/inner_threads.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "drover/drover.h"
#include "drover/os/cpu.h"

namespace {

using Strings = std::vector<std::string>;
using drover::detail::inner_thread_limits;

Strings all(const std::string& threads) {
  return {"OMP_NUM_THREADS=" + threads, "OPENBLAS_NUM_THREADS=" + threads, "MKL_NUM_THREADS=" + threads,
          "DROVER_THREADS=" + threads + " OMP_NUM_THREADS OPENBLAS_NUM_THREADS MKL_NUM_THREADS "};
}

TEST(InnerThreads, WorkersShareTheCores) {
  EXPECT_EQ(inner_thread_limits({"HOME=/"}, 16, 3), all("5"));
  EXPECT_EQ(inner_thread_limits({}, 2, 5), all("1"));
}

TEST(InnerThreads, WhatTheUserHasSetStays) {
  EXPECT_EQ(inner_thread_limits({"OMP_NUM_THREADS=3"}, 8, 2),
            (Strings{"OPENBLAS_NUM_THREADS=4", "MKL_NUM_THREADS=4",
                     "DROVER_THREADS=4 OPENBLAS_NUM_THREADS MKL_NUM_THREADS "}));
}

TEST(InnerThreads, ANestedPoolDividesItsWorkersShare) {
  EXPECT_EQ(inner_thread_limits(all("8"), 16, 2), all("4"));
  EXPECT_EQ(inner_thread_limits(all("1"), 16, 4), all("1"));
  EXPECT_EQ(inner_thread_limits(all("8"), 4, 2), all("2")) << "it may use fewer cores by now";
}

TEST(InnerThreads, ANestedPoolLeavesWhatTheUserHasSet) {
  Strings environment = inner_thread_limits({"OMP_NUM_THREADS=3"}, 8, 1);
  environment.push_back("OMP_NUM_THREADS=3");
  EXPECT_EQ(inner_thread_limits(environment, 8, 2)[0], "OPENBLAS_NUM_THREADS=4");
  environment = all("8");
  environment[0] = "OMP_NUM_THREADS=6";  // by a task, since
  EXPECT_EQ(inner_thread_limits(environment, 8, 2)[0], "OPENBLAS_NUM_THREADS=4");
}

TEST(InnerThreads, ADamagedVariableIsNone) {
  EXPECT_EQ(inner_thread_limits({"DROVER_THREADS="}, 4, 2), all("2"));
  EXPECT_EQ(inner_thread_limits({"DROVER_THREADS=x y"}, 4, 2), all("2"));
}

std::string limit() {
  const char* const value = std::getenv("OMP_NUM_THREADS");
  return value == nullptr ? "unset" : value;
}
std::string limit_in_nested(std::size_t workers) {
  drover::Pool pool({.workers = workers});
  return pool.submit<limit>().get();
}

TEST(InnerThreads, NestedPoolsGetTheirShareToo) {
  const std::size_t cores = drover::os::usable_cpus();
  drover::Pool pool({.workers = 1});
  EXPECT_EQ(pool.submit<limit>().get(), std::to_string(cores));
  EXPECT_EQ(pool.submit<limit_in_nested>(cores).get(), "1");
  EXPECT_EQ(pool.submit<limit_in_nested>(1).get(), std::to_string(cores));
}

}  // namespace
