// SPDX-License-Identifier: Apache-2.0
#include "drover/os/cgroup.h"

#include <gtest/gtest.h>

#include "fixture_tree.h"

namespace os = drover::os;
using drover_test::FixtureTree;

namespace {

constexpr const char* kV2Mount =
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 master:1 - cgroup2 cgroup2 rw,nsdelegate\n";
constexpr const char* kV1CpuMount =
    "33 25 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:15 - cgroup cgroup rw,cpu,cpuacct\n";
constexpr const char* kV1MemoryMount = "35 25 0:31 / /sys/fs/cgroup/memory rw shared:17 - cgroup cgroup rw,memory\n";

os::CgroupPath find(std::string_view memberships, std::string_view mounts, std::string_view controller) {
  return os::find_cgroup(os::parse_cgroup_memberships(memberships), os::parse_cgroup_mounts(mounts), controller);
}

using Directories = std::vector<std::string>;

}  // namespace

TEST(FindCgroup, Version2ListsTheOwnFolderAndEveryAncestor) {
  const auto path = find("0::/user.slice/user-1000.slice/a.scope\n", kV2Mount, "cpu");
  EXPECT_TRUE(path.unified);
  EXPECT_EQ(path.directories,
            (Directories{"/sys/fs/cgroup/user.slice/user-1000.slice/a.scope",
                         "/sys/fs/cgroup/user.slice/user-1000.slice", "/sys/fs/cgroup/user.slice", "/sys/fs/cgroup"}));
}

TEST(FindCgroup, Version1UsesTheHierarchyOfTheController) {
  const std::string mounts = std::string(kV1CpuMount) + kV1MemoryMount;
  const char* const memberships = "4:memory:/m\n3:cpu,cpuacct:/c\n1:name=systemd:/s\n";
  EXPECT_EQ(find(memberships, mounts, "cpu").directories,
            (Directories{"/sys/fs/cgroup/cpu,cpuacct/c", "/sys/fs/cgroup/cpu,cpuacct"}));
  EXPECT_EQ(find(memberships, mounts, "memory").directories,
            (Directories{"/sys/fs/cgroup/memory/m", "/sys/fs/cgroup/memory"}));
  EXPECT_FALSE(find(memberships, mounts, "cpu").unified);
}

TEST(FindCgroup, HybridTakesVersion1WhereTheKernelHasTheControllerThere) {
  const std::string mounts = std::string(kV1CpuMount) + "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
  const char* const memberships = "3:cpu,cpuacct:/c\n0::/u\n";
  EXPECT_FALSE(find(memberships, mounts, "cpu").unified);
  const auto memory = find(memberships, mounts, "memory");
  EXPECT_TRUE(memory.unified);
  EXPECT_EQ(memory.directories, (Directories{"/sys/fs/cgroup/unified/u", "/sys/fs/cgroup/unified"}));
}

TEST(FindCgroup, InAContainerThePathIsRelativeToTheRootOfTheMount) {
  const char* const mounts = "35 25 0:31 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
  EXPECT_EQ(find("4:memory:/docker/abc\n", mounts, "memory").directories, (Directories{"/sys/fs/cgroup/memory"}));
  EXPECT_EQ(find("4:memory:/docker/abc/sub\n", mounts, "memory").directories,
            (Directories{"/sys/fs/cgroup/memory/sub", "/sys/fs/cgroup/memory"}));
  EXPECT_TRUE(find("4:memory:/docker/abcd\n", mounts, "memory").directories.empty()) << "another container";
  EXPECT_TRUE(find("4:memory:/\n", mounts, "memory").directories.empty());
}

TEST(FindCgroup, TheMountThatShowsMostAncestorsIsTaken) {
  const std::string mounts = std::string("35 25 0:31 /a/b /narrow rw - cgroup2 cgroup2 rw\n") + kV2Mount +
                             "36 25 0:31 /other /other rw - cgroup2 cgroup2 rw\n";
  EXPECT_EQ(find("0::/a/b\n", mounts, "cpu").directories,
            (Directories{"/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"}));
}

TEST(FindCgroup, NeverLeavesTheMountThroughDotDot) {
  EXPECT_TRUE(find("0::/../sibling\n", kV2Mount, "cpu").directories.empty());
  EXPECT_TRUE(find("0::/..\n", kV2Mount, "cpu").directories.empty());
  const char* const outer = "30 23 0:26 /.. /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
  EXPECT_TRUE(find("0::/\n", outer, "cpu").directories.empty()) << "the own name is unknown in here";
  EXPECT_EQ(find("0::/../sibling\n", outer, "cpu").directories,
            (Directories{"/sys/fs/cgroup/sibling", "/sys/fs/cgroup"}));
}

TEST(FindCgroup, UnescapesMountPointsAndKeepsColonsInPaths) {
  const char* const mounts = "30 23 0:26 / /mnt/my\\040groups\\134x rw - cgroup2 cgroup2 rw\n";
  EXPECT_EQ(find("0::/a:b:c\n", mounts, "cpu").directories,
            (Directories{"/mnt/my groups\\x/a:b:c", "/mnt/my groups\\x"}));
}

TEST(FindCgroup, IsEmptyWhenNothingIsMountedOrListed) {
  EXPECT_TRUE(find("", kV2Mount, "cpu").directories.empty());
  EXPECT_TRUE(find("0::/a\n", "", "cpu").directories.empty());
  EXPECT_TRUE(find("3:cpu:/a\n", kV2Mount, "cpu").directories.empty());
}

TEST(ParseCpuMax, KnowsQuotasAndMax) {
  const auto quota = os::parse_cpu_max("150000 100000\n");
  ASSERT_TRUE(quota);
  EXPECT_EQ(quota->cpus(), 2U);
  EXPECT_EQ(os::parse_cpu_max("50000")->cpus(), 1U) << "the period is 100 ms unless told";
  for (const char* text : {"", "max 100000", "max", "-1 100000", "100000 0", "0 100000", "1 x", "x 1", "\n1 1"}) {
    EXPECT_FALSE(os::parse_cpu_max(text)) << text;
  }
}

TEST(ParseCfsQuota, KnowsMinusOneAsNoQuota) {
  EXPECT_EQ(os::parse_cfs_quota("400000\n", "100000\n")->cpus(), 4U);
  EXPECT_FALSE(os::parse_cfs_quota("-1\n", "100000\n"));
  EXPECT_FALSE(os::parse_cfs_quota("", ""));
  EXPECT_FALSE(os::parse_cfs_quota("100000", "0"));
}

TEST(CpuQuota, RoundsUpAndIsAtLeastOne) {
  EXPECT_EQ((os::CpuQuota{1'000, 100'000}).cpus(), 1U);
  EXPECT_EQ((os::CpuQuota{200'000, 100'000}).cpus(), 2U);
  EXPECT_EQ((os::CpuQuota{200'001, 100'000}).cpus(), 3U);
  EXPECT_GT((os::CpuQuota{UINT64_MAX, 1}).cpus(), 1'000'000U);
  EXPECT_EQ((os::CpuQuota{1, 0}).cpus(), 1U);
}

TEST(ParseMemoryLimit, KnowsBothWordsForNone) {
  EXPECT_EQ(os::parse_memory_limit("1073741824\n"), 1073741824U);
  EXPECT_EQ(os::parse_memory_limit("0\n"), 0U);
  for (const char* text : {"max\n", "9223372036854771712\n", "9223372036854710272\n", "", "-1", "1 G"}) {
    EXPECT_FALSE(os::parse_memory_limit(text)) << text;
  }
}

TEST(CgroupTree, Version2ReadsEveryAncestor) {
  const FixtureTree tree;
  tree.write("/proc/self/cgroup", "0::/outer/inner\n");
  tree.write("/proc/self/mountinfo", kV2Mount);
  tree.write("/sys/fs/cgroup/outer/inner/cpu.max", "max 100000\n");
  tree.write("/sys/fs/cgroup/outer/cpu.max", "200000 100000\n");
  tree.write("/sys/fs/cgroup/outer/inner/memory.max", "8000\n");
  tree.write("/sys/fs/cgroup/outer/inner/memory.high", "7000\n");
  tree.write("/sys/fs/cgroup/outer/inner/memory.current", "3000\n");
  tree.write("/sys/fs/cgroup/outer/inner/memory.stat", "anon 1000\ninactive_file 500\n");
  tree.write("/sys/fs/cgroup/outer/inner/memory.events", "oom 9\noom_kill 5\noom_group_kill 0\n");
  tree.write("/sys/fs/cgroup/outer/inner/memory.events.local", "oom 9\noom_kill 2\n");

  const auto quotas = os::cgroup_cpu_quotas(tree.root());
  ASSERT_EQ(quotas.size(), 1U);
  EXPECT_EQ(quotas[0].cpus(), 2U);

  const auto memory = os::cgroup_memory(tree.root());
  ASSERT_EQ(memory.size(), 3U);
  EXPECT_EQ(memory[0].directory, tree.root() + "/sys/fs/cgroup/outer/inner");
  EXPECT_EQ(memory[0].limit, 7000U) << "memory.high is the smaller";
  EXPECT_EQ(memory[0].room(), 7000U - (3000U - 500U));
  EXPECT_FALSE(memory[1].limit);
  EXPECT_FALSE(memory[1].room());

  EXPECT_EQ(os::cgroup_oom_kills(tree.root()).own, 2U);
  EXPECT_EQ(os::cgroup_oom_kills(tree.root()).subtree, 5U);
}

TEST(CgroupTree, Version1ReadsItsOwnFiles) {
  const FixtureTree tree;
  tree.write("/proc/self/cgroup", "4:memory:/job\n3:cpu,cpuacct:/job\n");
  tree.write("/proc/self/mountinfo", std::string(kV1CpuMount) + kV1MemoryMount);
  tree.write("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "250000\n");
  tree.write("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  tree.write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  tree.write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  tree.write("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "5000\n");
  tree.write("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "6000\n");
  tree.write("/sys/fs/cgroup/memory/job/memory.stat", "inactive_file 1\ntotal_inactive_file 300\n");
  tree.write("/sys/fs/cgroup/memory/job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 7\n");
  tree.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");

  ASSERT_EQ(os::cgroup_cpu_quotas(tree.root()).size(), 1U);
  EXPECT_EQ(os::cgroup_cpu_quotas(tree.root())[0].cpus(), 3U);
  const auto memory = os::cgroup_memory(tree.root());
  ASSERT_EQ(memory.size(), 2U);
  EXPECT_EQ(memory[0].room(), 0U) << "over the limit is no room, not a huge number";
  EXPECT_EQ(memory[0].reclaimable, 300U);
  EXPECT_FALSE(memory[1].limit);
  EXPECT_EQ(os::cgroup_oom_kills(tree.root()).own, 7U);
  EXPECT_FALSE(os::cgroup_oom_kills(tree.root()).subtree);
}

TEST(CgroupTree, MissingAndMalformedFilesMeanNoLimit) {
  const FixtureTree tree;
  EXPECT_TRUE(os::cgroup_cpu_quotas(tree.root()).empty());
  EXPECT_TRUE(os::cgroup_memory(tree.root()).empty());
  EXPECT_FALSE(os::cgroup_oom_kills(tree.root()).own);
  tree.write("/proc/self/cgroup", "0::/a\nnonsense\n::\n:::\n");
  tree.write("/proc/self/mountinfo", std::string("1 2 3\n- - -\n\n") + kV2Mount);
  tree.write("/sys/fs/cgroup/a/cpu.max", "lots of it\n");
  tree.write("/sys/fs/cgroup/a/memory.max", "\n");
  tree.write("/sys/fs/cgroup/a/memory.current", "many\n");
  tree.write("/sys/fs/cgroup/a/memory.events", "oom_kill\n");
  EXPECT_TRUE(os::cgroup_cpu_quotas(tree.root()).empty());
  ASSERT_EQ(os::cgroup_memory(tree.root()).size(), 2U);
  EXPECT_FALSE(os::cgroup_memory(tree.root())[0].room());
  EXPECT_FALSE(os::cgroup_oom_kills(tree.root()).subtree);
}

TEST(CgroupTree, OfThisProcessCanBeRead) {
  EXPECT_NO_THROW(os::cgroup_cpu_quotas());
  for (const os::CgroupMemory& memory : os::cgroup_memory()) {
    EXPECT_TRUE(std::filesystem::is_directory(memory.directory)) << memory.directory;
  }
}

TEST(CgroupParsers, SurviveAnything) {
  const auto mounts = os::parse_cgroup_mounts(std::string(kV2Mount) + kV1CpuMount);
  const auto memberships = os::parse_cgroup_memberships("3:cpu,cpuacct:/a/b\n0::/a/b\n");
  drover_test::fuzz("3:cpu,cpuacct:/a/b\n0::/../c d/e:f\n",
                    [&](std::string_view text) { os::find_cgroup(os::parse_cgroup_memberships(text), mounts, "cpu"); });
  drover_test::fuzz(std::string(kV2Mount) + "33 25 0:29 /a /sys/x\\040y rw shared:15 - cgroup cgroup rw,cpu\n",
                    [&](std::string_view text) { os::find_cgroup(memberships, os::parse_cgroup_mounts(text), "cpu"); });
  drover_test::fuzz("150000 100000\n", [](std::string_view text) {
    const auto quota = os::parse_cpu_max(text);
    EXPECT_TRUE(!quota || quota->cpus() >= 1U);
    os::parse_cfs_quota(text, "100000");
    os::parse_memory_limit(text);
  });
}
