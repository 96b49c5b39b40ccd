// SPDX-License-Identifier: Apache-2.0
#include "drover/os/memory.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "fixture_tree.h"

namespace os = drover::os;
using drover_test::FixtureTree;

namespace {

constexpr const char* kMeminfo = "MemTotal:  100 kB\nMemFree:   20 kB\nMemAvailable:   64 kB\n";

/// The machine has 65,536 bytes; the cgroup /a/b is nested in /a.
void write_cgroups(const FixtureTree& tree, const char* outer_limit, const char* inner_limit) {
  tree.write("/proc/meminfo", kMeminfo);
  tree.write("/proc/self/cgroup", "0::/a/b\n");
  tree.write("/proc/self/mountinfo", "30 23 0:26 / /cg rw - cgroup2 cgroup2 rw\n");
  tree.write("/cg/a/memory.max", outer_limit);
  tree.write("/cg/a/memory.current", "9000\n");
  tree.write("/cg/a/b/memory.max", inner_limit);
  tree.write("/cg/a/b/memory.current", "1000\n");
}

TEST(OomLedger, EachKillExplainsOneDeath) {
  os::OomLedger ledger;
  EXPECT_FALSE(ledger.explains(5, 5)) << "killed by hand";
  EXPECT_TRUE(ledger.explains(5, 7)) << "two at once";
  EXPECT_TRUE(ledger.explains(5, 7));
  EXPECT_FALSE(ledger.explains(5, 7));
}

TEST(OomLedger, AKillBeforeAProcessBeganDoesNotExplainItsDeath) {
  os::OomLedger ledger;
  EXPECT_FALSE(ledger.explains(6, 6)) << "the kill was another program's, before";
  EXPECT_TRUE(ledger.explains(5, 6)) << "one that lived then may have been it";
  EXPECT_TRUE(ledger.explains(6, 7));
}

TEST(OomLedger, WhatIsNotKnownExplainsNothing) {
  os::OomLedger ledger;
  EXPECT_FALSE(ledger.explains({}, 7));
  EXPECT_FALSE(ledger.explains(6, {}));
  EXPECT_FALSE(ledger.explains({}, {}));
}

}  // namespace

TEST(AvailableMemory, IsTheMachinesWithoutCgroups) {
  const FixtureTree tree;
  tree.write("/proc/meminfo", kMeminfo);
  EXPECT_EQ(os::available_memory(tree.root()).bytes, 65'536U);
  EXPECT_EQ(os::available_memory(tree.root()).cgroup, "");
}

TEST(AvailableMemory, IsBoundedByAnAncestorThatIsTighter) {
  const FixtureTree tree;
  write_cgroups(tree, "10000\n", "50000\n");
  EXPECT_EQ(os::available_memory(tree.root()).bytes, 1'000U);
  EXPECT_EQ(os::available_memory(tree.root()).cgroup, tree.root() + "/cg/a");
}

TEST(AvailableMemory, IsBoundedByTheOwnCgroup) {
  const FixtureTree tree;
  write_cgroups(tree, "max\n", "50000\n");
  EXPECT_EQ(os::available_memory(tree.root()).bytes, 49'000U);
  EXPECT_EQ(os::available_memory(tree.root()).cgroup, tree.root() + "/cg/a/b");
}

TEST(AvailableMemory, IgnoresLimitsAboveTheMachine) {
  const FixtureTree tree;
  write_cgroups(tree, "1000000000\n", "max\n");
  EXPECT_EQ(os::available_memory(tree.root()).bytes, 65'536U);
}

TEST(AvailableMemory, IsUnboundedWhenNothingIsKnown) {
  const FixtureTree tree;
  EXPECT_EQ(os::available_memory(tree.root()).bytes, UINT64_MAX);
}

TEST(AvailableMemory, OfThisMachineIsKnown) {
  EXPECT_GT(os::available_memory().bytes, 0U);
  EXPECT_LT(os::available_memory().bytes, UINT64_MAX);
}

TEST(ParseMemAvailable, FallsBackToFreeMemory) {
  EXPECT_EQ(os::parse_mem_available("MemFree: 20 kB\n"), 20'480U);
  EXPECT_FALSE(os::parse_mem_available(""));
  EXPECT_FALSE(os::parse_mem_available("MemAvailable: 18446744073709551615 kB\n"));
}

TEST(ProcessMemory, OfThisProcessGrowsWithWhatItTouches) {
  const auto before = os::process_memory(::getpid(), true);
  ASSERT_TRUE(before);
  static constexpr std::size_t kSize = 64U << 20U;
  {
    std::vector<char> block(kSize, 1);
    EXPECT_EQ(block[kSize / 2], 1);
    const auto during = os::process_memory(::getpid());
    ASSERT_TRUE(during);
    EXPECT_GT(during->rss_bytes, before->rss_bytes + kSize / 2);
  }
  const auto after = os::process_memory(::getpid());
  ASSERT_TRUE(after);
  EXPECT_GT(after->peak_rss_bytes, before->rss_bytes + kSize / 2) << "the peak stays";
  if (before->pss_bytes) {
    EXPECT_GT(*before->pss_bytes, 0U);
    EXPECT_LE(*before->pss_bytes, before->rss_bytes + (8U << 20U));
  }
  EXPECT_FALSE(after->pss_bytes) << "not asked for";
}

TEST(ProcessMemory, IsNothingForAZombieAndForNobody) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(0);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(os::process_memory(pid)) << "a zombie";
  ASSERT_EQ(::waitpid(pid, nullptr, 0), pid);
  EXPECT_FALSE(os::process_memory(pid));
}

TEST(ProcessMemory, ReadsProportionalSizes) {
  const FixtureTree tree;
  tree.write("/proc/7/status", "Name:\tx\nVmHWM:\t   30 kB\nVmRSS:\t   20 kB\n");
  tree.write("/proc/7/smaps_rollup", "00400000-7fff ---p 00000000 00:00 0 [rollup]\nRss: 20 kB\nPss: 5 kB\n");
  const auto memory = os::process_memory(7, true, tree.root());
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->rss_bytes, 20'480U);
  EXPECT_EQ(memory->peak_rss_bytes, 30'720U);
  EXPECT_EQ(memory->pss_bytes, 5'120U);
}

TEST(OomKills, CountsTheOwnCgroupBeforeItsSubtree) {
  const FixtureTree tree;
  write_cgroups(tree, "max\n", "max\n");
  EXPECT_FALSE(os::oom_kills(tree.root()));
  tree.write("/cg/a/b/memory.events", "oom_kill 5\n");
  EXPECT_EQ(os::oom_kills(tree.root()), 5U);
  tree.write("/cg/a/b/memory.events.local", "oom_kill 2\n");
  EXPECT_EQ(os::oom_kills(tree.root()), 2U);
}

TEST(MemoryParsers, SurviveAnything) {
  drover_test::fuzz(kMeminfo, [](std::string_view text) { os::parse_mem_available(text); });
  drover_test::fuzz("Name:\tx\nVmHWM:\t   30 kB\nVmRSS:\t   20 kB\n", [](std::string_view text) {
    const auto memory = os::parse_process_status(text);
    EXPECT_TRUE(!memory || memory->peak_rss_bytes >= memory->rss_bytes);
  });
}
