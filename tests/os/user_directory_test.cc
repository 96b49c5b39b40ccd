// SPDX-License-Identifier: Apache-2.0
#include "drover/os/user_directory.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <semaphore>
#include <string>

namespace {

using drover::os::UserDirectory;

TEST(UserDirectory, OneThatHangsIsAskedOnceOnly) {
  struct Hanging {
    std::atomic<int> asked{0};
    std::binary_semaphore goes_on{0}, gone_on{0};
  };
  const auto hanging = std::make_shared<Hanging>();
  UserDirectory directory([hanging](std::uint32_t) -> std::string {
    ++hanging->asked;
    hanging->goes_on.acquire();
    hanging->gone_on.release();
    return "late";
  });
  for (std::uint32_t uid = 5000; uid < 5200; ++uid) EXPECT_EQ(directory.name(uid, 0.05), "");
  hanging->goes_on.release();
  hanging->gone_on.acquire();
  EXPECT_EQ(hanging->asked, 1);
}

TEST(UserDirectory, OneThatAnswersIsAskedAboutEach) {
  UserDirectory directory(
      [](std::uint32_t uid) { return uid % 2 == 0 ? "user" + std::to_string(uid) : std::string(); });
  EXPECT_EQ(directory.name(1000, 60), "user1000");
  EXPECT_EQ(directory.name(1001, 60), "") << "nobody knows it";
  EXPECT_EQ(directory.name(1002, 60), "user1002");
}

TEST(UserDirectory, TheSystemsKnowsRoot) { EXPECT_EQ(UserDirectory().name(0, 60), "root"); }

}  // namespace
