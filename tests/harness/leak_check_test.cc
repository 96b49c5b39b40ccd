// SPDX-License-Identifier: Apache-2.0
#include "harness/leak_check.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include "harness/deadline.h"
#include "harness/subprocess.h"

namespace drover_test {
namespace {

using std::chrono::seconds;

bool holds(const std::vector<std::string>& entries, const std::string& text) {
  for (const std::string& entry : entries) {
    if (entry.find(text) != std::string::npos) return true;
  }
  return false;
}

TEST(LeakCheck, FindsNothingWhenNothingIsLeft) {
  const Belongings before = Belongings::now();
  EXPECT_EQ(Belongings::now().beyond(before), std::vector<std::string>{});
}

TEST(LeakCheck, FindsADescriptor) {
  const Belongings before = Belongings::now();
  const int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  EXPECT_TRUE(holds(Belongings::now().beyond(before), "-> /dev/zero"));
  close(fd);
}

TEST(LeakCheck, FindsASharedMemoryName) {
  const Belongings before = Belongings::now();
  const std::string name = "/harness-" + std::to_string(getpid());
  close(shm_open(name.c_str(), O_CREAT | O_RDWR, 0600));
  EXPECT_TRUE(holds(Belongings::now().beyond(before), name));
  shm_unlink(name.c_str());
}

TEST(LeakCheck, FindsAChild) {
  const Belongings before = Belongings::now();
  const Subprocess child({.program = "/bin/sleep", .arguments = {"60"}});
  EXPECT_TRUE(eventually(seconds(5), [&] { return holds(Belongings::now().beyond(before), "(sleep)"); }));
}

TEST(LeakCheck, FindsAnOrphanInASessionOfItsOwn) {
  const Belongings before = Belongings::now();
  const Outcome shell = run({.program = "/bin/sh", .arguments = {"-c", "setsid sleep 60 >/dev/null 2>&1 & echo $!"}});
  EXPECT_TRUE(eventually(seconds(5), [&] { return holds(Belongings::now().beyond(before), "(sleep)"); })) << shell.out;
  kill(static_cast<pid_t>(std::stoi(shell.out)), SIGKILL);
}

TEST(Subprocess, GivesOutputsAndExitCode) {
  const Outcome outcome = run({.program = "/bin/sh",
                               .arguments = {"-c", "echo $GREETING; pwd >&2; exit 3"},
                               .environment = {{"GREETING", "good day"}},
                               .folder = "/"});
  EXPECT_EQ(outcome.out, "good day\n");
  EXPECT_EQ(outcome.err, "/\n");
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(outcome.signal, 0);
  EXPECT_FALSE(outcome.timed_out);
}

TEST(Subprocess, GivesTheSignal) {
  Subprocess process({.program = "/bin/sh", .arguments = {"-c", "echo ready; exec sleep 60"}});
  ASSERT_TRUE(process.wait_for_output("ready"));
  process.send(SIGTERM);
  const Outcome outcome = process.finish();
  EXPECT_EQ(outcome.signal, SIGTERM);
  EXPECT_EQ(outcome.exit_code, -1);
}

TEST(Subprocess, KillsTheGroupOnOverrun) {
  const Outcome outcome = run({.program = "/bin/sh",
                               .arguments = {"-c", "echo start; sleep 60; true"},
                               .limit = std::chrono::milliseconds(200)});
  EXPECT_TRUE(outcome.timed_out);
  EXPECT_EQ(outcome.signal, SIGKILL);
  EXPECT_EQ(outcome.out, "start\n");
}

TEST(Subprocess, SaysWhichProgramCannotBeStarted) {
  EXPECT_THROW(run({.program = "/no/such/program"}), std::system_error);
}

}  // namespace
}  // namespace drover_test
