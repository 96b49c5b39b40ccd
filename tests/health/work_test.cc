// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "drover/health/rules/rules.h"
#include "drover/health/watch.h"
#include "health/played_reports.h"

/// What is at work is not accused, and no advice ends it.
namespace {

using namespace drover::health;
using namespace drover_test;

bool says(const std::vector<std::string>& lines, const char* text) {
  return joined(lines).find(text) != std::string::npos;
}

TEST(Advice, EndsNoContainerOrJobInWhichAnotherOneComputes) {
  for (const char* const name : {"idle-container-shared", "idle-slurm-sweep"}) {
    const Finding finding = shipped(name, Rule::kR8);
    EXPECT_FALSE(says(finding.action, "docker stop")) << joined(finding.action);
    EXPECT_FALSE(says(finding.action, "scancel")) << joined(finding.action);
    EXPECT_TRUE(says(finding.action, "as a whole: pid 4001")) << joined(finding.action);
  }
}

TEST(Advice, OfANoteEndsNothing) {
  constexpr const char* kJob = R"(
window 1200
gpu 0 power=300
gpu 1 power=95 nvlink=0
proc 51 name=slurmstepd uid=0 cmd="slurmstepd: [77.0]"
proc 4000 ppid=51 cmd="python train.py" state=R cpu=1 io=1e7 env="RANK=0 WORLD_SIZE=2 SLURM_PROCID=0 SLURM_JOB_ID=77 SLURM_STEP_ID=0"
proc 4001 ppid=51 cmd="python train.py" state=R cpu=1 io=0 env="RANK=1 WORLD_SIZE=2 SLURM_PROCID=1 SLURM_JOB_ID=77 SLURM_STEP_ID=0"
on 0 4000 vram=30 sm=80 mem=40
on 1 4001 vram=30 sm=100 mem=0
)";
  const Finding note = first(play_text(kJob), Rule::kR6);
  EXPECT_EQ(note.severity, Severity::kInfo);
  EXPECT_TRUE(says(note.action, "look at that one first")) << joined(note.action);
  EXPECT_FALSE(says(note.action, "scancel")) << joined(note.action);
}

TEST(Advice, EndsNoJobOfWhichARankWaitsForOtherNodes) {
  constexpr const char* kJob = R"(
window 9000
gpu 0 power=62
gpu 1 power=95 nvlink=0
proc 51 name=slurmstepd uid=0 cmd="slurmstepd: [77.batch]"
proc 4000 ppid=51 cmd="python old.py" wchan=futex_wait_queue env="SLURM_JOB_ID=77"
proc 4003 ppid=51 cmd="python train.py" state=R cpu=1 io=0 env="RANK=3 WORLD_SIZE=WORLD SLURM_JOB_ID=77"
on 0 4000 vram=30
on 1 4003 vram=30 sm=100 mem=0
)";
  const auto of_world = [&](const char* world) {
    std::string text = kJob;
    text.replace(text.find("WORLD", text.find("WORLD_SIZE=") + 11), 5, world);
    return first(play_text(text), Rule::kR8);
  };
  EXPECT_FALSE(says(of_world("16").action, "scancel")) << "15 ranks are elsewhere, and may still work";
}

TEST(Advice, EndsNobodyBeforeTheOtherNodesWereLookedAt) {
  constexpr const char* kJob = R"(
window 900
gpu 0 power=95 nvlink=0
gpu 1 power=95 nvlink=0
proc 100 name=torchrun cmd="torchrun --nnodes 2 train.py"
proc 4000 ppid=100 cmd="python train.py" state=R cpu=1 io=0 env="RANK=2 WORLD_SIZE=WORLD LOCAL_WORLD_SIZE=2"
proc 4001 ppid=100 cmd="python train.py" state=R cpu=1 io=0 env="RANK=3 WORLD_SIZE=WORLD LOCAL_WORLD_SIZE=2"
on 0 4000 vram=20 sm=100 mem=0
on 1 4001 vram=20 sm=100 mem=0
)";
  const auto of_world = [&](const std::string& world) {
    std::string text = kJob;
    for (std::size_t at = 0; (at = text.find("WORLD ", at)) != std::string::npos;) text.replace(at, 5, world);
    return first(play_text(text), Rule::kR6);
  };
  EXPECT_EQ(of_world("4").severity, Severity::kWarning);
  EXPECT_FALSE(says(of_world("4").action, "kill -TERM")) << "rank 0 may evaluate on the other node";
  EXPECT_TRUE(says(of_world("4").action, "look at all nodes at once"));
  EXPECT_TRUE(says(of_world("4").action, "py-spy dump"));
  EXPECT_TRUE(says(of_world("2").action, "kill -TERM")) << "all are here";
}

TEST(Advice, AsksWhetherOneThatHasNobodyToWaitForGoesOn) {
  constexpr const char* kAlone = R"(
window 1200
gpu 0 power=95 pcie=0
proc 90 name=bash
proc 4000 ppid=90 name=nbody cmd="./nbody --double" state=R cpu=1 io=0
on 0 4000 vram=3 sm=100 mem=1
)";
  const Finding finding = first(play_text(kAlone), Rule::kR6);
  EXPECT_EQ(finding.confidence, Confidence::kMedium);
  EXPECT_TRUE(says(finding.not_because, "double precision")) << joined(finding.not_because);
  EXPECT_FALSE(says(finding.action, "kill -TERM")) << joined(finding.action);
}

constexpr const char* kInContainer = R"(
window 9000
gpu 0 power=62
gpu 1 power=62
proc 80 name=containerd-shim uid=0
proc 4000 ppid=80 cmd="python old.py" cgroup=/system.slice/docker-0123456789abcdef.scope wchan=futex_wait_queue
proc 4001 ppid=80 cmd="python other.py" cgroup=/system.slice/docker-0123456789abcdef.scope wchan=futex_wait_queue
on 0 4000 vram=30
on 1 4001 vram=30
)";

TEST(Advice, EndsAContainerInWhichAllRest) {
  const Finding rest = first(play_text(kInContainer), Rule::kR8);
  EXPECT_TRUE(says(rest.action, "docker stop 0123456789ab")) << joined(rest.action);
  const Finding on_cpu = first(play_text(std::string(kInContainer) + "proc 4001 cpu=0.8\n"), Rule::kR8);
  EXPECT_FALSE(says(on_cpu.action, "docker stop")) << "it prepares its data";
  const Finding was_busy =
      first(play_text(std::string(kInContainer) + "on 1 4001 sm=90\nat 8600 on 1 4001 sm=0\n"), Rule::kR8);
  EXPECT_FALSE(says(was_busy.action, "docker stop")) << "it may only pause";
  const Finding server = first(play_text(std::string(kInContainer) + "proc 4001 name=ollama\n"), Rule::kR8);
  EXPECT_FALSE(says(server.action, "docker stop")) << "it is well, and waits for requests";
  const Finding notebook =
      first(play_text(std::string(kInContainer) + "proc 4001 cmd=\"python -m ipykernel_launcher\"\n"), Rule::kR8);
  EXPECT_FALSE(says(notebook.action, "docker stop")) << "it keeps what its owner computed";
  const Finding spins = first(play_text(std::string(kInContainer) +
                                        "gpu 1 power=95 nvlink=0\nproc 4001 state=R cpu=1\non 1 4001 sm=100 mem=0\n"),
                              Rule::kR8);
  EXPECT_TRUE(says(spins.action, "docker stop")) << "both are to be ended" << joined(spins.action);
}

TEST(Advice, OfAStuckProcessEndsNoContainerInWhichAnotherOneComputes) {
  const Report report = play_text(std::string(kInContainer) +
                                  "window 300\nproc 4000 state=D wchan=nvidia_ioctl\non 1 4001 sm=90 mem=40\n");
  const Finding finding = first(report, Rule::kR2);
  EXPECT_EQ(finding.severity, Severity::kCritical);
  EXPECT_FALSE(says(finding.action, "docker stop")) << joined(finding.action);
}

TEST(Advice, OfAZombieEndsNoContainerWhoseParentDoesMore) {
  const Finding finding = shipped("defunct-parent-in-its-container", Rule::kR3);
  EXPECT_FALSE(says(finding.action, "docker stop")) << joined(finding.action);
  EXPECT_TRUE(says(finding.action, "do not end the parent")) << joined(finding.action);
}

TEST(Orphan, WhoseFellowRankIsAtWorkIsANoteAndEndsNobody) {
  for (const char* const name : {"orphaned-none-peer-evaluates", "orphaned-none-peer-checkpoints"}) {
    const Finding finding = shipped(name, Rule::kR5);
    EXPECT_EQ(finding.pid, 4001) << name;
    EXPECT_EQ(finding.severity, Severity::kInfo) << name;
    EXPECT_TRUE(says(finding.not_because, "rank 0 (pid 4000)")) << joined(finding.not_because);
    EXPECT_FALSE(says(finding.action, "kill")) << joined(finding.action);
  }
}

TEST(Blocked, ByARankThatMayOnlyPollNamesThatOneAndEndsNobody) {
  const Finding polls = shipped("blocked-first-rank-polls", Rule::kR7);
  EXPECT_EQ(polls.severity, Severity::kWarning);
  EXPECT_TRUE(says({polls.action.at(0)}, "rank 0 (pid 4000) works on the CPU")) << joined(polls.action);
  EXPECT_FALSE(says(polls.action, "kill")) << joined(polls.action);
  const Finding works = shipped("blocked-none-first-rank-tokenizes", Rule::kR7);
  EXPECT_EQ(works.pid, 4001);
  EXPECT_FALSE(says(works.action, "kill")) << joined(works.action);
}

TEST(Idle, ARankThatWaitsForOneThatMayPollIsNotToBeEnded) {
  const Finding polls = first(play_text(R"(
window 15000
gpu 0 power=62
gpu 1 power=62
proc 100 name=torchrun cmd="torchrun --nproc-per-node 2 train.py"
proc 4000 ppid=100 state=R cpu=1 io=0 env="RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=29500"
proc 4001 ppid=100 wchan=futex_wait_queue cpu=0.03 io=0 env="RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=29500"
on 0 4000 vram=20
on 1 4001 vram=20
)"),
                              Rule::kR8);
  EXPECT_EQ(polls.pid, 4001);
  EXPECT_EQ(polls.severity, Severity::kWarning);
  EXPECT_TRUE(says(polls.action, "rank 0 (pid 4000) works on the CPU")) << joined(polls.action);
  EXPECT_FALSE(says(polls.action, "kill")) << joined(polls.action);
}

TEST(Idle, WhatASchedulerSuspendedIsNotToBeContinued) {
  for (const char* const name : {"idle-none-slurm-suspended", "idle-none-slurm-preempted"}) {
    const Finding finding = shipped(name, Rule::kR8);
    EXPECT_TRUE(says(finding.not_because, "scontrol resume")) << name << joined(finding.not_because);
    EXPECT_FALSE(says(finding.action, "kill")) << joined(finding.action);
  }
  EXPECT_TRUE(says(shipped("idle-stopped-script", Rule::kR8).action, "kill -CONT 4000"));
}

TEST(Idle, OfAParentCountsFromWhenItsChildRests) {
  const std::string text = R"(
gpu 0 power=62
gpu 1 power=300
proc 90 name=bash
proc 4000 ppid=90 cmd="python hpo.py" wchan=do_wait
proc 4001 ppid=4000 cmd="python trial.py" cpu=0.03 io=0
on 0 4000 vram=20
on 1 4001 vram=20 sm=95 mem=50
at 5000 on 1 4001 sm=0 mem=0
)";
  const Finding early = first(play_text("window 6000\n" + text), Rule::kR8);
  EXPECT_EQ(early.severity, Severity::kInfo);
  EXPECT_EQ(early.pid, 4000);
  EXPECT_LT(early.held_s.value_or(0), 1100);
  EXPECT_EQ(first(play_text("window 9900\n" + text), Rule::kR8).severity, Severity::kWarning);
}

TEST(Memory, ThatAListedProcessMayHaveImportedIsNotSaidToBeNobodys) {
  const Finding finding = shipped("unattributed-imported", Rule::kR9);
  EXPECT_TRUE(says(finding.action, "nobody but those listed has the device open")) << joined(finding.action);
  EXPECT_TRUE(says(finding.not_because, "4001 (python)")) << joined(finding.not_because);
  EXPECT_TRUE(says({finding.action.at(0)}, "ask the owners")) << joined(finding.action);
}

TEST(Holders, OfRootInAContainerMayHoldMemoryButForServers) {
  const Finding worker = shipped("orphan-handle-root-in-container", Rule::kR4);
  EXPECT_TRUE(says(worker.because, "4100 (python)")) << joined(worker.because);
  EXPECT_FALSE(says(worker.action, "reset")) << joined(worker.action);
  const Finding exporter = first(play_text(R"(
window 30
gpu 0 power=62
proc 80 name=containerd-shim uid=0
proc 4100 ppid=80 uid=0 name=exporter cmd="/usr/bin/exporter" listen=1 cgroup=/system.slice/docker-0123456789abcdef.scope open=0
on 0 4000 vram=30
)"),
                                 Rule::kR4);
  EXPECT_FALSE(says(exporter.action, "kill")) << joined(exporter.action);
  EXPECT_TRUE(says(exporter.not_because, "4100 (exporter)")) << joined(exporter.not_because);
}

TEST(Defunct, WhoseThreadsComputeIsANoteAndWhoseThreadsRestIsNot) {
  const Finding works = shipped("defunct-none-threads-compute", Rule::kR3);
  EXPECT_EQ(works.pid, 4000);
  EXPECT_FALSE(says(works.action, "kill")) << joined(works.action);
  const Report rests = play_text(
      "window 60\ngpu 0 power=62\nproc 100 name=bash\n"
      "proc 4000 ppid=100 state=Z threads=2 tasks=4000:Z,4001:S:futex_wait_queue\non 0 4000 vram=30\n");
  EXPECT_EQ(first(rests, Rule::kR3).severity, Severity::kWarning);
}

/// Two looks at a machine with two GPUs of NVIDIA's, of which the kernel's module has `devices`.
Finding listed_of(const std::vector<std::string>& devices, bool by_root) {
  const auto source = scenario_source(Scenario::parse("s", "gpu 0 power=62\ngpu 1 power=62\n"));
  const Thresholds limits;
  Tracker tracker(limits);
  Sample last = source->sample({}, true);
  last.driver.devices = devices;
  last.driver.by_root = by_root;
  last.driver.gpus[0].bus = "00000000:3B:00.0";
  last.driver.gpus[1].bus = "00000000:5E:00.0";
  tracker.add(last, false, [](int) { return true; });
  const Sample before = last;
  return first(conclude(*source, limits, tracker, {.first = before, .last = last}), Rule::kR1);
}

TEST(Driver, ThatListsFewerGpusThanTheKernelHasIsAFinding) {
  const Finding finding = listed_of({"0000:3b:00.0", "0000:5e:00.0", "0000:86:00.0"}, true);
  EXPECT_EQ(finding.severity, Severity::kWarning);
  EXPECT_EQ(finding.verdict, "GPU NOT LISTED");
  EXPECT_TRUE(says(finding.because, "has 3 GPUs, and the driver lists 2 of them: not 0000:86:00.0"))
      << joined(finding.because);
  EXPECT_EQ(listed_of({"0000:3b:00.0", "0000:5e:00.0", "0000:86:00.0"}, false).severity, Severity::kInfo);
  EXPECT_TRUE(listed_of({"0000:3b:00.0", "0000:5e:00.0"}, true).verdict.empty());
  EXPECT_TRUE(listed_of({}, true).verdict.empty()) << "in a container not all need be listed";
  EXPECT_TRUE(listed_of({"0002:00:00.0", "0002:01:00.0"}, true).verdict.empty()) << "other names say nothing";
}

TEST(Stuck, AReportOutlivesALookInWhichTheThreadIsNotStuck) {
  const Scenario scenario = Scenario::parse(
      "s",
      "gpu 0 power=70\nproc 100 name=bash\nproc 4000 ppid=100 cmd=train state=D wchan=nvidia_ioctl\non 0 4000 vram=30\n"
      "at 90.5 proc 4000 state=S wchan=futex\nat 91.4 proc 4000 state=D wchan=nvidia_ioctl\n");
  WatchOptions options;
  options.interval_s = 1;
  Watch watch(scenario_source(scenario), limits_of(scenario, {}), options);
  for (int second = 0; second < 120; ++second) {
    const Finding finding = first(watch.look(), Rule::kR2);
    if (second < 65) continue;
    EXPECT_EQ(finding.severity, Severity::kCritical) << second;
    EXPECT_TRUE(says(finding.because, "thread 4000")) << second << joined(finding.because);
  }
}

}  // namespace
