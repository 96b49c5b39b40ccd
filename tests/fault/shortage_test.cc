// SPDX-License-Identifier: Apache-2.0
// What the system refuses for a moment, or to this user, when it is wanted most.
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "drover/drover.h"
#include "fault/watchdog.h"
#include "harness/deadline.h"
#include "harness/read_all.h"
#include "pool/shared_counters.h"

namespace {

std::atomic<int> refused_watch{0};  // 1: the next epoll_ctl that adds something fails; 2: the one after it, ...
std::atomic<int> refused_write{0};  // the same for pwrite

bool is_refused(std::atomic<int>& countdown) noexcept { return countdown > 0 && --countdown == 0; }

}  // namespace

// These stand before those of the C library.
extern "C" int epoll_ctl(int epoll, int operation, int fd, epoll_event* event) noexcept {
  if (operation == EPOLL_CTL_ADD && is_refused(refused_watch)) {
    errno = ENOMEM;
    return -1;
  }
  return static_cast<int>(syscall(SYS_epoll_ctl, epoll, operation, fd, event));
}

extern "C" ssize_t pwrite(int fd, const void* data, size_t size, off_t offset) {
  if (is_refused(refused_write)) {
    errno = ENOSPC;
    return -1;
  }
  return syscall(SYS_pwrite64, fd, data, size, offset);
}

namespace drover_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
namespace fs = std::filesystem;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;  // UBSan needs descriptors itself, and ASan all of the address space
#else
constexpr bool kSanitized = false;
#endif

constexpr std::size_t kMiB = 1 << 20;

int pid_of(int) { return getpid(); }
int same(int i) { return i; }
int gated(const std::string& path) {
  counters(path)[0].fetch_add(1);
  pass_gate(counters(path)[1]);
  return getpid();
}
std::size_t length(const std::vector<char>& bytes) { return bytes.size(); }
std::vector<char> make(std::size_t size) { return std::vector<char>(size); }
void throw_text() { throw std::runtime_error(std::string(100, 'x')); }

/// A limit of this process and of the workers that it starts, for as long as this lives.
class Limit {
 public:
  Limit(int resource, std::uint64_t value) : resource_(resource) {
    getrlimit(resource_, &before_);
    const rlimit now{value, before_.rlim_max};
    setrlimit(resource_, &now);
  }
  ~Limit() { setrlimit(resource_, &before_); }
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;

 private:
  const __rlimit_resource_t resource_;
  rlimit before_{};
};

/// The lowest number that a new descriptor would get: as a limit, it means that there can be no new one.
std::uint64_t next_descriptor() {
  const int fd = dup(0);
  close(fd);
  return static_cast<std::uint64_t>(fd);
}

TEST(NoDescriptors, ADeathIsNoticedAllTheSame) {
  if (kSanitized) GTEST_SKIP();
  const Watchdog watchdog("a death without descriptors", seconds(40));
  SharedCounters shared;
  drover::Pool pool({.workers = 1, .output = drover::Output::kInherit});
  const int pid = pool.submit<pid_of>(0).get();
  auto lost = pool.submit<gated>(shared.path());
  auto items = pool.map<pid_of>(drover::range(0, 3));
  ASSERT_TRUE(eventually(seconds(10), [&] { return shared[0] == 1; }));
  {
    const Limit none(RLIMIT_NOFILE, next_descriptor());
    kill(pid, SIGKILL);
    EXPECT_TRUE(lost.wait_for(drover::Duration(10)));
  }
  EXPECT_THROW(lost.get(), drover::WorkerLost);
  for (const int other : items.collect()) EXPECT_NE(other, pid);
}

TEST(NoDescriptors, StatisticsLeaveOutWhatCannotBeRead) {
  if (kSanitized) GTEST_SKIP();
  drover::Pool pool({.workers = 1});
  const int pid = pool.submit<pid_of>(0).get();
  EXPECT_NE(pool.stats().workers[0].memory_bytes, 0U);
  const Limit none(RLIMIT_NOFILE, next_descriptor());
  const drover::PoolStats stats = pool.stats();
  EXPECT_EQ(stats.workers[0].pid, pid);
  EXPECT_EQ(stats.workers[0].memory_bytes, 0U);
}

TEST(NoDescriptors, MemoryIsSampledAgainAfterwards) {
  if (kSanitized) GTEST_SKIP();
  constexpr milliseconds kLongerThanThePeriod(1300);
  SharedCounters shared;
  drover::Pool pool({.workers = 1});
  auto lost = pool.submit<gated>(shared.path());
  ASSERT_TRUE(eventually(seconds(10), [&] { return shared[0] == 1; }));
  {
    const Limit none(RLIMIT_NOFILE, next_descriptor());
    std::this_thread::sleep_for(kLongerThanThePeriod);  // a sample falls into it
  }
  std::this_thread::sleep_for(kLongerThanThePeriod);
  kill(pool.stats().workers[0].pid, SIGKILL);
  try {
    lost.get();
    FAIL();
  } catch (const drover::WorkerLost& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("peak memory"), std::string::npos) << what;
    EXPECT_EQ(what.find("as seen 2"), std::string::npos) << what;
  }
}

/// Children of this process whose command lines begin so.
std::vector<int> children(const std::string& name_begins) {
  std::vector<int> pids;
  const std::string parent = "PPid:\t" + std::to_string(getpid()) + "\n";
  std::error_code error;
  for (fs::directory_iterator it("/proc", error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (!read_all(it->path() / "cmdline").starts_with(name_begins)) continue;  // a zombie has none
    if (read_all(it->path() / "status").find(parent) != std::string::npos) pids.push_back(std::stoi(name));
  }
  return pids;
}

TEST(NoWatch, AWorkerIsStartedOnceOrNotAtAll) {
  constexpr int kWatches = 3;  // stdout, stderr, its end
  for (int refused = 1; refused <= kWatches; ++refused) {
    SCOPED_TRACE(refused);
    drover::Pool pool({.workers = 1});
    const int pid = pool.submit<pid_of>(0).get();
    refused_watch = refused;
    kill(pid, SIGKILL);
    int now = pid;
    // The new worker may answer before all of it is watched.
    EXPECT_TRUE(eventually(seconds(10),
                           [&] {
                             try {
                               now = pool.submit<pid_of>(0).get();
                             } catch (const drover::WorkerLost&) {
                             }
                             return now != pid && refused_watch == 0 &&
                                    children("drover-worker") == std::vector<int>{now};
                           }))
        << refused_watch << " watches were not refused; workers: " << testing::PrintToString(children("drover-worker"));
  }
}

TEST(NoWatch, TheGuardianIsLookedAfterAllTheSame) {
  constexpr int kBefore = 5;  // of the service two, of the worker three
  refused_watch = kBefore + 1;
  drover::Pool pool({.workers = 1});
  ASSERT_TRUE(eventually(seconds(10), [&] { return refused_watch == 0 && children("drover-guardian").size() == 1; }));
  EXPECT_TRUE(eventually(seconds(10), [first = children("drover-guardian").at(0)] {
    const std::vector<int> now = children("drover-guardian");
    if (now.size() == 1 && now[0] == first) kill(first, SIGKILL);
    return now.size() == 1 && now[0] != first;
  }));
}

/// Memory of the pool that this process has, in blocks.
blkcnt_t memory_of_pool() {
  blkcnt_t blocks = 0;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    struct stat status {};
    const bool pool = fs::read_symlink(entry.path(), error).string().find("drover-pool") != std::string::npos;
    if (pool && stat(entry.path().c_str(), &status) == 0) blocks += status.st_blocks;
  }
  return blocks;
}

TEST(NoSpace, WhatAFailedArgumentHasTakenIsGivenBack) {
  drover::Pool pool({.workers = 1});
  const std::vector<char> argument(4 * kMiB);
  EXPECT_EQ(pool.submit<length>(argument).get(), argument.size());
  const blkcnt_t before = memory_of_pool();
  ASSERT_GT(before, 0);
  refused_write = 1;
  EXPECT_THROW(static_cast<void>(pool.submit<length>(argument)), std::system_error);
  EXPECT_EQ(refused_write, 0);
  EXPECT_EQ(memory_of_pool(), before);
}

void refuse_write(int) { refused_write = 1; }

TEST(NoSpace, WhatAFailedResultHasTakenIsGivenBack) {
  drover::Pool pool({.workers = 1});
  EXPECT_EQ(pool.submit<make>(4 * kMiB).get().size(), 4 * kMiB);
  const blkcnt_t before = memory_of_pool();
  pool.submit<refuse_write>(0).get();
  EXPECT_THROW(pool.submit<make>(4 * kMiB).get(), std::system_error);
  EXPECT_LE(memory_of_pool(), before + 64) << "the error, and no megabytes";
}

TEST(FileLimit, AValueThatIsTooLargeSpoilsNothing) {
  const Limit limit(RLIMIT_FSIZE, 40 * kMiB);
  drover::Pool pool({.workers = 1});
  for (int i = 0; i < 3; ++i) {
    EXPECT_THROW(static_cast<void>(pool.submit<length>(std::vector<char>(40 * kMiB))), std::system_error);
    EXPECT_EQ(pool.submit<length>(std::vector<char>(kMiB)).get(), kMiB);
    EXPECT_THROW(pool.submit<make>(40 * kMiB).get(), std::system_error);
    EXPECT_EQ(pool.submit<make>(kMiB).get().size(), kMiB);
  }
}

TEST(FileLimit, AMapGivesAllResultsBeforeTheInputThatIsTooMuch) {
  constexpr std::size_t kInputs = 60;
  const Limit limit(RLIMIT_FSIZE, 40 * kMiB);
  for (const bool ordered : {true, false}) {
    drover::Pool pool({.workers = 2});
    auto results =
        pool.map<length>(std::vector<std::vector<char>>(kInputs, std::vector<char>(kMiB)), {.ordered = ordered});
    std::size_t came = 0;
    auto it = results.begin();
    EXPECT_THROW(
        {
          for (; it != results.end(); ++it, ++came) EXPECT_EQ(*it, kMiB);
        },
        std::system_error);
    EXPECT_GT(came, 20U) << "each takes a megabyte of the 40";
    EXPECT_LT(came, kInputs);
    EXPECT_TRUE(results.begin() == results.end()) << "it comes once";
  }
}

TEST(FileLimit, AnErrorWithoutRoomForItsTextIsSaid) {
  const Limit limit(RLIMIT_FSIZE, 20 * kMiB);
  drover::Pool pool({.workers = 1});
  for (const std::size_t size : {kMiB, std::size_t{4096}}) {  // until not even a page is left
    bool fits = true;
    for (int i = 0; i < 10'000 && fits; ++i) {
      try {
        pool.submit<make>(size - 64).get();
      } catch (const std::exception&) {
        fits = false;
      }
    }
    ASSERT_FALSE(fits);
  }
  try {
    pool.submit<throw_text>().get();
    FAIL();
  } catch (const drover::RemoteError& error) {
    EXPECT_NE(std::string(error.what()).find("no memory for its text"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("throw_text"), std::string::npos) << error.what();
  }
  EXPECT_EQ(pool.submit<same>(3).get(), 3);
}

/// Leaves this process so much more address space.
void limit_address_space(std::size_t more) {
  std::ifstream file("/proc/self/statm");
  std::size_t pages = 0;
  file >> pages;
  const rlimit limit{pages * 4096 + more, pages * 4096 + more};
  setrlimit(RLIMIT_AS, &limit);
}

TEST(AddressLimit, AnInputThatAWorkerCannotMapIsThatItemsError) {
  if (kSanitized) GTEST_SKIP();
  constexpr std::size_t kRoom = 16 * kMiB, kLarge = 20 * kMiB;
  drover::Pool pool({.workers = 1, .initializer = drover::call<limit_address_space>(kRoom)});
  std::vector<std::size_t> sizes(12, 10);
  std::fill(sizes.begin() + 2, sizes.begin() + 7, kLarge);
  std::vector<std::vector<char>> inputs;
  for (const std::size_t size : sizes) inputs.emplace_back(size);
  auto results = pool.map<length>(inputs);
  const int pid = pool.stats().workers[0].pid;
  for (auto it = results.begin(); it != results.end(); ++it) {
    SCOPED_TRACE(it.index());
    if (sizes[it.index()] == kLarge) {
      EXPECT_THROW(static_cast<void>(*it), std::system_error);
    } else {
      EXPECT_EQ(*it, 10U);
    }
  }
  EXPECT_EQ(pool.stats().workers[0].pid, pid) << "no worker died of it";
}

}  // namespace
}  // namespace drover_test
