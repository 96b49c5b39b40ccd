// SPDX-License-Identifier: Apache-2.0
#include "drover/os/file_system.h"

#include <gtest/gtest.h>

#include <system_error>

#include "fixture_tree.h"

namespace os = drover::os;
using drover_test::FixtureTree;

TEST(ReadSmallFile, GivesTheWholeContent) {
  const FixtureTree tree;
  const std::string content(100'000, 'x');
  tree.write("/file", content);
  EXPECT_EQ(os::read_small_file(tree.root() + "/file"), content);
  tree.write("/empty", "");
  EXPECT_EQ(os::read_small_file(tree.root() + "/empty"), "");
}

TEST(ReadSmallFile, CutsAtTheLimit) {
  const FixtureTree tree;
  tree.write("/file", std::string(10'000, 'x'));
  EXPECT_EQ(os::read_small_file(tree.root() + "/file", 5'000), std::string(5'000, 'x'));
  EXPECT_EQ(os::read_small_file(tree.root() + "/file", 10'000), std::string(10'000, 'x'));
}

TEST(ReadSmallFile, SaysNothingForWhatCannotBeRead) {
  const FixtureTree tree;
  EXPECT_FALSE(os::read_small_file(tree.root() + "/missing"));
  EXPECT_FALSE(os::read_small_file(tree.root())) << "a folder";
  EXPECT_FALSE(os::read_small_file("/proc/self/stat/no_folder"));
}

TEST(ReadSmallFile, ReadsFilesOfProcWhoseSizeIsZero) {
  const auto status = os::read_small_file("/proc/self/status");
  ASSERT_TRUE(status);
  EXPECT_TRUE(os::keyed_number(*status, "VmRSS:"));
}

TEST(FreeSpace, IsKnownForAFolderAndAnErrorForNothing) {
  EXPECT_GT(os::free_space("/"), 0U);
  try {
    os::free_space("/no/such/folder");
    FAIL() << "did not throw";
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code(), std::errc::no_such_file_or_directory);
    EXPECT_NE(std::string(error.what()).find("statvfs"), std::string::npos);
  }
}

TEST(ParseNumber, TakesOneDecimalNumber) {
  EXPECT_EQ(os::parse_number("42"), 42U);
  EXPECT_EQ(os::parse_number(" 42\n"), 42U);
  EXPECT_EQ(os::parse_number("18446744073709551615"), 18446744073709551615U);
}

TEST(ParseNumber, RefusesEverythingElse) {
  for (const char* text : {"", " ", "-1", "+1", "1 2", "0x10", "max", "1.5", "18446744073709551616"}) {
    EXPECT_FALSE(os::parse_number(text)) << text;
  }
}

TEST(KeyedNumber, FindsTheWholeKeyAtTheStartOfALine) {
  const char* const text = "oom 1\nxoom_kill 2\noom_kill 3\noom_kill 4\n";
  EXPECT_EQ(os::keyed_number(text, "oom_kill"), 3U);
  EXPECT_EQ(os::keyed_number("VmRSS:\t   12 kB\n", "VmRSS:"), 12U);
  EXPECT_FALSE(os::keyed_number(text, "kill"));
  EXPECT_FALSE(os::keyed_number("oom_kill", "oom_kill"));
}

TEST(TextParsers, SurviveAnything) {
  drover_test::fuzz("a 1\nb: 22 kB\n\n", [](std::string_view text) {
    os::parse_number(text);
    os::keyed_number(text, "b:");
    std::string_view rest = text;
    while (!rest.empty()) EXPECT_LE(os::take_line(rest).size(), text.size());
    rest = text;
    while (!rest.empty()) os::take_word(rest);
  });
}
