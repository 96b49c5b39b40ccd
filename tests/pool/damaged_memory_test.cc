// SPDX-License-Identifier: Apache-2.0
// A task wrote over words that only the parent or another worker writes, and its worker lives on: no death will tell.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "drover/drover.h"
#include "drover/pool/layout.h"
#include "drover/shm/board.h"
#include "harness/deadline.h"
#include "pool/pool_memory.h"
#include "pool/shared_counters.h"

using namespace std::chrono_literals;
using drover_test::counters;
using drover_test::pool_memory;
using drover_test::SharedCounters;

namespace {

constexpr double kMark = 4711.125, kHeld = 4712.25;  // found again among the tasks
constexpr std::uint32_t kNever = 0xfffffe;

double hold(const std::string& path, double value) {
  if (value == kMark) return value;
  counters(path)[0] = 1;
  drover_test::pass_gate(counters(path)[1]);
  return value;
}

/// The word of the task that has the mark in its arguments, which begin at `offset` of an entry of `size` bytes.
std::atomic<std::uint32_t>* marked_word(std::size_t offset, std::size_t size, double mark = kMark) {
  for (const std::span<std::byte> memory : pool_memory(false)) {
    for (std::size_t at = 0; at + size <= memory.size(); at += size) {
      std::byte* const entry = memory.data() + at;
      if (memmem(entry + offset, size - offset, &mark, sizeof mark) != nullptr)
        return reinterpret_cast<std::atomic<std::uint32_t>*>(entry);
    }
  }
  return nullptr;
}

template <class Ask>
void expect_damage(const Ask& ask) {
  try {
    ask();
    ADD_FAILURE() << "nothing was noticed";
  } catch (const drover::WorkerLost& error) {
    EXPECT_NE(std::string(error.what()).find("wrote over the pool's shared memory"), std::string::npos) << error.what();
  }
}

/// A word that counts as final would let go of the entry while the worker still writes into it.
TEST(RunningTask, WhoseWordIsZeroedAnswersForNobodyElse) {
  const SharedCounters shared;
  drover::Pool pool({.workers = 1});
  auto held = pool.submit<hold>(shared.path(), kHeld);
  ASSERT_TRUE(drover_test::eventually(10s, [&] { return shared[0] == 1; }));
  auto* const word =
      marked_word(offsetof(drover::detail::SubmitEntry, near_arguments), sizeof(drover::detail::SubmitEntry), kHeld);
  ASSERT_NE(word, nullptr);
  *word = 0;
  expect_damage([&] { held.get(); });
  expect_damage([&] { pool.submit<hold>(shared.path(), kMark).get(); });
  shared[1] = 1;
}

TEST(RunningTask, WhoseWordIsZeroedKeepsItsEntry) {
  const SharedCounters shared;
  drover::Pool pool({.workers = 2});
  std::vector<drover::Future<double>> futures;  // the first round of the board
  for (int i = 0; i < 255; ++i) futures.push_back(pool.submit<hold>(shared.path(), kMark));
  auto held = pool.submit<hold>(shared.path(), kHeld);
  ASSERT_TRUE(drover_test::eventually(10s, [&] { return shared[0] == 1; }));
  for (auto& future : futures) EXPECT_EQ(future.get(), kMark);
  auto* const word =
      marked_word(offsetof(drover::detail::SubmitEntry, near_arguments), sizeof(drover::detail::SubmitEntry), kHeld);
  ASSERT_NE(word, nullptr);
  *word = 0;
  futures.clear();
  for (int i = 0; i < 512; ++i) futures.push_back(pool.submit<hold>(shared.path(), kMark));
  shared[1] = 1;  // the held task must not answer for any of them
  for (auto& future : futures) EXPECT_EQ(future.get(), kMark);
  expect_damage([&] { held.get(); });
}

TEST(RunningTask, WhoseWordIsZeroedEndsThePoolWhenItsFutureIsDropped) {
  const SharedCounters shared;
  drover::Pool pool({.workers = 1});
  {
    const auto held = pool.submit<hold>(shared.path(), kHeld);
    ASSERT_TRUE(drover_test::eventually(10s, [&] { return shared[0] == 1; }));
    auto* const word =
        marked_word(offsetof(drover::detail::SubmitEntry, near_arguments), sizeof(drover::detail::SubmitEntry), kHeld);
    ASSERT_NE(word, nullptr);
    *word = 0;
  }
  expect_damage([&] { pool.submit<hold>(shared.path(), kMark).get(); });
  shared[1] = 1;
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

TEST_P(AbandonedClaim, OfASubmittedTaskEndsThePool) {
  drover::Pool pool({.workers = 1});
  auto first = pool.submit<hold>(shared_.path(), 1.0);
  auto marked = pool.submit<hold>(shared_.path(), kMark);
  write_over(offsetof(drover::detail::SubmitEntry, near_arguments), sizeof(drover::detail::SubmitEntry));
  EXPECT_EQ(first.get(), 1.0);
  expect_damage([&] { marked.get(); });
}

TEST_P(AbandonedClaim, IsNoticedByShortWaitsToo) {
  drover::Pool pool({.workers = 1});
  auto first = pool.submit<hold>(shared_.path(), 1.0);
  auto marked = pool.submit<hold>(shared_.path(), kMark);
  write_over(offsetof(drover::detail::SubmitEntry, near_arguments), sizeof(drover::detail::SubmitEntry));
  expect_damage([&] {
    for (int i = 0; i < 20'000 && !marked.wait_for(1ms); ++i) {
    }
  });
}

TEST_P(AbandonedClaim, OfAMappedItemEndsThePool) {
  drover::Pool pool({.workers = 1});
  const std::vector<std::pair<std::string, double>> inputs{{shared_.path(), 1.0}, {shared_.path(), kMark}};
  auto results = pool.map<hold>(inputs, {.chunk = 1, .window = 2});
  write_over(offsetof(drover::detail::InputEntry, bytes), sizeof(drover::detail::InputEntry));
  auto at = results.begin();
  EXPECT_EQ(*at, 1.0);
  expect_damage([&] { ++at; });
}

INSTANTIATE_TEST_SUITE_P(By, AbandonedClaim, testing::Values(0U, kNever),
                         [](const auto& owner) { return owner.param == 0 ? "Nobody" : "OneThatNeverWas"; });

drover::detail::PoolHeader& header() {
  return *reinterpret_cast<drover::detail::PoolHeader*>(pool_memory(true).at(0).data());
}

enum class Word { kActiveJobs, kClosed };

int damage(Word word, int item) {
  auto& job = header().jobs[1];
  if (item != 0) return item;
  switch (word) {
    case Word::kActiveJobs:
      header().active_jobs = 0;
      break;
    case Word::kClosed:
      job.closed = 1;
      break;
  }
  return item;
}

class HeaderWord : public testing::TestWithParam<Word> {};

/// More items than the first window holds, so that some are armed after the damage.
TEST_P(HeaderWord, ThatIsWrittenOverEndsAMapInsteadOfAHang) {
  drover::Pool pool({.workers = 2});
  expect_damage([&] {
    std::vector<std::pair<Word, int>> inputs;
    for (int i = 0; i < 50'000; ++i) inputs.emplace_back(GetParam(), i);
    for (const int item : pool.map<damage>(inputs, {.ordered = false, .retries = 1})) static_cast<void>(item);
  });
}

INSTANTIATE_TEST_SUITE_P(Of, HeaderWord, testing::Values(Word::kActiveJobs, Word::kClosed));

int add_active_job(int item) {
  header().active_jobs.fetch_or(std::uint64_t{1} << (drover::detail::kMaxJobs - 1));
  return item;
}

/// Nothing was ever there: workers look at it, and go on.
TEST(ActiveJobs, OfWhichOneWasNeverOpenedHurtNobody) {
  drover::Pool pool({.workers = 2});
  EXPECT_EQ(pool.submit<add_active_job>(0).get(), 0);
  for (int i = 1; i < 100; ++i) EXPECT_EQ(pool.submit<add_active_job>(i).get(), i);
  for (const drover::WorkerStats& worker : pool.stats().workers) EXPECT_EQ(worker.restarts, 0U);
}

int move_end(int item, std::uint64_t end) {
  if (item == 0) header().file_end = end;
  return item;
}

/// The parent appends boards and large arguments: it must not put them over what is there.
TEST(FileEnd, ThatIsWrittenOverIsAnError) {
  for (const std::uint64_t end : {std::uint64_t{0}, std::uint64_t{4096}, ~std::uint64_t{0} - 4095, std::uint64_t{1}}) {
    SCOPED_TRACE(end);
    drover::Pool pool({.workers = 1});
    pool.submit<move_end>(0, end).get();
    try {
      std::vector<drover::Future<int>> futures;
      for (int i = 1; i < 2'000; ++i) futures.push_back(pool.submit<move_end>(i, end));
      ADD_FAILURE() << "nothing was noticed";
    } catch (const drover::Error& error) {
      EXPECT_NE(std::string(error.what()).find("wrote over"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
