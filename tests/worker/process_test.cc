// SPDX-License-Identifier: Apache-2.0
#include "drover/worker/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "drover/base/errors.h"
#include "drover/worker/init.h"
#include "harness/deadline.h"
#include "harness/leak_check.h"
#include "harness/subprocess.h"

using namespace std::chrono_literals;
using drover_test::eventually;

namespace {

/// The parent sees it when the other end of the pipe writes or is gone. The child opens it by the parent's number.
struct Signal {
  Signal() {
    if (pipe2(fds, O_CLOEXEC) != 0) std::abort();
  }
  ~Signal() {
    close(fds[0]);
    close(fds[1]);
  }
  std::string path() const { return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(fds[1]); }
  void wait() const {
    char byte = 0;
    ASSERT_EQ(read(fds[0], &byte, 1), 1);
  }
  int fds[2];
};

void give_signal(const std::string& path) { std::ofstream(path) << "x" << std::flush; }

int twelve() { return 12; }
void nothing() {}
std::string some_text() { return "no exit code"; }
void sleep_long(const std::string& ready) {
  give_signal(ready);
  for (;;) pause();
}
void ignore_sigterm(const std::string& ready) {
  signal(SIGTERM, SIG_IGN);
  sleep_long(ready);
}
void throw_text() { throw std::runtime_error("the model is empty"); }
void throw_number() { throw 42; }
void abort_it() { abort(); }
int sum(std::string_view text, std::span<const double> values, const std::map<std::string, int>& named,
        std::optional<long> maybe, std::vector<std::string> words, std::unique_ptr<int> boxed, bool flag, char c) {
  double result = static_cast<double>(text.size()) + named.at("a") + static_cast<double>(maybe.value_or(0)) + *boxed;
  for (const double value : values) result += value;
  for (const std::string& word : words) result += static_cast<double>(word.size());
  return static_cast<int>(result) + (flag ? 1 : 0) + (c == 'c' ? 1 : 0);
}
int length_in_mebibytes(const std::string& text) { return static_cast<int>(text.size() >> 20); }
int nested(int depth) {
  if (depth == 0) return 7;
  drover::Process inner = drover::spawn<nested>(depth - 1);
  inner.join();
  return inner.exit_status()->code;
}
void nested_sleeper(const std::string& ready) {
  const drover::Process inner = drover::spawn<sleep_long>(ready);
  for (;;) pause();
}
int is_set_up() {
  const bool stdin_null = std::filesystem::read_symlink("/proc/self/fd/0") == "/dev/null";
  const bool own_group = getpgrp() == getpid();
  sigset_t mask;
  sigprocmask(SIG_SETMASK, nullptr, &mask);
  const bool nothing_blocked = !sigismember(&mask, SIGTERM) && !sigismember(&mask, SIGCHLD);
  return (stdin_null ? 1 : 0) + (own_group ? 2 : 0) + (nothing_blocked ? 4 : 0);
}

drover_test::Outcome run_probe(const std::string& mode) {
  return drover_test::run({.program = std::filesystem::read_symlink("/proc/self/exe"), .arguments = {"--probe", mode}});
}

int probe(const std::string& mode) {
  try {
    drover::Process process = mode == "throw" ? drover::spawn<throw_text>() : drover::spawn<throw_number>();
    process.join();
    return process.exit_status()->code;
  } catch (const drover::InvalidArgument& error) {
    std::cout << error.what() << std::endl;
    return 3;
  }
}

int exit_code_of(drover::Process process) {
  process.join();
  return process.exit_status()->code;
}

TEST(Process, AnIntIsTheExitCode) {
  EXPECT_EQ(exit_code_of(drover::spawn<twelve>()), 12);
  EXPECT_EQ(exit_code_of(drover::spawn<nothing>()), 0);
  EXPECT_EQ(exit_code_of(drover::spawn<some_text>()), 0);
}

TEST(Process, HasAPidAndNoStatusWhileItRuns) {
  const Signal ready;
  drover::Process process = drover::spawn<sleep_long>(ready.path());
  ready.wait();
  EXPECT_GT(process.pid(), 0);
  EXPECT_NE(process.pid(), getpid());
  EXPECT_EQ(process.exit_status(), std::nullopt);
  EXPECT_FALSE(process.join_for(0s));
  EXPECT_FALSE(process.join_for(10ms));
  process.kill();
  EXPECT_TRUE(process.join_for(10s));
  EXPECT_EQ(process.exit_status()->signal, SIGKILL);
  EXPECT_EQ(process.exit_status()->code, -1);
  process.join();
  process.kill();
  process.terminate();
}

TEST(Process, TerminateSendsSigterm) {
  const Signal ready;
  drover::Process process = drover::spawn<sleep_long>(ready.path());
  ready.wait();
  process.terminate();
  process.join();
  EXPECT_EQ(process.exit_status()->signal, SIGTERM) << process.exit_status()->describe();
}

TEST(Process, AVeryLongJoinIsAJoinForEver) {
  for (const drover::Duration wait : {drover::Duration(1e10), drover::Duration(1e300), drover::Duration::max()}) {
    const Signal ready;
    drover::Process process = drover::spawn<sleep_long>(ready.path());
    ready.wait();
    std::thread killer([&] {
      std::this_thread::sleep_for(20ms);  // either order is right; this one finds the overflow
      ::kill(process.pid(), SIGKILL);
    });
    EXPECT_TRUE(process.join_for(wait)) << wait.count();
    killer.join();
  }
}

TEST(Process, AnExceptionIsOnStderrAndTheCodeIsOne) {
  const auto text = run_probe("throw");
  EXPECT_EQ(text.exit_code, 1);
  EXPECT_NE(text.err.find("the model is empty"), std::string::npos) << text.err;
  EXPECT_NE(text.err.find("throw_text"), std::string::npos) << text.err;
  const auto number = run_probe("throw-number");
  EXPECT_EQ(number.exit_code, 1);
  EXPECT_NE(number.err.find("throw_number"), std::string::npos) << number.err;
}

TEST(Process, AnAbortIsASignal) {
  drover::Process process = drover::spawn<abort_it>();
  process.join();
  EXPECT_EQ(process.exit_status()->signal, SIGABRT);
}

TEST(Process, DroppedItIsTerminatedAndReaped) {
  const Signal ready;
  int pid = 0;
  {
    const drover::Process process = drover::spawn<sleep_long>(ready.path());
    pid = process.pid();
    ready.wait();
  }
  EXPECT_EQ(::kill(pid, 0), -1) << "gone, and no zombie";
}

TEST(Process, DroppedItIsKilledIfItIgnoresSigterm) {
  const Signal ready;
  int pid = 0;
  const auto begin = std::chrono::steady_clock::now();
  {
    const drover::Process process = drover::spawn<ignore_sigterm>(ready.path());
    pid = process.pid();
    ready.wait();
  }
  EXPECT_EQ(::kill(pid, 0), -1);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 1900ms);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
}

TEST(Process, AStoppedOneCanBeDropped) {
  const Signal ready;
  const drover::Process process = drover::spawn<sleep_long>(ready.path());
  ready.wait();
  ::kill(process.pid(), SIGSTOP);
}

TEST(Process, MovesAndTheOldOneIsEmpty) {
  const Signal one, two;
  drover::Process first = drover::spawn<sleep_long>(one.path());
  drover::Process second = drover::spawn<sleep_long>(two.path());
  one.wait();
  two.wait();
  const int pid_first = first.pid(), pid_second = second.pid();
  second = std::move(first);
  EXPECT_EQ(second.pid(), pid_first);
  EXPECT_EQ(::kill(pid_second, 0), -1) << "replaced is dropped";
  EXPECT_THROW(static_cast<void>(first.pid()), drover::InvalidArgument);  // NOLINT(bugprone-use-after-move)
  EXPECT_THROW(drover::Process().join(), drover::InvalidArgument);
}

TEST(Process, CarriesArgumentsOfManyKinds) {
  const std::vector<double> values = {1.5, 2.5};
  EXPECT_EQ(exit_code_of(drover::spawn<sum>("four", values, std::map<std::string, int>{{"a", 10}}, 5L,
                                            std::vector<std::string>{"xyz"}, std::make_unique<int>(20), true, 'c')),
            4 + 10 + 5 + 20 + 4 + 3 + 2);
  EXPECT_EQ(exit_code_of(drover::spawn<length_in_mebibytes>(std::string(20 << 20, 'x'))), 20);
}

TEST(Process, IsSetUpAsAChildShouldBe) { EXPECT_EQ(exit_code_of(drover::spawn<is_set_up>()), 7); }

TEST(Process, SpawnsProcessesOfItsOwn) { EXPECT_EQ(exit_code_of(drover::spawn<nested>(3)), 7); }

TEST(Process, ItsOwnProcessesEndWithIt) {
  const Signal ready;
  drover::Process process = drover::spawn<nested_sleeper>(ready.path());
  ready.wait();
  process.kill();
  process.join();
}

TEST(Process, ManyAtOnceFromSeveralThreads) {
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 8; ++i) good += exit_code_of(drover::spawn<twelve>()) == 12;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 24);
}

TEST(Process, WithoutInitSpawnSaysWhatToWrite) {
  const auto outcome = run_probe("no-init");
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_NE(outcome.out.find("drover::init(argc, argv)"), std::string::npos) << outcome.out;
}

}  // namespace

int main(int argc, char** argv) {
  const bool is_probe = argc == 3 && std::string(argv[1]) == "--probe";
  signal(SIGINT, SIG_DFL);
  if (!is_probe || std::string(argv[2]) != "no-init") drover::init(argc, argv);
  if (is_probe) return probe(argv[2]);
  testing::InitGoogleTest(&argc, argv);
  drover_test::install_leak_check();
  return RUN_ALL_TESTS();
}
