// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <iterator>
#include <optional>
#include <set>
#include <vector>

#include "drover/health/engine.h"
#include "drover/health/probe/process_probe.h"
#include "drover/health/rules/rules.h"
#include "drover/health/scenario/scenario_source.h"
#include "health/fixture.h"

namespace {

using namespace drover::health;
using drover_test::Machine;

TEST(Processes, ANumberThatWasUsedAgainIsNotDescribed) {
  Machine machine;
  machine.write_host(false);
  const Scenario scenario = Scenario::parse("s", "proc 77 name=one cmd=one");
  machine.write_world(scenario.at(0));
  ProcessProbe probe(machine.root());
  HostSample sample;
  probe.list(sample);
  ASSERT_EQ(sample.processes.size(), 1U);
  machine.write_world(Scenario::parse("s", "proc 77 name=other cmd=other age=5").at(0));
  probe.describe(sample, {77}, true);
  EXPECT_TRUE(sample.details.empty());
}

/// A process that is looked at again and again.
class Program : public testing::Test {
 protected:
  Program() {
    put("python", std::string("python\0train.py\0", 16), std::string("SLURM_JOB_ID=1\0", 15));
    probe_.emplace(machine_.root());
  }
  void put(const std::string& name, const std::string& command, const std::string& environment) {
    ProcessBrief brief;
    brief.pid = 77;
    brief.parent = brief.threads = 1;
    brief.state = 'S';
    brief.name = name;
    brief.start_ticks = 100;
    machine_.write("/proc/77/stat", drover_test::stat_text(brief));
    machine_.write("/proc/77/cmdline", command);
    machine_.write("/proc/77/environ", environment);
  }
  ProcessDetail look() {
    HostSample sample;
    probe_->list(sample);
    probe_->describe(sample, {77}, false);
    return sample.details.at(77);
  }

  Machine machine_;
  std::optional<ProcessProbe> probe_;
};

TEST_F(Program, ThatExecStartedIsTheOneThatIsTold) {
  EXPECT_EQ(look().command, "python train.py");
  put("bash", std::string("bash\0", 5), std::string("SLURM_JOB_ID=2\0", 15));
  ProcessDetail detail = look();
  EXPECT_EQ(detail.command, "bash");
  EXPECT_EQ(detail.environment["SLURM_JOB_ID"], "2");
  put("bash", std::string("bash\0-l\0", 8), "");
  for (int i = 0; i < 16; ++i) detail = look();
  EXPECT_EQ(detail.command, "bash -l") << "the name is the same";
  EXPECT_TRUE(detail.environment.empty());
}

TEST_F(Program, ThatEndsKeepsItsCommand) {
  look();
  put("python", "", "");
  for (int i = 0; i < 40; ++i) {
    const ProcessDetail detail = look();
    EXPECT_EQ(detail.command, "python train.py");
    EXPECT_EQ(detail.environment.at("SLURM_JOB_ID"), "1");
  }
}

TEST_F(Program, ThatWroteATitleOverItsEnvironmentHasNoneThatIsKnown) {
  EXPECT_TRUE(look().environment_known);
  for (const std::string& text :
       {std::string("ner: rank 0 step 7\0\0\0\0", 22), std::string(9, '\0'), std::string("rank 0: loss=1\0\0", 16),
        std::string("=x\0", 3), std::string("step=100\0\0\0", 11)}) {
    put("python", std::string("python\0train.py\0", 16), text);
    probe_.emplace(machine_.root());
    EXPECT_FALSE(look().environment_known) << text;
  }
  for (const std::string& text :
       {std::string(), std::string("BASH_FUNC_a%%=() { x; }\0", 24), std::string("_=\0", 3)}) {
    put("python", std::string("python\0train.py\0", 16), text);
    ProcessDetail detail;
    for (int i = 0; i < 16; ++i) detail = look();
    EXPECT_TRUE(detail.environment_known) << text;
  }
}

TEST_F(Program, ThatWritesATitleLaterKeepsTheEnvironmentThatWasRead) {
  look();
  put("python", std::string("step 100\0", 9), std::string("=100 rank 0\0\0", 13));
  ProcessDetail detail;
  for (int i = 0; i < 40; ++i) detail = look();
  EXPECT_EQ(detail.command, "step 100");
  EXPECT_TRUE(detail.environment_known);
  EXPECT_EQ(detail.environment["SLURM_JOB_ID"], "1");
}

/// Leaves so many descriptors while it lives.
class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t left) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);  // the lowest that is free
    ::close(next);
    const rlimit few{static_cast<rlim_t>(next) + left, before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit before_{};
};

void write_stat(Machine& machine, int pid, char state, int threads, int parent = 1) {
  ProcessBrief brief;
  brief.pid = pid;
  brief.parent = parent;
  brief.threads = threads;
  brief.state = state;
  brief.name = "python";
  brief.start_ticks = 100;
  machine.write("/proc/" + std::to_string(pid) + "/stat", drover_test::stat_text(brief));
}

TEST(Processes, WhatTheKernelChoseIsNoPortOfAServiceAndATerminalIsOne) {
  Machine machine;
  machine.write_host(false);
  machine.write_world(Scenario::parse("s", "proc 70 listen=8000 tty=1\nproc 71 listen=41235").at(0));
  const auto look = [&] {
    ProcessProbe probe(machine.root());
    HostSample sample;
    probe.list(sample);
    probe.describe(sample, {70, 71}, false);
    return sample;
  };
  const HostSample sample = look();
  EXPECT_EQ(sample.details.at(70).listens, true);
  EXPECT_EQ(sample.details.at(71).listens, false);
  EXPECT_TRUE(sample.details.at(70).reads_terminal);
  EXPECT_FALSE(sample.details.at(71).reads_terminal);
  const auto reads = [&](const std::string& call) {
    machine.write("/proc/70/syscall", call + " 0x7ffd1 0x400 0x0 0x0 0x0 0x7ffd0 0x7f1\n");
    return look().details.at(70).reads_terminal;
  };
  EXPECT_TRUE(reads(std::to_string(SYS_pselect6) + " 0x1")) << "readline";
  EXPECT_FALSE(reads(std::to_string(SYS_pselect6) + " 0x0")) << "sleeps";
  EXPECT_FALSE(reads(std::to_string(SYS_pselect6) + " 0x8")) << "waits for more than the terminal";
  EXPECT_FALSE(reads(std::to_string(SYS_recvfrom) + " 0x7")) << "a network, in a program that a terminal started";
  EXPECT_FALSE(reads("running"));
  EXPECT_TRUE(reads("0 0x0") == (SYS_read == 0)) << "a read";
  ASSERT_EQ(::unlink((machine.root() + "/proc/70/fd/0").c_str()), 0);
  machine.link("/proc/70/fd/0", "/dev/pts/3 (deleted)");
  EXPECT_FALSE(reads("0 0x0")) << "the terminal was closed";
  machine.write("/proc/sys/net/ipv4/ip_local_port_range", "45000\t60999\n");
  EXPECT_EQ(look().details.at(71).listens, true) << "the kernel gives others here";
}

TEST(Processes, WhatSallocListensOnIsNoServiceOfThoseWhoInheritedIt) {
  Machine machine;
  machine.write_host(false);
  const std::string text =
      "proc 60 name=salloc listen=1\nproc 61 ppid=60 name=bash listen=1\nproc 70 name=serving listen=1\n";
  machine.write_world(
      Scenario::parse("s", text + "proc 62 ppid=61 listen=1\nproc 63 ppid=61 listen=1\nproc 71 ppid=70 listen=1")
          .at(0));
  const std::string salloc = "socket:[70060]",
                    line =
                        "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 ";
  for (const int pid : {62, 63, 71}) {  // as it is in one and the same network
    std::string table = "  sl  local_address\n";
    for (const int owner : {60, 62, 63, 70}) table += line + std::to_string(70'000 + owner) + " 1\n";
    machine.write("/proc/" + std::to_string(pid) + "/net/tcp", table);
  }
  machine.remove("/proc/62/fd/3");
  machine.link("/proc/62/fd/3", salloc);
  machine.link("/proc/63/fd/4", salloc);
  machine.remove("/proc/71/fd/3");
  machine.link("/proc/71/fd/3", "socket:[70070]");
  ProcessProbe probe(machine.root());
  HostSample sample;
  probe.list(sample);
  probe.describe(sample, {62, 63, 71}, false);
  EXPECT_EQ(sample.details.at(62).listens, false);
  EXPECT_EQ(sample.details.at(63).listens, true) << "and on a port of its own";
  EXPECT_EQ(sample.details.at(71).listens, true) << "a server's worker gets its requests by what it inherited";
}

TEST(Processes, ManyAreDescribedWithFewDescriptors) {
  Machine machine;
  std::set<int> pids;
  for (int pid = 1000; pid < 1100; ++pid) {
    write_stat(machine, pid, 'S', 1);
    machine.write("/proc/" + std::to_string(pid) + "/environ", std::string("RANK=3\0", 7));
    pids.insert(pid);
  }
  ProcessProbe probe(machine.root());
  const auto look = [&](rlim_t descriptors) {
    HostSample sample;
    const FewDescriptors few(descriptors);
    probe.list(sample);
    probe.describe(sample, pids, true);
    return sample;
  };
  const HostSample sample = look(24);
  EXPECT_TRUE(sample.without_descriptor.empty());
  ASSERT_EQ(sample.details.size(), 100U);
  for (const auto& [pid, detail] : sample.details) EXPECT_EQ(detail.environment.count("RANK"), 1U) << pid;
  EXPECT_FALSE(look(4).without_descriptor.empty()) << "and when there are none, that is said";
}

TEST(Processes, OneWithoutADescriptorIsCountedOnceHoweverOftenItIsAskedFor) {
  Machine machine;
  write_stat(machine, 1000, 'S', 1);
  ProcessProbe probe(machine.root());
  HostSample sample;
  probe.list(sample);
  const FewDescriptors none(0);
  for (int times = 0; times < 3; ++times) probe.describe(sample, {1000}, true);
  EXPECT_EQ(sample.without_descriptor, std::set<int>{1000});
}

TEST(Processes, WithoutADescriptorAreUnknownAndNotAbsent) {
  const auto source = scenario_source(Scenario::parse("s", "gpu 0\nproc 70\n"));
  Sample sample = source->sample({}, true);
  sample.host.without_descriptor = {70, 71, 72};
  sample.host.stuck_left_out = 5;
  const Thresholds limits;
  Tracker tracker(limits);
  const Sample before = sample;
  const Report report = conclude(*source, limits, tracker, {.first = before, .last = sample});
  EXPECT_EQ(report.exit_code(), 3);
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_NE(report.findings[0].because.at(0).find("3 processes"), std::string::npos);
  ASSERT_EQ(report.warnings.size(), 1U);
  EXPECT_EQ(report.warnings[0].substr(0, 16), "5 more processes");
}

TEST(Processes, ZombiesHideNobodyWhoIsStuck) {
  Machine machine;
  machine.write_host(false);
  for (int pid = 1000; pid < 1300; ++pid) write_stat(machine, pid, 'Z', 1);
  write_stat(machine, 1300, 'Z', 2);
  write_stat(machine, 2000, 'D', 1);
  const auto look = [&](const std::set<int>& watched) {
    SystemSourceOptions options{.root = machine.root(), .deadline = drover::Duration(20)};
    options.now = [] { return 1e6; };
    return system_source(options)->sample(watched, true);
  };
  const Sample sample = look({});
  EXPECT_EQ(sample.host.details.count(2000), 1U);
  EXPECT_EQ(sample.host.details.count(1300), 1U) << "it has a thread that lives";
  EXPECT_EQ(sample.host.details.count(1000), 0U);
  EXPECT_EQ(sample.host.stuck_left_out, 0);
  for (int pid = 1000; pid < 1300; ++pid) write_stat(machine, pid, 'D', 1);
  const Sample many = look({2000});
  EXPECT_EQ(many.host.details.count(2000), 1U) << "it is followed already";
  EXPECT_EQ(many.host.stuck_left_out, 302 - 256 - 1);
}

TEST(Processes, SleepingGpusAreNotWoken) {
  Machine machine;
  machine.write_host(false);
  machine.write_world(Scenario::parse("s", "gpu 0 runtime=suspended\nproc 77").at(0));
  machine.use_driver("gpu 0\nhost hang=nvmlInit_v2\n");
  const auto source = system_source({.root = machine.root(), .deadline = drover::Duration(20)});
  const Sample sample = source->sample({}, false);
  EXPECT_EQ(sample.driver.state, DriverState::kAsleep);
  EXPECT_FALSE(sample.driver.problem.empty());
}

TEST(Processes, GpusThatWakeAreAskedAbout) {
  Machine machine;
  machine.write_host(false);
  machine.write_world(Scenario::parse("s", "gpu 0 runtime=suspended\nproc 77").at(0));
  machine.use_driver("gpu 0\n");
  double time = 1000;
  const auto source =
      system_source({.root = machine.root(), .deadline = drover::Duration(20), .now = [&] { return time; }});
  EXPECT_EQ(source->sample({}, false).driver.state, DriverState::kAsleep);
  time += 6;
  EXPECT_EQ(source->sample({}, false).driver.state, DriverState::kAsleep);
  machine.write_world(Scenario::parse("s", "gpu 0\nproc 77").at(0));
  time += 4;
  EXPECT_EQ(source->sample({}, false).driver.state, DriverState::kAsleep) << "not at each look";
  time += 2;
  const Sample sample = source->sample({}, false);
  EXPECT_EQ(sample.driver.state, DriverState::kOk) << sample.driver.problem;
  EXPECT_EQ(sample.driver.gpus.size(), 1U);
}

TEST(Processes, AHelperThatIsStillStuckKeepsUsFromAskingAgain) {
  Machine machine;
  machine.write_host(false);
  machine.write_world(
      Scenario::parse(
          "s", "gpu 0\nproc 77 name=drover-nvml uid=0 age=100 kill=1 threads=2 tasks=77:S:pipe_read,78:D:nvidia_ioctl")
          .at(0));
  machine.use_driver("gpu 0\nhost hang=nvmlInit_v2\n");
  SystemSourceOptions options{.root = machine.root(), .deadline = drover::Duration(20)};
  options.now = [] { return 1e6; };  // as situations have it
  const Sample sample = system_source(options)->sample({}, false);
  EXPECT_EQ(sample.driver.state, DriverState::kNotAnswering);
  EXPECT_NE(sample.driver.problem.find("pid 77"), std::string::npos);
}

/// Numbers from `first` on, of which no more is written than who they are and what they read.
struct Workers {
  int parent, first, count;
};

/// Whose traffic is asked for in one look at a situation.
std::set<int> asked_for_traffic(const std::string& text, const std::vector<Workers>& below) {
  Machine machine;
  machine.write_host(false);
  machine.write_world(Scenario::parse("s", text).at(0));
  for (const Workers& workers : below) {
    for (int pid = workers.first; pid < workers.first + workers.count; ++pid) {
      write_stat(machine, pid, 'S', 1, workers.parent);
      machine.write("/proc/" + std::to_string(pid) + "/io", "rchar: 1000\nwchar: 0\nsyscr: 1\n");
    }
  }
  machine.use_driver(text);
  const auto source =
      system_source({.root = machine.root(), .deadline = drover::Duration(20), .now = [] { return 1e6; }});
  const Sample sample = source->sample({}, false);
  EXPECT_EQ(sample.driver.state, DriverState::kOk) << sample.driver.problem;
  std::set<int> asked;
  for (const auto& [pid, bytes] : sample.host.io_of_descendants) {
    asked.insert(pid);
    EXPECT_EQ(sample.host.details.count(pid), 0U) << "more is not asked";
  }
  return asked;
}

TEST(Processes, OfWhatAProcessOnAGpuStartedTheTrafficIsAskedUnlessItComputes) {
  const std::vector<Workers> workers = {{4000, 5000, 70}};
  const std::string text =
      "gpu 0\nproc 90\nproc 91 ppid=90\nproc 4000 ppid=90\nproc 4900 ppid=4000 age=10\nproc 6000 ppid=5000\n";
  const std::set<int> asked = asked_for_traffic(text + "on 0 4000 vram=30\n", workers);
  EXPECT_EQ(asked.size(), 64U);
  EXPECT_EQ(asked.count(4900), 1U) << "the one that it started last";
  EXPECT_EQ(asked.count(91) + asked.count(4000) + asked.count(6000), 0U);
  EXPECT_EQ(asked_for_traffic(text + "proc 4000 state=R\non 0 4000 vram=30\n", workers), asked)
      << "its GPU rests: it may poll";
  EXPECT_TRUE(asked_for_traffic(text + "proc 4000 state=R\non 0 4000 vram=30 sm=90\n", workers).empty());
}

TEST(Processes, WhomToAskForTrafficIsSharedEvenly) {
  std::string text = "gpu 0\n";
  std::vector<Workers> workers;
  for (int root = 4000; root < 4012; ++root) {
    text += "proc " + std::to_string(root) + "\non 0 " + std::to_string(root) + " vram=1\n";
    workers.push_back({root, 100 * (root - 3900), 43});
  }
  const std::set<int> asked = asked_for_traffic(text, workers);
  EXPECT_EQ(asked.size(), 12U * 42);
  for (const Workers& some : workers) {
    const auto first = asked.lower_bound(some.first), last = asked.lower_bound(some.first + some.count);
    EXPECT_EQ(std::distance(first, last), 42) << some.parent;
  }
}

}  // namespace
