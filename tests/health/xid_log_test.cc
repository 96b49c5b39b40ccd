// SPDX-License-Identifier: Apache-2.0
#include "drover/health/probe/xid_log.h"

#include <gtest/gtest.h>

#include "drover/health/engine.h"
#include "health/fixture.h"

namespace {

using namespace drover::health;
using drover_test::Machine;

constexpr const char* kLost =
    "4,812,7200000000,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus.";

TEST(XidRecord, HasTimeBusNumberAndProcess) {
  const auto xid = parse_xid_record(kLost);
  ASSERT_TRUE(xid);
  EXPECT_EQ(xid->xid, 79U);
  EXPECT_DOUBLE_EQ(xid->at, 7200);
  EXPECT_EQ(xid->bus, "0000:3b:00");
  EXPECT_EQ(xid->pid, 1234);
  EXPECT_EQ(xid->name, "python");
}

TEST(XidRecord, OfOtherDriversIsReadToo) {
  const auto old = parse_xid_record("3,1,5,c;NVRM: Xid (0000:03:00): 31, Ch 00000010, engmask 00000101");
  ASSERT_TRUE(old);
  EXPECT_EQ(old->xid, 31U);
  EXPECT_EQ(old->pid, 0);
  const auto nobody =
      parse_xid_record("3,1,5,-,caller=T9;NVRM: Xid (PCI:0000:c1:00): 154, pid='<unknown>', name=<unknown>, x");
  ASSERT_TRUE(nobody);
  EXPECT_EQ(nobody->pid, 0);
  EXPECT_EQ(parse_xid_record("3,1,5,-;NVRM: Xid (PCI:0000:c1:00): 13")->xid, 13U);
}

TEST(XidRecord, IsWhatTheKernelItselfWroteAndNothingElse) {
  for (const char* const line :
       {"", ";", "NVRM: Xid (PCI:0000:3b:00): 79", " SUBSYSTEM=pci", "4,1,5;NVRM: loading NVIDIA UNIX x86_64",
        "12,1,5,-;NVRM: Xid (PCI:0000:3b:00): 79, written by a program", "4,1,x,-;NVRM: Xid (PCI:0000:3b:00): 79",
        "4,1,5,-;python: NVRM: Xid (PCI:0000:3b:00): 79", "4,1,5,-;NVRM: Xid (PCI:zz:3b:00): 79",
        "4,1,5,-;NVRM: Xid (PCI:0000:3b:00): many", "4,1,5,-;NVRM: Xid (PCI:0000:3b:00 79",
        "4,1,5,-;NVRM: Xid (PCI:0000:3b:00): 99999999999999999999",
        "4,1,99999999999999999999,-;NVRM: Xid (PCI:0000:3b:00): 79"}) {
    EXPECT_FALSE(parse_xid_record(line)) << line;
  }
}

TEST(Bus, IsTheSameHoweverItIsWritten) {
  EXPECT_TRUE(same_bus("0000:3b:00", "00000000:3B:00.0"));
  EXPECT_TRUE(same_bus("0001:3b:00", "00000001:3b:00.0"));
  EXPECT_FALSE(same_bus("0000:3b:00", "0000:3c:00.0"));
  EXPECT_FALSE(same_bus("", ""));
  EXPECT_FALSE(same_bus("0000:3b:00:00", "0000:3b:00:00"));
  EXPECT_FALSE(same_bus("nonsense", "nonsense"));
}

DriverSample two_gpus() {
  DriverSample driver;
  driver.state = DriverState::kOk;
  driver.gpus.resize(2);
  driver.gpus[0].bus = "00000000:01:00.0";
  driver.gpus[1].bus = "00000000:3B:00.0";
  return driver;
}

TEST(XidLog, GivesEachGpuItsOwnAndGoesOnWithWhatIsNew) {
  Machine machine;
  const std::string first = std::string("6,1,0,-;Linux\n") + kLost + "\n KEY=value\n";
  machine.write("/dev/kmsg", first);
  XidLog log(machine.root());
  DriverSample driver = two_gpus();
  log.fill(driver);
  EXPECT_TRUE(driver.gpus[0].logged.empty());
  EXPECT_EQ(driver.gpus[1].logged.size(), 1U);
  machine.write("/dev/kmsg", first +
                                 "4,9,7300000000,-;NVRM: Xid (PCI:0000:01:00): 31\n"
                                 "4,9,7300000000,-;NVRM: Xid (PCI:0000:99:00): 48\n");
  driver = two_gpus();
  log.fill(driver);
  EXPECT_EQ(driver.gpus[0].logged.size(), 1U);
  EXPECT_EQ(driver.gpus[1].logged.size(), 1U) << "once, though it was seen before";
  ASSERT_EQ(driver.logged_elsewhere.size(), 1U);
  EXPECT_EQ(driver.logged_elsewhere[0].xid, 48U);
  EXPECT_EQ(driver.log_problem, "");
}

TEST(XidLog, ItsClockStandsStillWhileTheMachineIsSuspended) {
  Machine machine;
  machine.write("/dev/kmsg", "4,9,7300000000,-;NVRM: Xid (PCI:0000:01:00): 31\n");
  XidLog log(machine.root());
  for (const double suspended : {0.0, 100.0, 150.0}) {
    DriverSample driver = two_gpus();
    log.fill(driver, suspended);
    ASSERT_EQ(driver.gpus[0].logged.size(), 1U);
    EXPECT_DOUBLE_EQ(driver.gpus[0].logged[0].at, 7300 + suspended);
  }
}

TEST(XidLog, OneThatCannotBeReadIsAReasonAndNoError) {
  Machine machine;
  DriverSample driver = two_gpus();
  XidLog(machine.root()).fill(driver);
  EXPECT_FALSE(driver.log_problem.empty());
  machine.write("/dev/kmsg/folder", "");  // may be opened, but not read
  driver = two_gpus();
  XidLog(machine.root()).fill(driver);
  EXPECT_FALSE(driver.log_problem.empty());
}

TEST(XidLog, OfThisMachineIsReadWithoutWaiting) {
  DriverSample driver = two_gpus();
  XidLog log("");
  log.fill(driver);
  log.fill(driver);
}

/// A machine whose second GPU fell off the bus before the driver was asked.
TEST(XidLog, OfAGpuThatIsNotListedIsAFault) {
  const std::string text = "gpu 0 power=60\nproc 100 name=bash\n";
  Machine machine;
  machine.write_host(false);
  machine.write_world(Scenario::parse("s", text).at(0));
  machine.use_driver(text);
  const auto at = static_cast<unsigned long long>(1e6 * (Scenario::kUptime - 120));
  machine.write("/dev/kmsg", "4,1," + std::to_string(at) + ",-;NVRM: Xid (PCI:0000:3b:00): 79, pid=7, name=x\n");
  double time = Scenario::kUptime;
  SystemSourceOptions options;
  options.root = machine.root();
  options.now = [&] { return time; };
  options.wait = [&](double until) { time = until; };
  const Report report = run_inspection(*system_source(options), Thresholds(), {});
  EXPECT_EQ(report.exit_code(), 2);
  ASSERT_FALSE(report.findings.empty());
  EXPECT_FALSE(report.findings[0].gpu);
  EXPECT_NE(report.findings[0].because.at(0).find("2 min ago, of pid 7 (x)"), std::string::npos)
      << report.findings[0].because[0];
}

}  // namespace
