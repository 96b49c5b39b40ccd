// SPDX-License-Identifier: Apache-2.0
#include "drover/health/rules/rules.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "drover/health/engine.h"
#include "drover/health/history.h"
#include "drover/health/scenario/scenario_source.h"
#include "health/played_reports.h"

namespace {

using namespace drover::health;
using namespace drover_test;

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

TEST(Advice, EndsNoUnitInWhichTheProcessWasLeftBehind) {
  const std::string machine = "window 9000\ngpu 0 power=62\non 0 4000 vram=20\n";
  const std::string process = "proc 4000 ppid=1 cmd=\"python fit.py\" wchan=futex_wait_queue ";
  const auto advice = [&](const char* more) {
    return joined(first(play_text(machine + process + more + "\n"), Rule::kR8).action);
  };
  EXPECT_NE(advice("cgroup=/system.slice/fit.service").find("systemctl stop fit.service"), std::string::npos);
  EXPECT_EQ(advice("cgroup=/system.slice/jobs.service session=900").find("systemctl"), std::string::npos);
  EXPECT_EQ(advice("cgroup=/system.slice/pbs_mom.service").find("systemctl"), std::string::npos);
  EXPECT_NE(advice("cgroup=/user.slice/libpod-0123456789abcdef.scope").find("podman stop 0123456789ab"),
            std::string::npos);
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

TEST(Xids, WhatIsNotKnownHereIsNotAnApplications) {
  for (const char* const line : {"log=109@60", "log=158@60,31@50", "xid=157"}) {
    const Finding finding = first(play_text(std::string("window 5\ngpu 0 ") + line + "\n"), Rule::kR1);
    EXPECT_EQ(finding.severity, Severity::kInfo);
    EXPECT_EQ(finding.verdict, "XID NOT KNOWN HERE");
    EXPECT_EQ(finding.confidence, Confidence::kLow);
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

TEST(Processes, AreNotLabelledWithAUnitThatIsAnothers) {
  const auto label = [](const char* parent) {
    const Report report =
        play_text(std::string("window 10\ngpu 0 power=62\nproc 70 name=hub uid=0 cgroup=/system.slice/hub.service\n") +
                  "proc 4000 cpu=1 cgroup=/system.slice/hub.service ppid=" + parent + "\non 0 4000 vram=30\n");
    EXPECT_EQ(report.busiest.at(0).job, report.gpus.at(0).processes.at(0).process.job);
    return report.busiest.at(0).job;
  };
  EXPECT_EQ(label("1"), "unit hub.service");
  EXPECT_EQ(label("70"), "") << "root began it";
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
