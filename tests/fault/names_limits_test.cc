// SPDX-License-Identifier: Apache-2.0
// What a small /dev/shm does to blocks: a mount namespace with a tmpfs of 64 MB there.
#include <gtest/gtest.h>

#include <string>

#include "harness/subprocess.h"

namespace drover_test {
namespace {

Outcome run_with_small_folder(const std::string& what) {
  const std::string script = "mount -t tmpfs -o size=64m none /dev/shm && exec \"$0\" " + what + " limits";
  return run({.program = "/usr/bin/unshare", .arguments = {"-m", "/bin/sh", "-c", script, DROVER_NAMES_SCENARIO}});
}

bool can_mount() { return run_with_small_folder("make-and-drop").exit_code == 0; }

TEST(SmallFolder, RefusesALargeBlockAtOnceWithNumbers) {
  if (!can_mount()) GTEST_SKIP() << "this user cannot mount a tmpfs in a namespace of its own";
  const Outcome outcome = run_with_small_folder("too-large");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            "cannot make /dev/shm/limits: not enough memory for 800010240 bytes of shared memory: 67108864 bytes are "
            "available to this process "
            "(/dev/shm is that small: remount it with a larger size, or start the container with a larger "
            "--shm-size)\nin time\n");
}

TEST(SmallFolder, IsFilledToItsEndAndNotBeyond) {
  if (!can_mount()) GTEST_SKIP() << "this user cannot mount a tmpfs in a namespace of its own";
  const Outcome outcome = run_with_small_folder("fill");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "full\nall written\nroom again\n");
}

TEST(TruncatedBlock, PassesTheSignalOnToTheHandlerThatWasThereBefore) {
  const Outcome outcome = run({.program = DROVER_NAMES_SCENARIO, .arguments = {"truncated", "limits"}});
  EXPECT_EQ(outcome.exit_code, 77) << outcome.err;
  EXPECT_EQ(outcome.out, "earlier handler\n");
  EXPECT_EQ(
      outcome.err,
      "drover: /dev/shm/limits was truncated by another program while it was in use: this program cannot go on\n");
}

}  // namespace
}  // namespace drover_test
