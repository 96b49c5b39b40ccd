// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>

#include "fault/scenario_path.h"

namespace drover_test {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

Outcome run_scenario(std::vector<std::string> arguments) {
  const Family family;
  Outcome outcome = run(scenario(std::move(arguments), family));
  EXPECT_FALSE(outcome.timed_out);
  EXPECT_TRUE(family.gone_after(seconds(5)));
  return outcome;
}

Outcome run_shell(const std::string& script) {
  const Family family;
  Outcome outcome = run({.program = "/bin/sh", .arguments = {"-c", script}, .environment = {family.variable()}});
  EXPECT_FALSE(outcome.timed_out);
  EXPECT_TRUE(family.gone_after(seconds(5)));
  return outcome;
}

void expect_error(const Outcome& outcome, const std::string& text) {
  EXPECT_EQ(outcome.exit_code, 3) << "signal " << outcome.signal << ": " << outcome.out << outcome.err;
  EXPECT_NE(outcome.out.find(text), std::string::npos) << outcome.out << outcome.err;
  std::printf("%s", outcome.out.c_str());
}

TEST(Resources, AFullDevShmIsNoObstacle) {
  const Outcome outcome = run_shell(
      "unshare -m sh -c 'mount -t tmpfs -o size=4k tmpfs /dev/shm || exit 50; head -c 10000 /dev/zero > /dev/shm/full; "
      "exec " +
      kScenario + " job map-large-results 20 2' || exit $?");
  if (outcome.exit_code == 50 || outcome.err.find("unshare") != std::string::npos) {
    GTEST_SKIP() << "no mount namespace may be made here: " << outcome.err;
  }
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  EXPECT_NE(outcome.out.find("fine"), std::string::npos) << outcome.out;
}

TEST(Resources, AReadOnlyFolderIsNoObstacle) {
  const Family family;
  Command command = scenario({"job", "map-large-results", "20", "2"}, family);
  command.folder = "/proc";
  const Outcome outcome = run(command);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
}

/// UBSan needs descriptors itself, to look whether memory can be read: without one it takes a good object for none.
constexpr bool kDescriptorsForSanitizer =
#if defined(__SANITIZE_ADDRESS__)
    true;
#else
    false;
#endif

TEST(Resources, TooFewDescriptorsAreAnError) {
  if (kDescriptorsForSanitizer) GTEST_SKIP();
  const Outcome outcome = run_scenario({"few-descriptors", "40", "20"});
  expect_error(outcome, "Too many open files");
  expect_error(outcome, "ulimit -n");
}

TEST(Resources, EveryShortageOfDescriptorsIsAnErrorOrNone) {
  if (kDescriptorsForSanitizer) GTEST_SKIP();
  for (int limit = 4; limit < 40; ++limit) {
    SCOPED_TRACE(limit);
    const Outcome outcome = run_scenario({"few-descriptors", std::to_string(limit), "2"});
    EXPECT_TRUE(outcome.exit_code == 0 || outcome.exit_code == 3)
        << outcome.exit_code << " signal " << outcome.signal << outcome.out << outcome.err;
    if (outcome.exit_code == 0) break;
  }
}

TEST(Resources, TooFewProcessesAreAnError) {
  if (getuid() != 0) GTEST_SKIP() << "needs root, to become a user with no other processes";
  if (access(kScenario.c_str(), X_OK) != 0) GTEST_SKIP();
  const Outcome outcome = run_scenario({"few-processes", "5", "20"});
  if (outcome.exit_code == 4) GTEST_SKIP() << "cannot become another user";
  expect_error(outcome, "");
}

TEST(Resources, APoolWithoutInitIsAnErrorThatSaysWhatToWrite) {
  expect_error(run_scenario({"no-init", "2"}), "drover::init(argc, argv);");
}

/// A copy of the scenario program in a folder of its own.
struct Copy {
  Copy() : folder(fs::temp_directory_path() / ("faults-" + std::to_string(getpid()))), program(folder / "program") {
    fs::create_directory(folder);
    fs::copy_file(kScenario, program);
  }
  ~Copy() { fs::remove_all(folder); }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;
  const fs::path folder, program;
};

TEST(Resources, AReplacedLibraryIsAnErrorThatSaysSo) {
  if (kDescriptorsForSanitizer) GTEST_SKIP() << "ASan's own library must be the first that is loaded";
  const Copy copy;
  const Family family;
  const fs::path library = copy.folder / "library.so", other = copy.folder / "other.so";
  fs::copy_file(DROVER_LIBRARY_1, library);
  fs::copy_file(DROVER_LIBRARY_2, other);
  Command command = scenario({"replaced-library", library, other}, family);
  command.environment["LD_PRELOAD"] = library;
  const Outcome outcome = run(command);
  expect_error(outcome, "the pool's workers cannot start");
  expect_error(outcome, "exited with code 121");
  expect_error(outcome, "its program or one of its libraries differs from its parent's");
  fs::copy_file(library, other);
  const Outcome same = run(command);
  EXPECT_EQ(same.exit_code, 0) << "with the same library: " << same.out << same.err;
}

void expect_still_works(const Outcome& outcome) {
  EXPECT_EQ(outcome.exit_code, 0) << "signal " << outcome.signal << ": " << outcome.out << outcome.err;
  EXPECT_EQ(outcome.out, "lost\nanswer 2\n");
}

TEST(Resources, AProgramWhoseFileWasDeletedReplacesItsWorkers) {
  const Copy copy;
  const Family family;
  expect_still_works(
      run({.program = copy.program, .arguments = {"vanishing", copy.program}, .environment = {family.variable()}}));
}

TEST(Resources, AProgramWhoseFileWasReplacedReplacesItsWorkers) {
  const Copy copy;
  const Family family;
  const fs::path other = copy.folder / "other";
  fs::copy_file("/bin/true", other);
  expect_still_works(run(
      {.program = copy.program, .arguments = {"vanishing", copy.program, other}, .environment = {family.variable()}}));
}

}  // namespace
}  // namespace drover_test
