// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "harness/leak_check.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  drover_test::install_leak_check();
  return RUN_ALL_TESTS();
}
