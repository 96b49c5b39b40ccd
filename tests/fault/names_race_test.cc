// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "drover/base/errors.h"
#include "drover/shm/block.h"
#include "harness/deadline.h"
#include "harness/read_all.h"
#include "harness/subprocess.h"

namespace drover_test {
namespace {

using namespace std::chrono_literals;
using drover::shm::Access;
using drover::shm::Block;

std::string test_name() { return std::string("races-") + std::to_string(getpid()); }

/// What the name means, as whoever opens it finds it: 1 whole, 0 none. Anything else is an exception.
int look(const std::string& name) {
  try {
    const auto block = Block::open(name, Access::kReadOnly);
    EXPECT_EQ(block->size(), 8000u);
    return 1;
  } catch (const drover::Incompatible&) {
    throw;
  } catch (const drover::Error&) {
    return 0;
  }
}

TEST(NameRaces, OneOfSeveralCreatorsWins) {
  constexpr int kThreads = 4, kRounds = 500;
  const auto keep = Block::create(test_name() + "-keep", {.descr = "<f8", .shape = {1}}, "keeps the guardian");
  for (int round = 0; round < kRounds; ++round) {
    std::atomic<int> ready{0}, won{0}, lost{0};
    std::vector<std::shared_ptr<Block>> blocks(kThreads);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        ++ready;
        while (ready != kThreads) std::this_thread::yield();
        try {
          blocks[t] = Block::create(test_name(), {.descr = "<f8", .shape = {1000}}, "race");
          ++won;
        } catch (const drover::Error&) {
          ++lost;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(won, 1);
    ASSERT_EQ(lost, kThreads - 1);
    ASSERT_EQ(look(test_name()), 1);
    blocks.clear();
    ASSERT_EQ(look(test_name()), 0);
  }
}

TEST(NameRaces, OneOfTwoProcessesWins) {
  Subprocess other({.program = DROVER_NAMES_SCENARIO, .arguments = {"churn", test_name()}});
  ASSERT_TRUE(other.wait_for_output("begin\n"));
  const auto keep = Block::create(test_name() + "-keep", {.descr = "<f8", .shape = {1}}, "keeps the guardian");
  int won = 0, lost = 0;
  for (int round = 0; round < 3000; ++round) {
    try {
      const auto block = Block::create(test_name(), {.descr = "<f8", .shape = {1000}}, "race");
      block->data()[0] = std::byte{'m'};
      const auto same = Block::open(test_name(), Access::kReadOnly);
      ASSERT_EQ(same->data()[0], std::byte{'m'}) << "the name means the other's block";
      ++won;
    } catch (const drover::Error&) {
      ++lost;
    }
  }
  std::printf("won %d, lost %d\n", won, lost);
  EXPECT_GT(won, 0);
  EXPECT_GT(lost, 0);
  other.send(SIGKILL);
  other.finish();
  EXPECT_TRUE(eventually(1s, [] { return look(test_name()) == 0 && look(test_name() + "-churn") == 0; }));
}

TEST(NameRaces, WhoAttachesWhileTheOwnerUnlinksGetsAWholeBlockOrNone) {
  Subprocess owner({.program = DROVER_NAMES_SCENARIO, .arguments = {"churn", test_name()}});
  ASSERT_TRUE(owner.wait_for_output("begin\n"));
  int whole = 0, none = 0;
  const auto end = std::chrono::steady_clock::now() + 3s;
  while (std::chrono::steady_clock::now() < end) (look(test_name()) == 1 ? whole : none) += 1;
  std::printf("whole %d, none %d\n", whole, none);
  EXPECT_GT(whole, 0);
  EXPECT_GT(none, 0);
  owner.send(SIGKILL);
  owner.finish();
  EXPECT_TRUE(eventually(1s, [] { return look(test_name()) == 0 && look(test_name() + "-churn") == 0; }));
}

/// Kills whatever guardian `owner` has, again and again, until it is destroyed.
class GuardianKiller {
 public:
  explicit GuardianKiller(pid_t owner) : thread_([this, owner] { run(owner); }) {}
  ~GuardianKiller() {
    stop_ = true;
    thread_.join();
  }
  int killed() const { return killed_; }

 private:
  void run(pid_t owner) {
    const std::string list = "/proc/" + std::to_string(owner) + "/task/" + std::to_string(owner) + "/children";
    while (!stop_) {
      const std::string children = read_all(list);  // of the first thread; it starts all guardians here
      const pid_t pid = std::atoi(children.c_str());
      if (pid > 0 && kill(pid, SIGKILL) == 0) ++killed_;
      std::this_thread::yield();
    }
  }
  std::atomic<bool> stop_ = false;
  std::atomic<int> killed_ = 0;
  std::thread thread_;
};

TEST(NameRaces, GuardiansThatAreKilledAtAnyMomentAreReplaced) {
  int rounds = 0;
  {
    const GuardianKiller killer(getpid());
    const auto keep = Block::create(test_name() + "-keep", {.descr = "<f8", .shape = {1}}, "keeps the guardian");
    for (; rounds < 100 || killer.killed() < 20; ++rounds) {
      const auto block = Block::create(test_name(), {.descr = "<f8", .shape = {1000}}, "race");
      ASSERT_EQ(look(test_name()), 1);
      ASSERT_LT(rounds, 100'000);
    }
    std::printf("%d guardians killed in %d rounds\n", killer.killed(), rounds);
  }
  EXPECT_EQ(look(test_name()), 0);
  EXPECT_EQ(look(test_name() + "-keep"), 0);
}

TEST(NameRaces, TenThousandBlocksAreGoneWhenTheirOwnerIsKilled) {
  const auto count = [] {
    std::size_t found = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
      found += entry.path().filename().string().starts_with(test_name());
    }
    return found;
  };
  Subprocess owner({.program = DROVER_NAMES_SCENARIO, .arguments = {"many", test_name()}});
  ASSERT_TRUE(owner.wait_for_output("made\n"));
  EXPECT_EQ(count(), 10'000u);
  owner.send(SIGKILL);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(eventually(10s, [&] { return count() == 0; }));
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
  std::printf("10,000 names gone after %.0f ms\n", time.count());
  EXPECT_LT(time.count(), 1000);
}

}  // namespace
}  // namespace drover_test
