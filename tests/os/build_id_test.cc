// SPDX-License-Identifier: Apache-2.0
#include "drover/os/build_id.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "fixture_tree.h"

namespace os = drover::os;
using drover_test::FixtureTree;

namespace {

constexpr const char* kRole = "DROVER_TEST_BUILD_ID_ROLE";  // set in programs that a test below starts

/// Runs a program with this very test selected and `role` in its environment; its exit code, or -1.
int run_in_role(std::vector<std::string> command, const std::string& role) {
  const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
  command.push_back(std::string("--gtest_filter=") + test->test_suite_name() + "." + test->name());
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::setenv(kRole, role.c_str(), 1);
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, arguments[0], nullptr, nullptr, arguments.data(), environ);
  ::unsetenv(kRole);
  if (error != 0) return -1;
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string role() {
  const char* const value = std::getenv(kRole);
  return value == nullptr ? "" : value;
}

std::string own_path() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

std::vector<std::byte> note(std::uint32_t type, const std::string& name, const std::string& content) {
  const auto rounded = [](std::size_t size) { return (size + 3) / 4 * 4; };
  const std::uint32_t header[] = {static_cast<std::uint32_t>(name.size() + 1),
                                  static_cast<std::uint32_t>(content.size()), type};
  std::vector<std::byte> bytes(sizeof(header) + rounded(name.size() + 1) + rounded(content.size()));
  std::memcpy(bytes.data(), header, sizeof(header));
  std::memcpy(bytes.data() + sizeof(header), name.c_str(), name.size());
  std::memcpy(bytes.data() + sizeof(header) + rounded(name.size() + 1), content.data(), content.size());
  return bytes;
}

std::string as_text(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

constexpr const char* kMaps =
    "00400000-00401000 r--p 00000000 08:01 12345                              /usr/bin/my program\n"
    "00401000-00402000 r-xp 00001000 fe:a0 77 /x/gone (deleted)\n"
    "00500000-00501000 rw-p 00000000 00:00 0                                  [heap]\n"
    "00501000-00502000 rw-p 00000000 00:00 0 \n";

}  // namespace

TEST(LoadedModules, BeginsWithTheMainProgramAndHoldsTheLibraries) {
  const std::vector<os::Module> modules = os::loaded_modules();
  ASSERT_FALSE(modules.empty());
  const auto here = reinterpret_cast<std::uintptr_t>(&run_in_role);
  EXPECT_GE(here, modules[0].base);
  EXPECT_LT(here, modules[0].base + modules[0].size);
  EXPECT_EQ(modules[0].path, own_path());
  for (const os::Module& module : modules) EXPECT_FALSE(module.id.empty()) << module.path;
}

TEST(LoadedModules, LeavesTheVdsoOut) {
  const std::uintptr_t vdso = ::getauxval(AT_SYSINFO_EHDR);
  for (const os::Module& module : os::loaded_modules()) EXPECT_NE(module.base, vdso) << module.path;
}

TEST(LoadedModules, AreTheSameEachTime) {
  const auto first = os::loaded_modules();
  const auto second = os::loaded_modules();
  ASSERT_EQ(first.size(), second.size());
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_EQ(first[i].id, second[i].id);
}

TEST(RunsThisProgram, IsTrueForAProgramStartedByItsName) {
  std::string why;
  EXPECT_TRUE(os::runs_this_program(why)) << why;
  EXPECT_EQ(why, "");
}

TEST(RunsThisProgram, IsFalseUnderTheLoaderGivenAsACommand) {
  if (role() == "under the loader") {
    std::string why;
    EXPECT_FALSE(os::runs_this_program(why));
    EXPECT_NE(why.find("dynamic loader"), std::string::npos) << why;
    EXPECT_EQ(os::loaded_modules().at(0).path, std::getenv("DROVER_TEST_PROGRAM"));
    return;
  }
  const std::string loader = "/lib64/ld-linux-x86-64.so.2";
  if (!std::filesystem::exists(loader)) GTEST_SKIP() << "no " << loader;
  ::setenv("DROVER_TEST_PROGRAM", own_path().c_str(), 1);
  EXPECT_EQ(run_in_role({loader, own_path()}, "under the loader"), 0);
}

TEST(RunsThisProgram, StaysTrueWhenTheFileIsDeletedOrReplaced) {
  if (!role().empty()) {
    const std::string path = own_path();
    std::filesystem::remove(path);
    if (role() == "replaced") std::filesystem::copy_file("/bin/sh", path);
    std::string why;
    EXPECT_TRUE(os::runs_this_program(why)) << why;
    EXPECT_EQ(os::loaded_modules().at(0).path, path);
    return;
  }
  for (const char* what : {"deleted", "replaced"}) {
    const FixtureTree tree;
    const std::string copy = tree.root() + "/a program";
    std::filesystem::copy_file(own_path(), copy);
    EXPECT_EQ(run_in_role({copy}, what), 0) << what;
  }
}

TEST(FindMappedFile, FindsTheLineOfTheAddress) {
  const auto file = os::find_mapped_file(kMaps, 0x400fff);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->path, "/usr/bin/my program");
  EXPECT_EQ(file->device_major, 8U);
  EXPECT_EQ(file->device_minor, 1U);
  EXPECT_EQ(file->inode, 12'345U);
  EXPECT_FALSE(file->deleted);
}

TEST(FindMappedFile, KnowsDeletedFiles) {
  const auto file = os::find_mapped_file(kMaps, 0x401000);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->path, "/x/gone");
  EXPECT_TRUE(file->deleted);
  EXPECT_EQ(file->device_major, 0xfeU);
  EXPECT_EQ(file->device_minor, 0xa0U);
}

TEST(FindMappedFile, IsNothingForMemoryWithoutFile) {
  EXPECT_FALSE(os::find_mapped_file(kMaps, 0x500000));
  EXPECT_FALSE(os::find_mapped_file(kMaps, 0x501000));
  EXPECT_FALSE(os::find_mapped_file(kMaps, 0x402000));
  EXPECT_FALSE(os::find_mapped_file("", 0));
}

TEST(FindBuildId, SkipsOtherNotes) {
  auto notes = note(1, "GNU", "abi tag, 16 byte");
  const auto id = note(NT_GNU_BUILD_ID, "GNU", "identity");
  notes.insert(notes.end(), id.begin(), id.end());
  EXPECT_EQ(as_text(os::find_build_id(notes, 4)), "identity");
  EXPECT_TRUE(os::find_build_id(note(NT_GNU_BUILD_ID, "Go", "identity"), 4).empty());
  EXPECT_TRUE(os::find_build_id({}, 4).empty());
}

TEST(FindBuildId, DoesNotBelieveLengthsThatReachTooFar) {
  auto notes = note(NT_GNU_BUILD_ID, "GNU", "identity");
  notes.pop_back();
  EXPECT_TRUE(os::find_build_id(notes, 4).empty());
}

TEST(BuildIdParsers, SurviveAnything) {
  drover_test::fuzz(kMaps, [](std::string_view text) { os::find_mapped_file(text, 0x401000); });
  auto notes = note(1, "GNU", "abi");
  const auto id = note(NT_GNU_BUILD_ID, "GNU", "identity");
  notes.insert(notes.end(), id.begin(), id.end());
  drover_test::fuzz(as_text(notes), [](std::string_view text) {
    const std::vector<std::byte> copy(reinterpret_cast<const std::byte*>(text.data()),
                                      reinterpret_cast<const std::byte*>(text.data()) + text.size());
    os::find_build_id(copy, 4);
    os::find_build_id(copy, 8);
  });
}
