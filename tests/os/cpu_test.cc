// SPDX-License-Identifier: Apache-2.0
#include "drover/os/cpu.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "drover/os/cgroup.h"
#include "fixture_tree.h"

namespace os = drover::os;
using drover_test::FixtureTree;

namespace {

/// The exit code of a forked child that runs `body`; -1 when it did not exit by itself. The test has one thread.
template <class Body>
int in_child(const Body& body) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(body());
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// A cgroup of the running kernel, removed at the end; its members must be gone by then.
class RealCgroup {
 public:
  explicit RealCgroup(std::string path) : path_(std::move(path)) {
    if (::mkdir(path_.c_str(), 0755) != 0) problem_ = "mkdir " + path_ + ": " + std::strerror(errno);
  }
  ~RealCgroup() {
    if (problem_.empty()) ::rmdir(path_.c_str());
  }
  RealCgroup(const RealCgroup&) = delete;
  RealCgroup& operator=(const RealCgroup&) = delete;

  const std::string& path() const { return path_; }
  const std::string& problem() const { return problem_; }

  bool write(const char* name, std::string_view text) const {
    std::ofstream file(path_ + "/" + name);
    file << text << std::flush;
    return file.good();
  }

 private:
  std::string path_;
  std::string problem_;
};

const char* no_environment(const char* /*name*/) { return nullptr; }

}  // namespace

TEST(UsableCpus, IsTheSmallestLimit) {
  EXPECT_EQ(os::usable_cpus({.affinity = 8, .quota = {}, .slurm_cpus_per_task = {}}), 8U);
  EXPECT_EQ(os::usable_cpus({.affinity = 8, .quota = 3, .slurm_cpus_per_task = {}}), 3U);
  EXPECT_EQ(os::usable_cpus({.affinity = 8, .quota = 3, .slurm_cpus_per_task = 2}), 2U);
  EXPECT_EQ(os::usable_cpus({.affinity = 2, .quota = 64, .slurm_cpus_per_task = 32}), 2U);
}

TEST(UsableCpus, IsNeverZero) { EXPECT_EQ(os::usable_cpus({.affinity = 0, .quota = 0, .slurm_cpus_per_task = 0}), 1U); }

TEST(ReadCpuLimits, TakesTheTightestQuotaOfAllAncestors) {
  const FixtureTree tree;
  tree.write("/proc/self/cgroup", "0::/a/b/c\n");
  tree.write("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  tree.write("/sys/fs/cgroup/a/b/c/cpu.max", "800000 100000\n");
  tree.write("/sys/fs/cgroup/a/b/cpu.max", "300000 200000\n");
  tree.write("/sys/fs/cgroup/a/cpu.max", "max 100000\n");
  EXPECT_EQ(os::read_cpu_limits(tree.root(), no_environment).quota, 2U);
}

TEST(ReadCpuLimits, HasNoQuotaWithoutCgroups) {
  const FixtureTree tree;
  EXPECT_FALSE(os::read_cpu_limits(tree.root(), no_environment).quota);
}

TEST(ReadCpuLimits, BelievesSlurmOnlyWhenItSaysANumber) {
  const FixtureTree tree;
  const auto told = [&](const char* value) {
    return os::read_cpu_limits(
               tree.root(),
               [value](const char* name) { return std::string_view(name) == "SLURM_CPUS_PER_TASK" ? value : nullptr; })
        .slurm_cpus_per_task;
  };
  EXPECT_EQ(told("4"), 4U);
  for (const char* value : {"", "0", "-2", "four", "99999999999", "4x"}) EXPECT_FALSE(told(value)) << value;
  EXPECT_FALSE(told(nullptr));
}

TEST(UsableCpus, FollowsTheAffinityOfThisProcess) {
  const std::vector<std::size_t> allowed = os::allowed_cpus();
  ASSERT_FALSE(allowed.empty());
  EXPECT_LE(os::usable_cpus(), allowed.size());
  const int code = in_child([&] {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(allowed.back(), &set);
    if (::sched_setaffinity(0, sizeof(set), &set) != 0) return 100;
    return os::allowed_cpus() == std::vector{allowed.back()} ? static_cast<int>(os::usable_cpus()) : 101;
  });
  EXPECT_EQ(code, 1);
}

TEST(UsableCpus, FollowsAQuotaOfTheKernelGivenToAnAncestor) {
  if (os::allowed_cpus().size() < 2) GTEST_SKIP() << "one CPU shows no difference";
  const os::CgroupPath own = os::own_cgroup("cpu");
  if (own.directories.empty()) GTEST_SKIP() << "no cgroup with CPU control can be seen";
  const RealCgroup outer(own.directories.front() + "/drover_test_" + std::to_string(::getpid()));
  if (!outer.problem().empty()) GTEST_SKIP() << outer.problem();
  const bool limited = own.unified
                           ? outer.write("cpu.max", "100000 100000")
                           : outer.write("cpu.cfs_period_us", "100000") && outer.write("cpu.cfs_quota_us", "100000");
  if (!limited) GTEST_SKIP() << "cannot set a quota in " << outer.path();
  const RealCgroup inner(outer.path() + "/inner");
  ASSERT_EQ(inner.problem(), "");
  for (const RealCgroup* cgroup : {&outer, &inner}) {
    const int code = in_child([&] {
      if (!cgroup->write("cgroup.procs", "0")) return 100;
      return static_cast<int>(os::usable_cpus(os::read_cpu_limits({}, no_environment)));
    });
    EXPECT_EQ(code, 1) << cgroup->path();
  }
}

TEST(ParseCpuList, ReadsRangesAndSingles) {
  using List = std::vector<std::size_t>;
  EXPECT_EQ(os::parse_cpu_list("0-3,8\n"), (List{0, 1, 2, 3, 8}));
  EXPECT_EQ(os::parse_cpu_list("8,0-1,1-2"), (List{0, 1, 2, 8}));
  EXPECT_EQ(os::parse_cpu_list("5"), (List{5}));
  EXPECT_EQ(os::parse_cpu_list("\n"), (List{}));
}

TEST(ParseCpuList, RefusesNonsense) {
  for (const char* text : {",", "3-1", "a", "1-", "-1", "0,,1", "0-65536", "0-99999999999999999999", "1-2-3"}) {
    EXPECT_FALSE(os::parse_cpu_list(text)) << text;
  }
}

TEST(ParseCpuList, SurvivesAnything) {
  drover_test::fuzz("0-3,8,10-11\n", [](std::string_view text) { os::parse_cpu_list(text); });
}
