// SPDX-License-Identifier: Apache-2.0
#include "drover/worker/init.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "drover/drover.h"
#include "harness/deadline.h"
#include "harness/leak_check.h"
#include "harness/subprocess.h"

using namespace std::chrono_literals;

namespace {

bool in_worker_before_main() { return std::getenv("DROVER_CHILD") != nullptr; }

int square(int x) { return x * x; }
bool hidden_variable_is_here() { return in_worker_before_main(); }
/// Starts this program as any program may be started: it must not think that it is a worker.
int start_own_program(const std::string& program) {
  const int status = std::system((program + " --probe plain").c_str());  // NOLINT(concurrency-mt-unsafe)
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
std::uint64_t descriptor_limit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}
int noisy(int x) {
  std::cout << "the worker speaks on stdout " << std::string(500, 'o') << std::endl;
  std::cerr << "the worker speaks on stderr " << std::string(500, 'e') << std::endl;
  return x;
}

int use_a_pool(int rounds, bool loud = false) {
  drover::Pool pool({.workers = 2});
  std::vector<int> inputs;
  for (int i = 0; i < rounds; ++i) inputs.push_back(i);
  int sum = 0;
  for (const int value : pool.map<square>(inputs)) sum += value;
  if (loud) {
    for (const int value : pool.map<noisy>(inputs)) sum += value;
  }
  return sum;
}

int probe(const std::string& mode, const std::string& argument) {
  try {
    if (mode == "plain") return 17;
    if (mode == "limit") return descriptor_limit() >= 2000 ? 0 : 1;
    if (mode == "pool") return use_a_pool(4) == 14 ? 0 : 1;
    if (mode == "replaced") {  // deleted, and another file put in its place
      std::filesystem::remove(argument);
      if (use_a_pool(4) != 14) return 1;
      std::ofstream(argument) << "#!/bin/sh\nexit 1\n";
      std::filesystem::permissions(argument, std::filesystem::perms::owner_all);
      drover::Process process = drover::spawn<square>(4);
      process.join();
      return use_a_pool(4) == 14 && process.exit_status()->code == 16 ? 0 : 1;
    }
    if (mode == "streams") {
      for (const char* const fd : {"0", "1", "2"}) {
        if (std::filesystem::read_symlink(std::string("/proc/self/fd/") + fd) != "/dev/null") return 1;
      }
      return 0;
    }
    if (mode == "closed") {
      for (int fd = 0; fd < 3; ++fd) close(fd);
      const int sum = use_a_pool(100, true);
      std::ofstream(argument) << sum << std::flush;
      return sum == 328'350 + 4950 ? 0 : 1;
    }
  } catch (const std::exception& error) {
    std::cout << error.what() << std::endl;
    return 3;
  }
  return 9;
}

std::string this_program() { return std::filesystem::read_symlink("/proc/self/exe"); }

/// A folder that is gone at the end of the test.
struct Folder {
  Folder() : path(std::filesystem::path(testing::TempDir()) / ("init-test-" + std::to_string(getpid()))) {
    std::filesystem::create_directory(path);
  }
  ~Folder() {
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    std::filesystem::remove_all(path);
  }
  std::filesystem::path path;
};

TEST(Init, RemovesTheHiddenVariableBeforeAnythingOfTheUserRuns) {
  drover::Pool pool({.workers = 1});
  EXPECT_FALSE(pool.submit<hidden_variable_is_here>().get());
}

TEST(Init, AWorkersOwnChildIsNoWorker) {
  drover::Pool pool({.workers = 1});
  EXPECT_EQ(pool.submit<start_own_program>(this_program()).get(), 17);
}

TEST(Init, AMalformedHiddenVariableIsRefused) {
  for (const char* text : {"", "x", "1:2", "1:2:3:4", "999999:0:1:1"}) {
    const auto outcome = drover_test::run(
        {.program = this_program(), .arguments = {"--probe", "plain"}, .environment = {{"DROVER_CHILD", text}}});
    EXPECT_NE(outcome.exit_code, 17) << "'" << text << "' must not go on into main";
    EXPECT_FALSE(outcome.timed_out);
  }
}

TEST(Init, CanBeCalledAgain) {
  drover::init(0, nullptr);
  EXPECT_TRUE(drover::initialized());
}

TEST(Init, ADeletedAndReplacedProgramStillStartsWorkers) {
  const Folder folder;
  const std::string copy = folder.path / "program";
  std::filesystem::copy_file(this_program(), copy);
  const auto outcome = drover_test::run({.program = copy, .arguments = {"--probe", "replaced", copy}});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
}

TEST(Init, UnderALoaderItSaysWhyItCannotStartWorkers) {
  const char* const loader = "/lib64/ld-linux-x86-64.so.2";
  if (!std::filesystem::exists(loader)) GTEST_SKIP() << "no " << loader;
  const auto outcome = drover_test::run({.program = loader, .arguments = {this_program(), "--probe", "pool"}});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_NE(outcome.out.find("cannot start workers"), std::string::npos) << outcome.out << outcome.err;
}

TEST(Init, AReadOnlyCurrentFolderDoesNotMatter) {
  const Folder folder;
  std::filesystem::permissions(folder.path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  const auto outcome =
      drover_test::run({.program = this_program(), .arguments = {"--probe", "pool"}, .folder = folder.path});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
}

TEST(Init, ClosedStreamsDoNotMatter) {
  const Folder folder;
  const std::string answer = folder.path / "answer";
  const auto outcome = drover_test::run({.program = this_program(), .arguments = {"--probe", "closed", answer}});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.signal << outcome.out << outcome.err;
  std::ifstream file(answer);
  std::string text;
  std::getline(file, text);
  EXPECT_EQ(text, "333300") << "nothing that workers print may land in it";
}

TEST(Init, StreamsThatWereClosedBeforeTheStartDoNotMatter) {
  const Folder folder;
  const std::string answer = folder.path / "answer";
  const std::string line = "exec '" + this_program() + "' --probe closed '" + answer + "' <&- >&- 2>&-";
  const auto outcome = drover_test::run({.program = "/bin/sh", .arguments = {"-c", line}});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.signal;
}

TEST(Init, NothingElseGetsTheNumberOfAStreamThatWasClosedBeforeTheStart) {
  const std::string line = "exec '" + this_program() + "' --probe streams <&- >&- 2>&-";
  EXPECT_EQ(drover_test::run({.program = "/bin/sh", .arguments = {"-c", line}}).exit_code, 0);
}

TEST(Init, RaisesTheSoftLimitOfDescriptors) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_max < 2000) GTEST_SKIP() << "the hard limit is " << limit.rlim_max;
  const std::string line = "ulimit -S -n 64; exec '" + this_program() + "' --probe limit";
  EXPECT_EQ(drover_test::run({.program = "/bin/sh", .arguments = {"-c", line}}).exit_code, 0);
}

}  // namespace

int main(int argc, char** argv) {
  signal(SIGINT, SIG_DFL);
  drover::init(argc, argv);
  if (argc >= 3 && std::string(argv[1]) == "--probe") return probe(argv[2], argc > 3 ? argv[3] : "");
  testing::InitGoogleTest(&argc, argv);
  drover_test::install_leak_check();
  return RUN_ALL_TESTS();
}
