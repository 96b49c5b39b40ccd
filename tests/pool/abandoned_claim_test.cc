// SPDX-License-Identifier: Apache-2.0
// Something wrote over the word of a task that nobody has begun: as if a worker had it that there is not.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>

#include "drover/drover.h"
#include "drover/pool/layout.h"
#include "drover/shm/board.h"
#include "harness/deadline.h"
#include "pool/shared_counters.h"

using namespace std::chrono_literals;
using drover_test::counters;
using drover_test::SharedCounters;

namespace {

constexpr double kMark = 4711.125;  // found again among the tasks
constexpr std::uint32_t kNever = 0xfffffe;

double hold(const std::string& path, double value) {
  if (value == kMark) return value;
  counters(path)[0] = 1;
  drover_test::pass_gate(counters(path)[1]);
  return value;
}

/// The word of the task that has the mark in its arguments, which begin at `offset` of an entry of `size` bytes.
std::atomic<std::uint32_t>* marked_word(std::size_t offset, std::size_t size) {
  std::FILE* const maps = std::fopen("/proc/self/maps", "r");
  std::atomic<std::uint32_t>* found = nullptr;
  char line[512];
  while (std::fgets(line, sizeof line, maps) != nullptr) {
    unsigned long from = 0, to = 0, at = 0;
    if (std::strstr(line, "drover-pool") == nullptr) continue;
    if (std::sscanf(line, "%lx-%lx %*s %lx", &from, &to, &at) != 3 || at == 0) continue;
    for (unsigned long entry = from; entry + size <= to; entry += size) {
      auto* const bytes = reinterpret_cast<std::byte*>(entry);
      if (memmem(bytes + offset, size - offset, &kMark, sizeof kMark) != nullptr)
        found = reinterpret_cast<std::atomic<std::uint32_t>*>(bytes);
    }
  }
  std::fclose(maps);
  return found;
}

class AbandonedClaim : public testing::TestWithParam<std::uint32_t> {
 protected:
  /// Once the only worker is busy with the first task.
  void write_over(std::size_t offset, std::size_t size) const {
    ASSERT_TRUE(drover_test::eventually(10s, [&] { return shared_[0] == 1; }));
    std::atomic<std::uint32_t>* const word = marked_word(offset, size);
    ASSERT_NE(word, nullptr);
    ASSERT_EQ(drover::shm::state::phase(word->load()), drover::shm::state::kArmed);
    *word = drover::shm::state::claimed_by(GetParam());
    shared_[1] = 1;
  }
  SharedCounters shared_;
};

TEST_P(AbandonedClaim, OfASubmittedTaskIsALoss) {
  drover::Pool pool({.workers = 1});
  auto first = pool.submit<hold>(shared_.path(), 1.0);
  auto marked = pool.submit<hold>(shared_.path(), kMark);
  write_over(offsetof(drover::detail::SubmitEntry, near_arguments), sizeof(drover::detail::SubmitEntry));
  EXPECT_EQ(first.get(), 1.0);
  ASSERT_TRUE(marked.wait_for(20s));
  EXPECT_THROW(marked.get(), drover::WorkerLost);
  EXPECT_EQ(pool.submit<hold>(shared_.path(), kMark).get(), kMark);
}

TEST_P(AbandonedClaim, OfASubmittedTaskMayRunAgain) {
  drover::Pool pool({.workers = 1});
  auto first = pool.with({.retries = 1}).submit<hold>(shared_.path(), 1.0);
  auto marked = pool.with({.retries = 1}).submit<hold>(shared_.path(), kMark);
  write_over(offsetof(drover::detail::SubmitEntry, near_arguments), sizeof(drover::detail::SubmitEntry));
  ASSERT_TRUE(marked.wait_for(20s));
  EXPECT_EQ(marked.get(), kMark);
}

TEST_P(AbandonedClaim, OfAMappedItemIsALoss) {
  drover::Pool pool({.workers = 1});
  const std::vector<std::pair<std::string, double>> inputs{{shared_.path(), 1.0}, {shared_.path(), kMark}};
  auto results = pool.map<hold>(inputs, {.chunk = 1, .window = 2});
  write_over(offsetof(drover::detail::InputEntry, bytes), sizeof(drover::detail::InputEntry));
  auto at = results.begin();
  EXPECT_EQ(*at, 1.0);
  ++at;
  EXPECT_THROW(static_cast<void>(*at), drover::WorkerLost);
  ++at;
  EXPECT_EQ(at, results.end());
}

INSTANTIATE_TEST_SUITE_P(By, AbandonedClaim, testing::Values(0U, kNever),
                         [](const auto& owner) { return owner.param == 0 ? "Nobody" : "OneThatNeverWas"; });

}  // namespace
