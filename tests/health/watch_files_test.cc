// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <optional>

#include "drover/health/probe/process_probe.h"
#include "drover/os/host_files.h"
#include "health/fixture.h"

namespace {

using namespace drover::health;
using drover_test::Machine;

/// A process table that is looked at again and again, so that its files are kept open.
class KeptFiles : public ::testing::Test {
 protected:
  KeptFiles() {
    put(10, 100);
    put(11, 200);
    probe_.emplace(machine_.root());  // it holds the folder that is there now
    for (int i = 0; i < 8; ++i) list();
  }
  void put(int pid, std::uint64_t start, std::uint64_t cpu = 0) {
    ProcessBrief brief;
    brief.pid = pid;
    brief.parent = 1;
    brief.state = 'S';
    brief.threads = 1;
    brief.name = "task";
    brief.start_ticks = start;
    brief.cpu_ticks = cpu;
    machine_.write("/proc/" + std::to_string(pid) + "/stat", drover_test::stat_text(brief));
  }
  std::vector<ProcessBrief> list() {
    HostSample sample;
    probe_->list(sample);
    return sample.processes;
  }

  Machine machine_;
  std::optional<ProcessProbe> probe_;
};

TEST_F(KeptFiles, AreKept) {
  const drover::os::HostFolder own("/proc/self/fd");
  const auto count = own.numbers().size();
  for (int pid = 100; pid < 150; ++pid) put(pid, 1);
  list();
  EXPECT_EQ(own.numbers().size(), count + 50);
  list();
  EXPECT_EQ(own.numbers().size(), count + 50);
  for (int pid = 100; pid < 150; ++pid) machine_.remove("/proc/" + std::to_string(pid));
  list();
  EXPECT_EQ(own.numbers().size(), count);
}

TEST_F(KeptFiles, AreReadAnewInEachLook) {
  put(10, 100, 77);
  const auto table = list();
  ASSERT_EQ(table.size(), 2U);
  EXPECT_EQ(table[0].cpu_ticks, 77U);
  EXPECT_EQ(table[1].start_ticks, 200U);
}

TEST_F(KeptFiles, AProcessThatEndsIsGone) {
  machine_.remove("/proc/10");
  const auto table = list();
  ASSERT_EQ(table.size(), 1U);
  EXPECT_EQ(table[0].pid, 11);
}

TEST_F(KeptFiles, ANumberThatIsUsedAgainIsTheNewProcess) {
  machine_.remove("/proc/10");
  put(10, 999);
  for (int i = 0; i < 3; ++i) {
    const auto table = list();
    ASSERT_EQ(table.size(), 2U);
    EXPECT_EQ(table[0].start_ticks, 999U);
  }
}

TEST_F(KeptFiles, NewProcessesAreSeenAtOnce) {
  put(9, 300);
  put(12, 400);
  for (int i = 0; i < 3; ++i) {
    const auto table = list();
    ASSERT_EQ(table.size(), 4U);
    EXPECT_EQ(table[0].pid, 9);
    EXPECT_EQ(table[3].pid, 12);
  }
}

TEST_F(KeptFiles, ReadNothingOfAFileThatWasRemoved) {
  const drover::os::HostFolder proc(machine_.root() + "/proc");
  std::string text;
  drover::os::Fd file;
  ASSERT_EQ(proc.read_record("10/stat", text, file), drover::os::Access::kOk);
  EXPECT_EQ(drover::os::read_record_again(file, text), drover::os::Access::kOk);
  EXPECT_EQ(text.substr(0, 9), "10 (task)");
  machine_.remove("/proc/10");
  EXPECT_EQ(drover::os::read_record_again(file, text), drover::os::Access::kGone);
  EXPECT_EQ(text, "");
  EXPECT_EQ(drover::os::read_record_again(drover::os::Fd(), text), drover::os::Access::kGone);
}

}  // namespace
