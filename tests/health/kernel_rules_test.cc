// SPDX-License-Identifier: Apache-2.0
// R2 and R3: what is stuck in the kernel, and zombies.
#include <gtest/gtest.h>

#include <string>

#include "drover/health/rules/kernel_place.h"
#include "health/played_reports.h"
#include "os/fixture_tree.h"

namespace {

using namespace drover::health;
using namespace drover_test;

TEST(KernelPlace, WordsCountAtTheStartAlone) {
  for (const char* const name : {"nvidia_unlocked_ioctl", "uvm_va_space_destroy", "os_acquire_mutex", "_nv037165rm",
                                 "nvlink_core_poll_link", "amdgpu_fence_wait", "__drm_wait"}) {
    EXPECT_TRUE(waits_in_driver(name)) << name;
    EXPECT_FALSE(waits_in_storage(name)) << name;
  }
  for (const char* const name :
       {"nfs_wait_bit_killable", "__nfs_lookup", "rpc_wait_bit_killable", "ll_file_open", "request_wait_answer",
        "fuse_dev_read", "cxiWaitEventWait", "p9_client_rpc", "FhgfsOpsCommKit_communicate", "wait_for_response",
        "cifs_readv", "autofs_wait", "balance_dirty_pages", "blkdev_issue_flush", "nvme_wait", "io_schedule"}) {
    EXPECT_TRUE(waits_in_storage(name)) << name;
    EXPECT_FALSE(waits_in_driver(name)) << name;
  }
  for (const char* const name : {"mem_cgroup_handle_over_high", "mem_cgroup_oom_synchronize", "reclaim_throttle",
                                 "shrink_lruvec", "throttle_direct_reclaim"}) {
    EXPECT_TRUE(waits_for_memory(name)) << name;
    EXPECT_FALSE(waits_in_storage(name)) << name;
    EXPECT_FALSE(waits_in_driver(name)) << name;
  }
  for (const char* const name : {"call_rwsem_down_read_failed", "call_usermodehelper_exec", "do_poll_wait",
                                 "kernfs_read", "futex_wait_queue", "_nv", "", "kernel_clone"}) {
    EXPECT_FALSE(waits_in_storage(name)) << name;
    EXPECT_FALSE(waits_in_driver(name)) << name;
    EXPECT_FALSE(waits_for_memory(name)) << name;
    EXPECT_FALSE(rests_on_purpose('S', name)) << name;
  }
  for (const char* const name : {"__refrigerator", "do_freezer_trap", "get_signal"})
    EXPECT_TRUE(is_frozen('S', name)) << name;
  for (const char* const name : {"n_tty_read", "hrtimer_nanosleep", "do_nanosleep", "wait_woken", "do_freezer_trap"})
    EXPECT_TRUE(rests_on_purpose('S', name)) << name;
}

TEST(KernelPlace, AFreezerLeavesSomeWaitsWhereTheyAre) {
  for (const char* const name : {"futex_do_wait", "futex_wait_queue", "hrtimer_nanosleep", "do_sigtimedwait"}) {
    EXPECT_TRUE(is_frozen('D', name)) << name;
    EXPECT_FALSE(is_frozen('S', name)) << name;
  }
  for (const char* const name : {"", "kernel_clone", "nvidia_unlocked_ioctl", "io_schedule", "pipe_read"})
    EXPECT_FALSE(is_frozen('D', name)) << name;
}

TEST(Defunct, TheParentAndThoseThatInheritedTheDeviceAreNamed) {
  const Finding finding = shipped("defunct-holders-adopted", Rule::kR3);
  EXPECT_EQ(finding.confidence, Confidence::kHigh);
  EXPECT_NE(joined(finding.because).find("its parent is pid 300 (python)"), std::string::npos);
  EXPECT_NE(joined(finding.action).find("kill -TERM 4011 4012,"), std::string::npos) << joined(finding.action);
  EXPECT_NE(joined(finding.not_because).find("another user's: 5000"), std::string::npos);
}

TEST(Defunct, InitIsNotToBeEnded) {
  const Finding finding = first(play_text("window 30\ngpu 0\nproc 1 ppid=0 name=systemd uid=0\n"
                                          "proc 4000 ppid=1 state=Z\non 0 4000 vram=20\n"),
                                Rule::kR3);
  EXPECT_EQ(finding.severity, Severity::kWarning);
  EXPECT_EQ(joined(finding.action).find("kill -TERM"), std::string::npos) << joined(finding.action);
}

TEST(Defunct, WithThreadsThatLiveItsParentCanDoNothing) {
  for (const char* const name : {"defunct-leader-live-threads", "defunct-under-slurm"}) {
    const std::string action = joined(shipped(name, Rule::kR3).action);
    EXPECT_EQ(action.find("parent, pid"), std::string::npos) << action;
    EXPECT_NE(action.find("it goes when its threads end"), std::string::npos) << action;
    EXPECT_NE(action.find("cat /proc/4000/task/*/wchan"), std::string::npos) << action;
    EXPECT_NE(action.find("kill -TERM 4000,"), std::string::npos) << action;
  }
}

/// What is advised about the parent of a zombie, in a situation with more lines.
std::string advice_about_parent(const std::string& lines) {
  return joined(first(play_text("window 20\ngpu 0\n" + lines + "\non 0 4000 vram=30\n"), Rule::kR3).action);
}

TEST(Defunct, ItsParentIsEndedOnlyWhereItServesNobodyElse) {
  const std::string alone = advice_about_parent("proc 90 name=launcher\nproc 4000 ppid=90 state=Z");
  EXPECT_NE(alone.find("end the parent after asking: kill -TERM 90"), std::string::npos) << alone;
  for (const char* const lines :
       {"proc 90 name=launcher\nproc 91 ppid=90\nproc 4000 ppid=90 state=Z",
        "proc 90 name=jupyter-lab\nproc 4000 ppid=90 state=Z", "proc 90 name=zsh\nproc 4000 ppid=90 state=Z",
        "proc 90 name=trainer\non 0 90 vram=20\nproc 4000 ppid=90 state=Z"}) {
    const std::string action = advice_about_parent(lines);
    EXPECT_NE(action.find("kill -CHLD 90 asks its parent"), std::string::npos) << action;
    EXPECT_EQ(action.find("kill -TERM"), std::string::npos) << action;
  }
  for (const char* const lines : {"proc 90 name=launcher uid=0\nproc 4000 ppid=90 state=Z",
                                  "proc 90 name=launcher uid=1001\nproc 4000 ppid=90 state=Z",
                                  "proc 90 name=containerd-shim uid=0\nproc 4000 ppid=90 uid=0 state=Z",
                                  "proc 90 name=conmon\nproc 4000 ppid=90 state=Z",
                                  "proc 90 name=slurmstepd uid=0\nproc 4000 ppid=90 uid=0 state=Z",
                                  "proc 90 name=sshd\nproc 4000 ppid=90 state=Z", "proc 4000 ppid=90 state=Z"}) {
    const std::string action = advice_about_parent(lines);
    EXPECT_EQ(action.find("kill -"), std::string::npos) << action;
    EXPECT_NE(action.find("do not end it"), std::string::npos) << action;
  }
}

TEST(Kernel, BehindAZombieThatIsStuckTheThreadIsNamed) {
  const Report report = play_text(
      "window 20\ngpu 0\nproc 4000 state=Z threads=2 tasks=4000:Z,4001:D:uvm_va_space_destroy\non 0 4000 vram=30\n");
  EXPECT_EQ(first(report, Rule::kR3).severity, Severity::kWarning) << "for R2 it was seen too shortly";
  EXPECT_EQ(first(report, Rule::kR2).verdict, "");
  const Finding finding = shipped("stuck-behind-zombie", Rule::kR2);
  EXPECT_NE(joined(finding.because).find("thread 4001 was uninterruptible"), std::string::npos);
  EXPECT_NE(joined(finding.because).find("its first thread is a zombie"), std::string::npos);
  EXPECT_NE(joined(finding.action).find("gpu-reset"), std::string::npos);
}

TEST(Kernel, AResetIsAdvisedOnlyForWhatHangsInADriver) {
  for (const auto& [place, verdict] :
       {std::pair{"wchan=reclaim_throttle", "WAITS FOR MEMORY"},
        std::pair{"wchan=mem_cgroup_handle_over_high", "WAITS FOR MEMORY"},
        std::pair{"wchan=__inode_wait_for_writeback", "WAITS FOR STORAGE"}, std::pair{"", "STUCK IN KERNEL"},
        std::pair{"wchan=rwsem_down_write_slowpath", "STUCK IN KERNEL"},
        std::pair{"kill=1 wchan=pipe_read", "STUCK IN KERNEL"}}) {
    const Finding finding = first(
        play_text(std::string("window 120\ngpu 0\nproc 4000 state=D ") + place + "\non 0 4000 vram=30\n"), Rule::kR2);
    EXPECT_EQ(finding.verdict, verdict) << place;
    EXPECT_EQ(joined(finding.action).find("reset"), std::string::npos) << joined(finding.action);
  }
  EXPECT_NE(joined(shipped("stuck-in-driver", Rule::kR2).action).find("reset"), std::string::npos);
}

TEST(Kernel, KilledWhilePausedIsToldAlsoOfWhatIsOnNoGpu) {
  const Finding finding = first(
      play_text("window 60\ngpu 0\nproc 4000 name=redis-server state=D kill=1 wchan=__refrigerator\n"), Rule::kR2);
  EXPECT_EQ(finding.verdict, "KILLED WHILE PAUSED");
  EXPECT_EQ(finding.severity, Severity::kInfo);
}

TEST(Kernel, NoUnitIsStoppedForWhatIsOnNoGpu) {
  const Finding finding = first(
      play_text("window 60\ngpu 0\nproc 4000 ppid=1 kill=1 state=R cgroup=/system.slice/hub.service\n"), Rule::kR2);
  ASSERT_EQ(finding.pid, 4000);
  EXPECT_EQ(joined(finding.action).find("systemctl stop"), std::string::npos) << joined(finding.action);
  EXPECT_EQ(joined(finding.action).find("what it waits for"), std::string::npos) << "it runs: nothing is waited for";
}

TEST(Kernel, WhereThePlaceIsNotToldRootIsToLookFirst) {
  const std::string unknown = joined(shipped("stuck-place-unknown", Rule::kR2).action);
  EXPECT_LT(unknown.find("look as root first"), unknown.find("reboot")) << unknown;
  const std::string told = joined(
      first(play_text("window 120\ngpu 0\nproc 4000 state=D wchan=rwsem_down_write_slowpath\non 0 4000 vram=30\n"),
            Rule::kR2)
          .action);
  EXPECT_EQ(told.find("look as root"), std::string::npos) << told;
}

TEST(Kernel, AThreadThatIsStuckNeedsMoreThanTwoLooks) {
  const drover_test::FixtureTree folder;
  const std::string text = "gpu 0\nproc 4000 threads=2 tasks=4000:S:ep_poll,4001:D:nvidia_ioctl\non 0 4000 vram=30\n";
  const auto source = scenario_source(Scenario::parse("s", text));
  const auto look = [&](double at) {
    source->wait(Scenario::kUptime + at);
    Thresholds limits;
    limits.set("confirm=3");
    return run_inspection(*source, limits, {.window_s = 0, .interval_s = 0, .history = folder.root() + "/h"});
  };
  EXPECT_EQ(look(0).exit_code(), 0);
  EXPECT_EQ(look(300).exit_code(), 0);
  EXPECT_EQ(look(600).exit_code(), 2);
}

}  // namespace
