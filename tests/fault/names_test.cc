// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "drover/base/errors.h"
#include "drover/pool/pool.h"
#include "drover/shm/block.h"
#include "drover/shm/block_list.h"
#include "drover/sync/mutex.h"
#include "harness/deadline.h"
#include "harness/read_all.h"
#include "harness/subprocess.h"

namespace drover_test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using drover::shm::Access;
using drover::shm::Block;

constexpr double kLimitMs = 1000;

std::string test_name() { return std::string("names-") + std::to_string(getpid()); }

Command names(const std::string& what, const std::string& name = test_name()) {
  return {.program = DROVER_NAMES_SCENARIO, .arguments = {what, name}};
}

/// What blocks of the tests have left in the folder, hidden links too.
std::vector<std::string> names_left() {
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator("/dev/shm")) {
    const std::string name = entry.path().filename();
    if (name.starts_with("names-") || name.starts_with(".drover-")) left.push_back(name);
  }
  return left;
}

/// Guardians whose parent is `owner`; of all owners for 0. One that has just been started has no command line yet.
std::vector<pid_t> guardians(pid_t owner = 0) {
  std::vector<pid_t> found;
  std::error_code error;
  for (fs::directory_iterator it("/proc", error), end; !error && it != end; it.increment(error)) {
    const std::string pid = it->path().filename();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    if (!read_all(it->path() / "cmdline").starts_with("drover-guardian")) continue;
    const std::string parent = "PPid:\t" + std::to_string(owner) + "\n";
    if (owner == 0 || read_all(it->path() / "status").find(parent) != std::string::npos)
      found.push_back(std::stoi(pid));
  }
  return found;
}

double expect_nothing_left() {
  const auto begin = std::chrono::steady_clock::now();
  const bool clean = eventually(10s, [] { return names_left().empty() && guardians().empty(); });
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
  EXPECT_TRUE(clean) << (names_left().empty() ? "a guardian" : names_left()[0]) << " is left";
  EXPECT_LE(time.count(), kLimitMs);
  return time.count();
}

/// Whole, or none at all: what somebody else sees at any moment.
bool whole_or_none(const std::string& name) {
  try {
    const auto block = Block::open(name, Access::kReadOnly);
    return block->size() == 8000 && block->header().shape == std::vector<std::uint64_t>{1000};
  } catch (const drover::Incompatible&) {
    return false;
  } catch (const drover::Error&) {
    return true;
  }
}

/// The same of a mutex.
bool whole_mutex_or_none(const std::string& name) {
  try {
    drover::Mutex mutex = drover::Mutex::open(name);
    return mutex.try_lock() && (mutex.unlock(), true);
  } catch (const drover::Incompatible&) {
    return false;
  } catch (const drover::Error&) {
    return true;
  }
}

/// Runs the program, killed at its points one after the other, until it needs no kill.
void enumerate(const std::string& what, bool (*check)(const std::string&) = whole_or_none) {
  double worst = 0;
  for (int point = 0;; ++point) {
    SCOPED_TRACE(what + ", killed at point " + std::to_string(point));
    Command command = names(what);
    command.environment["DROVER_FAULT"] = "names:" + std::to_string(point);
    Subprocess program(command);
    const Outcome outcome = program.finish();
    EXPECT_TRUE(check(test_name()));
    worst = std::max(worst, expect_nothing_left());
    if (outcome.signal == 0) {
      EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
      std::printf("%s: killed at %d points; all gone after %.1f ms (worst)\n", what.c_str(), point, worst);
      EXPECT_GT(point, 5);
      return;
    }
    ASSERT_EQ(outcome.signal, SIGKILL) << outcome.err;
    ASSERT_LT(point, 200);
  }
}

TEST(Names, AreGoneWhereverTheOwnerIsKilled) { enumerate("make-and-drop"); }

TEST(Names, AreGoneWhereverTheOwnerIsKilledWhileItUnlinks) { enumerate("make-and-unlink"); }

TEST(Names, OfPrimitivesAreWholeOrNotThereWhereverTheOwnerIsKilled) { enumerate("make-mutex", whole_mutex_or_none); }

TEST(Names, StayWhereverOneIsKilledThatAttaches) {
  Subprocess owner(names("hold"));
  ASSERT_TRUE(owner.wait_for_output("made\n"));
  for (int point = 0;; ++point) {
    Command command = names("open");
    command.environment["DROVER_FAULT"] = "names:" + std::to_string(point);
    const Outcome outcome = run(command);
    const auto block = Block::open(test_name(), Access::kReadOnly);
    EXPECT_EQ(block->data()[7999], std::byte{'x'});
    if (outcome.signal == 0) {
      EXPECT_EQ(outcome.out, "x\n") << outcome.err;
      EXPECT_GT(point, 1);
      break;
    }
  }
  owner.send(SIGKILL);
  expect_nothing_left();
}

TEST(Names, AreGoneHoweverTheOwnerEnds) {
  for (const char* const what : {"exit", "return", "_exit", "abort", "static"}) {
    SCOPED_TRACE(what);
    const Outcome outcome = run(names(what));
    EXPECT_EQ(outcome.out, "made\n") << outcome.err;
    std::printf("%s: all gone after %.1f ms\n", what, expect_nothing_left());
  }
}

TEST(Names, AreGoneWhenTheOwnerBecomesAnotherProgram) {
  Subprocess program(names("exec"));
  ASSERT_TRUE(program.wait_for_output("made\n"));
  expect_nothing_left();
  program.send(SIGKILL);
}

TEST(Names, AreNotOwnedByAForkThatEnds) {
  Subprocess program(names("fork-that-ends"));
  ASSERT_TRUE(program.wait_for_output("still there\n"));
  program.send(SIGKILL);
  expect_nothing_left();
}

TEST(Names, AreNotKeptByAForkThatStays) {
  Subprocess program(names("fork-that-stays"));
  ASSERT_TRUE(program.wait_for_output("made\n"));
  ASSERT_TRUE(eventually(5s, [] { return fs::exists("/dev/shm/" + test_name() + "-of-fork"); }));
  program.send(SIGKILL);
  EXPECT_TRUE(eventually(1s, [] { return !fs::exists("/dev/shm/" + test_name()); }));
  EXPECT_TRUE(fs::exists("/dev/shm/" + test_name() + "-of-fork"));  // the fork has a guardian of its own
  kill(-program.pid(), SIGKILL);
  program.finish();
  expect_nothing_left();
}

TEST(Names, AreKeptByAnotherGuardianWhenOneIsKilled) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  Command command{.program = "/bin/sh",
                  .arguments = {"-c", "exec \"$0\" hold-two " + test_name() + " <&" + std::to_string(ends[0]),
                                DROVER_NAMES_SCENARIO}};
  fcntl(ends[0], F_SETFD, 0);
  Subprocess owner(command);
  close(ends[0]);
  ASSERT_TRUE(owner.wait_for_output("made\n"));
  ASSERT_TRUE(eventually(5s, [&] { return guardians(owner.pid()).size() == 1; }));
  const pid_t first = guardians(owner.pid())[0];
  kill(first, SIGKILL);
  const std::string stat = "/proc/" + std::to_string(first) + "/stat";
  ASSERT_TRUE(eventually(5s, [&] { return read_all(stat).find(") Z") != std::string::npos; }));
  close(ends[1]);
  ASSERT_TRUE(owner.wait_for_output("made\nmade\n"));
  EXPECT_TRUE(eventually(5s, [&] { return guardians(owner.pid()).size() == 1; }));
  EXPECT_EQ(names_left().size(), 4u);
  owner.send(SIGKILL);
  expect_nothing_left();
  EXPECT_EQ(owner.finish().err, "");
}

TEST(Names, ThatAGuardianCouldNotRemoveAreFoundAndRemoved) {
  Subprocess owner(names("hold"));
  ASSERT_TRUE(owner.wait_for_output("made\n"));
  const auto mine = Block::create(test_name() + "-mine", {.descr = "<f8", .shape = {1}}, "mine");
  const auto clean = [] {
    std::size_t removed = 0;
    for (const auto& block : drover::shm::list_blocks()) removed += drover::shm::remove_if_orphaned(block);
    return removed;
  };
  EXPECT_EQ(clean(), 0u);  // all owners live
  ASSERT_TRUE(eventually(5s, [&] { return guardians(owner.pid()).size() == 1; }));
  for (const pid_t guardian : guardians(owner.pid())) kill(guardian, SIGKILL);
  owner.send(SIGKILL);
  owner.finish();
  EXPECT_EQ(names_left().size(), 4u);
  try {
    Block::create(test_name(), {.descr = "<f8", .shape = {1}}, "x");
    ADD_FAILURE() << "the name is not taken";
  } catch (const drover::Error& error) {
    EXPECT_NE(std::string(error.what()).find("drover status --clean"), std::string::npos) << error.what();
  }
  EXPECT_EQ(clean(), 2u);
  EXPECT_EQ(names_left().size(), 2u);
  EXPECT_EQ(clean(), 0u);
}

/// Reaps what the program has left to this process. True when one of them was killed.
bool an_orphan_was_killed() {
  bool killed = false;
  int status = 0;
  for (pid_t pid = 0; (pid = waitpid(-1, &status, 0)) > 0 || errno == EINTR;) {
    killed = killed || (pid > 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  }
  return killed;
}

/// One that dies together with its owner leaves names, but none that could not be found; while the owner lives it takes
/// none.
TEST(Names, AreFoundWhereverTheGuardianIsKilled) {
  ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  bool killed = true;
  int point = 0;
  for (; killed && point < 100; ++point) {
    SCOPED_TRACE("killed at point " + std::to_string(point));
    Command command = names("hold-both");
    command.environment["DROVER_FAULT"] = "guardian:" + std::to_string(point);
    {
      Subprocess owner(command);
      ASSERT_TRUE(owner.wait_for_output("made\n"));
      const fs::path removed = "/dev/shm/" + test_name();
      fs::remove(removed);  // so that the guardian has something to do
      EXPECT_TRUE(eventually(5s, [&] { return fs::exists(removed) || guardians(owner.pid()).empty(); }));
      EXPECT_EQ(run(names("open", test_name() + "-second")).out, "x\n") << "the other is there";
      owner.send(SIGKILL);
      owner.finish();
    }
    killed = an_orphan_was_killed();
    EXPECT_TRUE(killed || names_left().empty());
    for (const auto& block : drover::shm::list_blocks()) drover::shm::remove_if_orphaned(block);
    EXPECT_EQ(names_left(), std::vector<std::string>());
  }
  prctl(PR_SET_CHILD_SUBREAPER, 0);
  std::printf("killed at %d points\n", point - 1);
  EXPECT_FALSE(killed);
  EXPECT_GT(point, 6);
}

TEST(Names, ComeBackWhenPythonsTrackerRemovesThem) {
  const auto block = Block::create(test_name(), {.descr = "<f8", .shape = {1000}}, "x");
  for (int round = 0; round < 3; ++round) {
    const Outcome outcome =
        run({.program = "/usr/bin/python3",
             .arguments = {"-c", "from multiprocessing.shared_memory import SharedMemory\ns = SharedMemory('" +
                                     test_name() + "')\ns.buf[4096 + 10] += 1\ns.close()"}});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;  // the tracker holds stderr open: it has ended too
    EXPECT_TRUE(eventually(1s, [&] { return fs::exists(block->path()); })) << outcome.err;
    const auto again = run(names("open"));
    EXPECT_EQ(again.exit_code, 0) << again.err;
  }
  EXPECT_EQ(block->data()[10], std::byte{3});
  block->unlink();
  EXPECT_FALSE(eventually(50ms, [&] { return fs::exists(block->path()); }));
}

void nothing() {}

TEST(Names, ShareTheGuardianOfAPool) {
  drover::Pool pool({.workers = 1});
  pool.submit<nothing>().get();
  pid_t first = 0;
  const auto there_is_one_but = [&](pid_t other) {
    const std::vector<pid_t> now = guardians(getpid());  // once: it may end at any moment
    if (now.size() != 1 || now[0] == other) return false;
    first = now[0];
    return true;
  };
  ASSERT_TRUE(eventually(5s, [&] { return there_is_one_but(0); }));
  const auto block = Block::create(test_name(), {.descr = "<f8", .shape = {1000}}, "x");
  EXPECT_EQ(guardians(getpid()), std::vector{first});
  kill(first, SIGKILL);  // the service thread sees it and starts another
  EXPECT_TRUE(eventually(5s, [&] { return there_is_one_but(first); }));
  fs::remove(block->path());
  EXPECT_TRUE(eventually(1s, [&] { return fs::exists(block->path()); }));  // the new one knows the name
}

TEST(Names, AreBackSoonWhenAnotherProgramRemovesThem) {
  const auto block = Block::create(test_name(), {.descr = "<f8", .shape = {1000}}, "x");
  std::vector<double> times;
  for (int i = 0; i < 100; ++i) {
    fs::remove(block->path());
    const auto begin = std::chrono::steady_clock::now();
    while (!fs::exists(block->path()) && std::chrono::steady_clock::now() < begin + 5s) std::this_thread::yield();
    times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
  }
  std::sort(times.begin(), times.end());
  std::printf("back after %.0f us (median), %.0f us (worst)\n", times[50], times.back());
  EXPECT_LT(times.back(), 1e6);
}

TEST(Names, ThatOthersRemoveOrReplaceAreDealtWith) {
  auto block = Block::create(test_name(), {.descr = "<f8", .shape = {1000}}, "x");
  const std::string path = block->path();
  for (int i = 0; i < 200; ++i) {  // the guardian works beside us; in the end all is in order
    fs::remove(path);
    if (i % 2 == 0) std::this_thread::yield();
  }
  EXPECT_TRUE(eventually(1s, [&] { return fs::exists(path); }));
  const std::string other = "/dev/shm/" + test_name() + "-other";
  fclose(fopen(other.c_str(), "w"));
  fs::rename(other, path);  // somebody else's file has the name now
  block.reset();
  EXPECT_TRUE(fs::exists(path)) << "a file of somebody else's was removed";
  fs::remove(path);
  expect_nothing_left();
}

}  // namespace
}  // namespace drover_test
