// SPDX-License-Identifier: Apache-2.0
// A task that forks, and lets the child come out of it; a task that closes what is not its own.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "drover/drover.h"
#include "pool/shared_counters.h"

using drover_test::counters;
using drover_test::SharedCounters;

namespace {

constexpr int kItems = 300, kForks = 50;

/// Every second fork runs no handlers, as that of a library in another language may not.
bool is_child(int i) {
  if (i % kForks != 7) return false;
  return (i % (2 * kForks) == 7 ? fork() : static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0))) == 0;
}

int number(int i) { return is_child(i) ? -1 : i; }
std::string text(int i) { return is_child(i) ? "child" : std::to_string(i); }
std::string long_text(int i) { return std::string(20'000, is_child(i) ? '-' : '+') + std::to_string(i); }
void nothing(int i) { static_cast<void>(is_child(i)); }
int failing(int i) {
  if (is_child(i)) throw std::runtime_error("the child's");
  throw std::runtime_error(std::to_string(i));
}

class TaskFork : public testing::TestWithParam<int> {
 protected:
  drover::MapOptions options() const { return {.chunk = static_cast<std::size_t>(GetParam())}; }
  drover::Pool pool_{{.workers = 2}};
};

TEST_P(TaskFork, IsNoSecondWorkerOfAMap) {
  auto numbers = pool_.map<number>(drover::range(0, kItems), options());
  int i = 0;
  for (const int value : numbers) EXPECT_EQ(value, i++);
  EXPECT_EQ(i, kItems);
  i = 0;
  for (const std::string& value : pool_.map<text>(drover::range(0, kItems), options()))
    EXPECT_EQ(value, std::to_string(i++));
  EXPECT_EQ(i, kItems);
  i = 0;
  for (const std::string& value : pool_.map<long_text>(drover::range(0, kItems), options()))
    EXPECT_EQ(value, std::string(20'000, '+') + std::to_string(i++));
  EXPECT_EQ(i, kItems);
}

TEST_P(TaskFork, CountsNoItemWithoutAValue) {
  std::size_t items = 0;
  for ([[maybe_unused]] const auto& item : pool_.map<nothing>(drover::range(0, kItems), options())) ++items;
  EXPECT_EQ(items, static_cast<std::size_t>(kItems));
}

TEST_P(TaskFork, HandsOverNoError) {
  auto results = pool_.map<failing>(drover::range(0, kItems), options());
  auto at = results.begin();
  for (int i = 0; i < kItems; ++i, ++at) {
    try {
      static_cast<void>(*at);
      ADD_FAILURE() << "item " << i << " has not failed";
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(error.what(), std::to_string(i));
    }
  }
  EXPECT_TRUE(at == results.end());
}

INSTANTIATE_TEST_SUITE_P(InChunksOf, TaskFork, testing::Values(1, 20),
                         [](const auto& chunk) { return std::to_string(chunk.param); });

TEST(SubmittedTaskFork, AnswersForNobody) {
  drover::Pool pool({.workers = 2});
  std::vector<drover::Future<int>> numbers;
  std::vector<drover::Future<std::string>> texts;
  for (int i = 0; i < kItems; ++i) {
    numbers.push_back(pool.submit<number>(i));
    texts.push_back(pool.submit<long_text>(i));
  }
  for (int i = 0; i < kItems; ++i) {
    EXPECT_EQ(numbers[static_cast<std::size_t>(i)].get(), i);
    EXPECT_EQ(texts[static_cast<std::size_t>(i)].get(), std::string(20'000, '+') + std::to_string(i));
  }
}

void forking_initializer() { static_cast<void>(is_child(7)); }

TEST(InitializerFork, IsNoSecondWorker) {
  drover::Pool pool({.workers = 2, .initializer = drover::call<forking_initializer>()});
  int i = 0;
  for (const int value : pool.map<number>(drover::range(0, kItems))) EXPECT_EQ(value, i++);
  EXPECT_EQ(i, kItems);
}

enum class Descriptors { kClosed, kReplaced };

/// Finds the descriptor of the pool's memory, as a careless loop that closes all would.
int memory_descriptor() {
  for (int fd = 3; fd < 64; ++fd) {
    char name[64] = {};
    if (readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), name, sizeof name - 1) <= 0) continue;
    if (std::string(name).find("drover-pool") != std::string::npos) return fd;
  }
  return -1;
}

int take_away(const std::string& file, Descriptors how) {
  const int memory = memory_descriptor();
  close(memory);
  if (how == Descriptors::kReplaced) {
    const int fd = open(file.c_str(), O_RDWR | O_CLOEXEC);
    if (fd != memory) dup2(fd, memory);
  }
  return getpid();
}

std::string own_pid(std::size_t length) { return std::to_string(getpid()) + std::string(length, ' '); }

class PoolMemory : public testing::TestWithParam<Descriptors> {};

TEST_P(PoolMemory, ThatATaskTookAwayEndsTheWorkerAndTouchesNoFile) {
  char path[] = "/tmp/drover-task-XXXXXX";
  const int file = mkstemp(path);
  ASSERT_EQ(write(file, "data", 4), 4);
  {
    drover::Pool pool({.workers = 1});
    const int careless = pool.submit<take_away>(std::string(path), GetParam()).get();
    try {
      static_cast<void>(pool.submit<own_pid>(std::size_t{100'000}).get());
      ADD_FAILURE() << "the result has gone somewhere";
    } catch (const drover::WorkerLost& lost) {
      EXPECT_EQ(lost.pid(), careless);
      EXPECT_NE(std::string(lost.what()).find("something in this process closes descriptors that are not its own"),
                std::string::npos)
          << lost.what();
    }
    EXPECT_NE(std::stoi(pool.submit<own_pid>(std::size_t{100'000}).get()), careless);
    const std::vector<std::size_t> lengths(20, 100'000);
    EXPECT_EQ(pool.map<own_pid>(lengths).collect().size(), lengths.size());  // the worker has met the map's memory
    const auto again = pool.submit<take_away>(std::string(path), GetParam()).get();
    std::size_t lost = 0;
    auto results = pool.map<own_pid>(lengths, {.chunk = 1});
    for (auto at = results.begin(); at != results.end(); ++at) {
      try {
        EXPECT_NE(std::stoi(*at), again);
      } catch (const drover::WorkerLost&) {
        ++lost;
      }
    }
    EXPECT_EQ(lost, 1U);
  }
  char data[8] = {};
  EXPECT_EQ(pread(file, data, sizeof data, 0), 4);
  EXPECT_STREQ(data, "data");
  close(file);
  unlink(path);
}

INSTANTIATE_TEST_SUITE_P(Descriptor, PoolMemory, testing::Values(Descriptors::kClosed, Descriptors::kReplaced),
                         [](const auto& how) { return how.param == Descriptors::kClosed ? "Closed" : "Replaced"; });

}  // namespace
