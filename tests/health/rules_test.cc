// SPDX-License-Identifier: Apache-2.0
#include "drover/health/rules/rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>

#include "drover/health/engine.h"
#include "drover/health/history.h"
#include "drover/health/rules/kernel_place.h"
#include "drover/health/scenario/scenario_source.h"
#include "os/fixture_tree.h"

namespace {

using namespace drover::health;

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += part + "\n";
  return text;
}

/// The first finding of a rule; an empty one when there is none.
Finding first(const Report& report, Rule rule) {
  const auto at = std::find_if(report.findings.begin(), report.findings.end(),
                               [&](const Finding& finding) { return finding.rule == rule; });
  return at == report.findings.end() ? Finding() : *at;
}

Finding shipped(const char* name, Rule rule) {
  const Scenario scenario = drover::health::demo_scenario(name);
  return first(play(scenario), rule);
}

Report play_text(const std::string& text) { return play(Scenario::parse("s", text)); }

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

TEST(Tracker, FollowsThoseOnGpusAndInTroubleAndNobodyElse) {
  const auto source = scenario_source(Scenario::parse(
      "s",
      "gpu 0\nproc 50 state=D\nproc 60 state=D wchan=nvidia_x\nproc 61 kill=1\nproc 70\nproc 4000\non 0 4000 vram=30\n"
      "at 5 proc 50 state=S"));
  Tracker tracker{Thresholds()};
  std::vector<std::set<int>> watched;
  for (const double at : {0.0, 10.0}) {
    source->wait(Scenario::kUptime + at);
    tracker.add(source->sample({}, true), false, [](int) { return true; });
    watched.push_back(tracker.watched());
  }
  EXPECT_EQ(watched[0], (std::set<int>{50, 60, 61, 4000}));
  EXPECT_EQ(watched[1], (std::set<int>{60, 61, 4000})) << "a short wait for a disk is no reason to follow it for good";
}

TEST(Tracker, OfOneThatALookLeftOutTheUseIsNotThatOfTheLastIntervalAlone) {
  const auto source = scenario_source(Scenario::parse("s", "proc 50 cpu=0.5\nproc 51 cpu=0.5"));
  Tracker tracker{Thresholds()};
  for (const double at : {0.0, 10.0, 20.0, 30.0}) {
    source->wait(Scenario::kUptime + at);
    Sample sample = source->sample({}, true);
    if (at == 10 || at == 20) sample.host.details.erase(50);
    tracker.add(sample, false, [](int) { return true; });
  }
  for (const auto& [key, track] : tracker.processes()) EXPECT_NEAR(track.cpu_share, 0.5, 0.01) << key.first;
}

TEST(Evidence, OfALockedMapNamesNoToolThatWouldHang) {
  const Report report = play_text(R"(
window 1200
gpu 0 power=70
proc 4000 ppid=1 cmd="python train.py" env="RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2" wchan=futex_wait_queue
on 0 4000 vram=30
)");
  EXPECT_NE(joined(first(report, Rule::kR5).action).find("py-spy"), std::string::npos);
  const Report locked = play_text(
      "window 900\ngpu 0 power=98 nvlink=0\nproc 4000 state=R cpu=1 io=0 locked=1\non 0 4000 vram=60 sm=100 mem=0\n");
  const Finding finding = first(locked, Rule::kR6);
  EXPECT_EQ(joined(finding.action).find("py-spy dump"), std::string::npos);
  EXPECT_EQ(joined(finding.action).find("gdb -p"), std::string::npos);
  EXPECT_NE(joined(finding.action).find("wchan"), std::string::npos);
  EXPECT_NE(joined(finding.not_because).find("locked"), std::string::npos);
}

TEST(Grade, ALookWithAHistoryIsNotCalledASingleOne) {
  const auto source =
      scenario_source(Scenario::parse("s", "gpu 0 power=62\nproc 4000 wchan=do_select\non 0 4000 vram=30\n"));
  const Thresholds limits;
  Tracker tracker(limits);
  Sample last;
  for (int minute = 0; minute <= 30; ++minute) {
    source->wait(Scenario::kUptime + 60 * minute);
    last = source->sample({}, true);
    tracker.add(last, false, [](int) { return true; });
  }
  const Sample before = last;
  const Report report = conclude(*source, limits, tracker, {.first = before, .last = last, .window_s = 0.2});
  const std::string text = joined(first(report, Rule::kR8).not_because);
  EXPECT_NE(text.find("seen for 30 min only"), std::string::npos) << text;
  EXPECT_EQ(text.find("a single look"), std::string::npos) << text;
}

TEST(Advice, OfAHangIsThatOfTheVendor) {
  for (const auto& [vendor, log] : {std::pair{"amd", "amdgpu"}, std::pair{"nvidia", "xid"}}) {
    const auto source = scenario_source(Scenario::parse("s", std::string("gpu 0 vendor=") + vendor + "\nproc 70\n"));
    Sample sample = source->sample({}, true);
    sample.driver.gpus.at(0).stuck_in = "its files";
    const Thresholds limits;
    Tracker tracker(limits);
    tracker.add(sample, false, [](int) { return true; });
    const Sample before = sample;
    const Report report = conclude(*source, limits, tracker, {.first = before, .last = sample});
    const std::string action = joined(first(report, Rule::kR1).action);
    EXPECT_NE(action.find(log), std::string::npos) << action;
    EXPECT_EQ(action.find("nvidia") != action.npos, std::string(vendor) == "nvidia") << action;
  }
}

TEST(Streak, ATimeOfWhichNothingIsKnownEndsIt) {
  Streak streak;
  for (double at = 0; at <= 50; at += 10) streak.add(at - 10, at, Holds::kYes, 1200, 3);
  const double length = streak.length();
  for (double at = 60; at <= 70; at += 10) streak.add(at - 10, at, Holds::kUnknown, 1200, 3);
  EXPECT_EQ(streak.length(), length) << "a moment neither adds nor breaks";
  streak.add(70, 80, Holds::kYes, 1200, 3);
  EXPECT_GT(streak.length(), length);
  for (double at = 90; at <= 140; at += 10) streak.add(at - 10, at, Holds::kUnknown, 1200, 3);
  EXPECT_FALSE(streak.holds());
}

TEST(Holders, OnlyThoseThatMayHoldTheMemoryAreToBeEnded) {
  const Finding finding = shipped("orphan-holders-among-services", Rule::kR4);
  EXPECT_NE(joined(finding.action).find("kill -TERM 4011 4012,"), std::string::npos) << joined(finding.action);
  const std::string others = joined(finding.not_because);
  for (const char* const name : {"70 (slurmd)", "71 (telegraf)", "72 (node-agent)", "6000 (python)", "6001"}) {
    EXPECT_NE(others.find(name), std::string::npos) << others;
    EXPECT_EQ(joined(finding.action).find(std::string(name).substr(0, std::string(name).find(' '))), std::string::npos);
  }
}

TEST(Holders, ServicesAreNotToBeEndedForALeak) {
  const Finding finding = shipped("unattributed-leak-among-services", Rule::kR9);
  EXPECT_EQ(joined(finding.action).find("kill"), std::string::npos) << joined(finding.action);
  EXPECT_NE(joined(finding.not_because).find("70 (slurmd)"), std::string::npos);
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

/// Of three looks a minute apart the threads are seen in the first and in none of the others, or the other way round.
TEST(Tracker, ThreadsThatWereNotSeenDidNotSleep) {
  for (const bool seen_at_first : {true, false}) {
    const auto source = scenario_source(Scenario::parse("s", "proc 4000 wchan=futex_wait_queue"));
    Tracker tracker{Thresholds()};
    for (int minute = 0; minute < 3; ++minute) {
      source->wait(Scenario::kUptime + 60 * minute);
      tracker.add(source->sample({}, (minute == 0) == seen_at_first), false, [](int) { return true; });
    }
    EXPECT_EQ(tracker.processes().begin()->second.blocked.length(), seen_at_first ? 0 : 120);
  }
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

TEST(Xids, WhatIsNotKnownHereIsNotAnApplications) {
  for (const char* const line : {"log=109@60", "log=158@60,31@50", "xid=143"}) {
    const Finding finding = first(play_text(std::string("window 5\ngpu 0 ") + line + "\n"), Rule::kR1);
    EXPECT_EQ(finding.severity, Severity::kInfo);
    EXPECT_EQ(finding.verdict, "XID NOT KNOWN HERE");
    EXPECT_NE(joined(finding.because).find("(not known here)"), std::string::npos);
    EXPECT_NE(joined(finding.action).find("docs.nvidia.com/deploy/xid-errors"), std::string::npos);
  }
}

TEST(Driver, ThatCannotStartForALostGpuIsAFault) {
  const Thresholds limits;
  const Tracker tracker(limits);
  Sample sample;
  sample.driver.state = DriverState::kGpuFault;
  sample.driver.problem = "a GPU is lost";
  const HolderScan holders;
  const Scene scene{sample, tracker, holders, limits, true, false, 0, [](std::uint32_t) { return "user"; }};
  const std::vector<Finding> findings = judge(scene);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings.front().rule, Rule::kR1);
  EXPECT_EQ(findings.front().severity, Severity::kCritical);
}

TEST(Memory, WithoutTheReservedFigureNoLeakIsClaimed) {
  const Finding finding = first(play_text("window 10\ngpu 0 extra=20 v1=1\nproc 100 name=bash\n"), Rule::kR9);
  EXPECT_EQ(finding.severity, Severity::kInfo);
  EXPECT_EQ(joined(finding.action).find("leak"), std::string::npos) << joined(finding.action);
  EXPECT_NE(joined(finding.because).find("the listed processes have 0 B"), std::string::npos)
      << joined(finding.because);
}

TEST(Advice, StopsNoUnitThatOthersProcessesAreIn) {
  const auto asked = [](const std::string& processes) {
    return joined(
        first(play_text("window 9000\ngpu 0 power=62\n" + processes + "on 0 4000 vram=30\n"), Rule::kR8).action);
  };
  const std::string own = asked("proc 4000 ppid=1 wchan=futex_wait_queue cgroup=/system.slice/fit.service\n");
  EXPECT_NE(own.find("systemctl stop fit.service"), std::string::npos) << own;
  const std::string users = asked(
      "proc 900 name=systemd\nproc 4000 ppid=900 "
      "cgroup=/user.slice/user-1000.slice/user@1000.service/app.slice/a.service\n");
  EXPECT_NE(users.find("systemctl --user stop a.service"), std::string::npos) << users;
  const std::string crons = asked(
      "proc 70 name=cron uid=0 cgroup=/system.slice/cron.service\nproc 4000 ppid=70 "
      "cgroup=/system.slice/cron.service\n");
  EXPECT_NE(crons.find("ask user1000 first"), std::string::npos) << crons;
  EXPECT_EQ(crons.find("systemctl"), std::string::npos) << crons;
}

TEST(Holders, WorkersOfACronJobAndARankOfRootAreNoServices) {
  const Finding left =
      first(play_text("window 60\ngpu 0\nproc 70 name=cron uid=0 cgroup=/system.slice/cron.service\n"
                      "proc 4100 group=4000 name=pt_data_worker open=0 cgroup=/system.slice/cron.service\n"
                      "on 0 4000 vram=30\n"),
            Rule::kR4);
  EXPECT_NE(joined(left.action).find("kill -TERM 4100"), std::string::npos) << joined(left.action);
  const Finding rank = first(play_text("window 60\ngpu 0 extra=30\nproc 90 name=containerd-shim uid=0\n"
                                       "proc 95 ppid=90 name=bash uid=0\nproc 4000 ppid=95 uid=0 open=0 "
                                       "env=\"RANK=0 WORLD_SIZE=4 LOCAL_WORLD_SIZE=4\"\n"),
                             Rule::kR9);
  EXPECT_EQ(joined(rank.not_because).find("daemon"), std::string::npos) << joined(rank.not_because);
}

TEST(Holders, WhatSupervisordRunsAndAStepsDaemonAreNotToBeEnded) {
  const auto left = [](const std::string& processes) {
    return first(play_text("window 60\ngpu 0\nproc 4100 group=4000 name=pt_data_worker open=0\n" + processes +
                           "on 0 4000 vram=30\n"),
                 Rule::kR4);
  };
  const std::string unit = " cgroup=/system.slice/supervisor.service\n";
  const Finding among = left("proc 70 name=supervisord uid=0" + unit + "proc 71 ppid=70 name=exporter open=0" + unit +
                             "proc 80 name=slurmstepd uid=0 group=79 open=0 cgroup=/system.slice/slurmd.service\n");
  EXPECT_NE(joined(among.action).find("kill -TERM 4100,"), std::string::npos) << joined(among.action);
  for (const char* const name : {"71 (exporter)", "80 (slurmstepd)"})
    EXPECT_NE(joined(among.not_because).find(name), std::string::npos) << joined(among.not_because);
  const Finding lost = left("proc 71 ppid=1 name=worker open=0" + unit);
  EXPECT_NE(joined(lost.action).find("kill -TERM 71 4100,"), std::string::npos) << joined(lost.action);
}

TEST(Blocked, AMasterThatIsLeftOverDoesNotRuleOutRanksElsewhere) {
  const std::string sizes = "OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_SIZE=2 MASTER_ADDR=localhost\"\n";
  const auto rank = [&](const std::string& number) {
    return "proc 400" + number + " ppid=100 cmd=./sim wchan=futex_wait_queue env=\"OMPI_COMM_WORLD_RANK=" + number +
           " PMIX_NAMESPACE=b2 " + sizes;
  };
  const Finding finding = first(play_text("window 900\ngpu 0 power=62\ngpu 1 power=62\nproc 100 name=mpirun\n" +
                                          rank("0") + rank("1") + "on 0 4000 vram=30\non 1 4001 vram=30\n"),
                                Rule::kR7);
  EXPECT_NE(joined(finding.not_because).find("2 ranks of 4 are not here"), std::string::npos)
      << joined(finding.not_because);
}

TEST(Orphan, AHelperWhoseMapIsLockedIsNotTheRankThatIsGone) {
  const auto ranks_with = [](const std::string& name) {
    return first(play_text("window 200\ngpu 0 power=62\nproc 100 name=torchrun\n"
                           "proc 4001 ppid=100 wchan=futex_wait_queue "
                           "env=\"RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=29500\"\n"
                           "proc 4100 ppid=100 locked=1 name=" +
                           name + "\non 0 4001 vram=30\n"),
                 Rule::kR5);
  };
  EXPECT_EQ(joined(ranks_with("monitor").because).find("only 1 of 2 ranks"), 0U);
  EXPECT_EQ(joined(ranks_with("python").because), "") << "named as the ranks are";
}

TEST(Orphan, OfANotebookRestsForLongAndAServiceIsNotRuledOut) {
  const auto after = [](const std::string& seconds) {
    return first(play_text("window " + seconds +
                           "\ngpu 0 power=62\nproc 50 name=slurmd uid=0\n"
                           "proc 4000 ppid=1 cmd=\"python -m ipykernel_launcher -f k.json\" wchan=do_epoll_wait "
                           "env=\"SLURM_JOB_ID=77 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2\"\non 0 4000 vram=40\n"),
                 Rule::kR5);
  };
  EXPECT_EQ(after("400").severity, Severity::kInfo) << "a minute of rest is what a notebook does";
  const Finding finding = after("900");
  EXPECT_EQ(finding.severity, Severity::kWarning);
  EXPECT_NE(joined(finding.not_because).find("Slurm would have a step"), std::string::npos)
      << joined(finding.not_because);
}

TEST(Waiting, AChildThatMovesDataIsWork) {
  const auto source = scenario_source(Scenario::parse(
      "s",
      "gpu 0\nproc 4000 wchan=do_wait\nproc 4100 ppid=4000 name=cp io=8e6\nproc 4200 ppid=4000 name=monitor io=2e5\n"
      "on 0 4000 vram=30\nat 60 proc 4100 ended=1"));
  Tracker tracker{Thresholds()};
  const auto look = [&](double at) {
    source->wait(Scenario::kUptime + at);
    const Sample sample = source->sample({}, true);
    tracker.add(sample, false, [](int) { return true; });
    return *tracker.process(key_of(sample.host, 4000));
  };
  look(0);
  for (double at = 10; at < 60; at += 10) {
    const ProcessTrack track = look(at);
    EXPECT_NEAR(track.io_below, 8.2e6, 1e4);
    EXPECT_FALSE(track.calm.holds());
    EXPECT_FALSE(track.blocked.holds());
  }
  for (double at = 60; at < 120; at += 10) look(at);
  EXPECT_TRUE(look(120).blocked.holds()) << "what only a monitor writes is none";
}

/// A rank of the node is missing, which counts only after r6.high.
TEST(Waiting, ANoteThatRanksAreMissingHidesNoWarning) {
  const std::string text =
      "window 420\ngpu 0 power=66\nproc 100 name=torchrun\nproc 4000 ppid=100 cmd=\"python fit.py\" "
      "wchan=futex_wait_queue env=\"RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2\"\non 0 4000 vram=12\n";
  const Report note = play_text(text);
  EXPECT_EQ(first(note, Rule::kR5).severity, Severity::kInfo);
  EXPECT_EQ(first(note, Rule::kR7).verdict, "") << "one verdict for a process";
  const Report report = play_text(text + "set r7.hold=5m\n");
  EXPECT_EQ(first(report, Rule::kR7).severity, Severity::kWarning);
  EXPECT_EQ(first(report, Rule::kR5).verdict, "");
}

TEST(Idle, SaysWhatMayNotBeSeen) {
  const std::string text =
      "window 4500\ngpu 0\nproc 100 name=bash\nproc 4000 ppid=100 cmd=train io=na\non 0 4000 vram=30\n";
  const Finding finding = first(play_text(text), Rule::kR8);
  EXPECT_NE(joined(finding.not_because).find("what it reads and writes"), std::string::npos);
}

TEST(Idle, OfATitleRootSeesNoMore) {
  const Finding finding = first(play_text("window 4000\ngpu 0 power=62\nproc 4000 ppid=90 name=title titled=1\n"
                                          "proc 90 name=bash\non 0 4000 vram=30\n"),
                                Rule::kR8);
  EXPECT_NE(joined(finding.not_because).find("written a title over"), std::string::npos) << joined(finding.not_because);
  EXPECT_EQ(joined(finding.not_because).find("root"), std::string::npos) << joined(finding.not_because);
}

TEST(Idle, APausedContainerIsToBeThawed) {
  const Finding finding = shipped("idle-paused", Rule::kR8);
  EXPECT_NE(joined(finding.action).find("thaw"), std::string::npos) << joined(finding.action);
  EXPECT_EQ(joined(finding.action).find("kill -CONT"), std::string::npos);
}

}  // namespace
