// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <csignal>

#include "drover/drover.h"
#include "harness/leak_check.h"

int main(int argc, char** argv) {
  std::signal(SIGINT, SIG_DFL);  // a shell ignores it for what it starts in the background, and init keeps that
  drover::init(argc, argv);      // a worker never returns from here
  testing::InitGoogleTest(&argc, argv);
  drover_test::install_leak_check();
  return RUN_ALL_TESTS();
}
