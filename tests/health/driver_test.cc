// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>

#include "drover/health/engine.h"
#include "drover/health/helper/records.h"
#include "drover/health/nvml/client.h"
#include "drover/health/nvml/library.h"
#include "harness/deadline.h"
#include "health/fixture.h"
#include "health/read_messages.h"
#include "os/fixture_tree.h"

namespace {

using namespace drover::health;
using drover::Duration;
using drover_test::Machine;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

constexpr const char* kTwoGpus =
    "gpu 0 power=100\ngpu 1 power=200\non 0 4000 vram=30 sm=90 mem=40\non 1 4001 vram=20\non 1 4002 vram=1 uses=G\n";

DriverSample look(const std::string& situation, const std::string& variant = {}, double deadline = 5) {
  Machine machine;
  machine.use_driver(situation, variant);
  nvml::Client client(Duration(deadline), 2);
  client.begin();
  return client.finish();
}

TEST(Driver, TellsGpusAndTheirProcesses) {
  const DriverSample driver = look(kTwoGpus);
  ASSERT_EQ(driver.state, DriverState::kOk) << driver.problem;
  EXPECT_EQ(driver.version, "550.90.07");
  EXPECT_EQ(driver.cuda, 12040);
  ASSERT_EQ(driver.gpus.size(), 2U);
  EXPECT_EQ(driver.gpus[0].uuid, "GPU-00000000");
  EXPECT_EQ(driver.gpus[1][Metric::kPowerMilliwatts].value, 200'000U);
  ASSERT_EQ(driver.gpus[0].rows.size(), 1U);
  EXPECT_EQ(driver.gpus[0].rows[0].pid, 4000);
  EXPECT_EQ(driver.gpus[0].rows[0].memory.value, 30ULL << 30U);
  ASSERT_EQ(driver.gpus[0].active.size(), 1U);
  EXPECT_EQ(driver.gpus[0].active[0].cores, 90U);
  EXPECT_EQ(driver.gpus[1].activity.code, Reading::kNotFound) << "nobody is active, which is not an error";
  EXPECT_EQ(driver.gpus[1].rows[1].uses, kUsesGraphics);
}

TEST(Driver, IsAskedForTheLastSecondAfterTheClockWasSetBack) {
  constexpr std::uint64_t kNow = 1'700'000'000'000'000, kSecond = 1'000'000;
  EXPECT_EQ(nvml::ask_activity_since(0, kNow), kNow - kSecond);
  EXPECT_EQ(nvml::ask_activity_since(kNow - 5 * kSecond, kNow), kNow - 5 * kSecond);
  EXPECT_EQ(nvml::ask_activity_since(kNow, kNow - 3600 * kSecond), kNow - 3601 * kSecond) << "set back by an hour";
  EXPECT_EQ(nvml::ask_activity_since(kNow, 5), 0U);
}

class RowSizes : public testing::TestWithParam<const char*> {};

TEST_P(RowSizes, RowsOfAnySizeAreReadRight) {
  const DriverSample driver = look(std::string(kTwoGpus) + "host " + GetParam() + "\n");
  ASSERT_EQ(driver.gpus.size(), 2U);
  ASSERT_EQ(driver.gpus[1].rows.size(), 2U) << GetParam();
  EXPECT_EQ(driver.gpus[1].rows[0].pid, 4001);
  EXPECT_EQ(driver.gpus[1].rows[0].memory.value, 20ULL << 30U);
  EXPECT_EQ(driver.gpus[1].rows[1].pid, 4002);
}

INSTANTIATE_TEST_SUITE_P(
    Driver, RowSizes,
    testing::Values("row=24", "row=32", "row=24 zeroes=1", "row=24 constant=100", "row=32 constant=100",
                    "row=24 constant=3000",
                    "missing=nvmlDeviceGetComputeRunningProcesses_v3,nvmlDeviceGetGraphicsRunningProcesses_v3",
                    "missing=nvmlDeviceGetComputeRunningProcesses_v3,nvmlDeviceGetGraphicsRunningProcesses_v3,"
                    "nvmlDeviceGetComputeRunningProcesses_v2"));

TEST(Driver, AnOldLibraryHasFewFunctionsAndIsStillUsed) {
  const DriverSample driver = look(kTwoGpus, "old");
  ASSERT_EQ(driver.state, DriverState::kOk) << driver.problem;
  ASSERT_EQ(driver.gpus.size(), 2U);
  EXPECT_EQ(driver.gpus[0].rows[0].memory.value, 30ULL << 30U);
  EXPECT_EQ(driver.gpus[0][Metric::kMemoryReserved].code, Reading::kNoFunction);
  EXPECT_EQ(driver.gpus[0][Metric::kEnergyMillijoules].code, Reading::kNoFunction);
  EXPECT_EQ(driver.gpus[0].activity.code, Reading::kNoFunction);
}

TEST(Driver, JunkRowsAreCountedAndMemoryOverTheTotalIsNotANumber) {
  const DriverSample driver = look("gpu 0\nhost constant=100\non 0 4000 vram=na\non 0 4001 vram=900000\n");
  ASSERT_EQ(driver.gpus.size(), 1U);
  EXPECT_GE(driver.gpus[0].junk_rows, 98U);
  ASSERT_EQ(driver.gpus[0].rows.size(), 2U);
  EXPECT_FALSE(driver.gpus[0].rows[0].memory.ok()) << "17179869184 GiB is what it would else be";
  EXPECT_FALSE(driver.gpus[0].rows[1].memory.ok());
}

struct InitCase {
  int code;
  DriverState state;
};
class InitFails : public testing::TestWithParam<InitCase> {};
TEST_P(InitFails, AndTheReasonIsTold) {
  const DriverSample driver = look("gpu 0\nhost init=" + std::to_string(GetParam().code) + "\n");
  EXPECT_EQ(driver.state, GetParam().state);
  EXPECT_FALSE(driver.problem.empty());
  EXPECT_TRUE(driver.gpus.empty());
}
INSTANTIATE_TEST_SUITE_P(Driver, InitFails,
                         testing::Values(InitCase{9, DriverState::kNotLoaded}, InitCase{4, DriverState::kNoPermission},
                                         InitCase{17, DriverState::kBlocked}, InitCase{18, DriverState::kMismatch},
                                         InitCase{15, DriverState::kGpuFault}, InitCase{16, DriverState::kGpuFault},
                                         InitCase{8, DriverState::kFailed}, InitCase{999, DriverState::kFailed}));

TEST(Driver, ALibraryThatIsNotThereIsNoError) {
  setenv("LD_LIBRARY_PATH", "/nonexistent", 1);
  for (const std::size_t devices : {0, 1}) {
    nvml::Client client(Duration(5), devices);
    client.begin();
    const DriverSample driver = client.finish();
    EXPECT_EQ(driver.state, devices == 0 ? DriverState::kNoGpu : DriverState::kNoLibrary);
    EXPECT_EQ(driver.problem.empty(), devices == 0);
  }
}

TEST(Driver, OneGpuThatCannotBeOpenedDoesNotHideTheOther) {
  const DriverSample driver = look(
      std::string(kTwoGpus) + "host error.nvmlDeviceGetHandleByIndex_v2=15 from.nvmlDeviceGetHandleByIndex_v2=2\n");
  ASSERT_EQ(driver.gpus.size(), 2U);
  int lost = 0;
  for (const GpuSample& gpu : driver.gpus) lost += gpu[Metric::kMemoryTotal].code == Reading::kGpuLost ? 1 : 0;
  EXPECT_EQ(lost, 1);
}

TEST(Driver, AHangingCallIsReportedInTimeAndTheOtherGpuInFull) {
  Machine machine;
  machine.use_driver("gpu 0\ngpu 1 stuck=nvmlDeviceGetPowerUsage\non 0 4000 vram=30\n");
  const auto begin = Clock::now();
  {
    nvml::Client client(Duration(0.5), 2);
    for (int round = 0; round < 3; ++round) {
      client.begin();
      const DriverSample driver = client.finish();
      ASSERT_EQ(driver.gpus.size(), 2U);
      EXPECT_EQ(driver.gpus[1].stuck_in, "nvmlDeviceGetPowerUsage");
      EXPECT_EQ(driver.gpus[0].stuck_in, "");
      EXPECT_EQ(driver.gpus[0].rows.size(), 1U);
    }
  }
  EXPECT_LT(seconds_since(begin), 1.2) << "the later rounds wait for nobody who hangs";
}

TEST(Driver, AHangWhileInitialisingIsReportedInTime) {
  Machine machine;
  machine.use_driver("gpu 0\nhost hang=nvmlInit_v2\n");
  const auto begin = Clock::now();
  nvml::Client client(Duration(0.4), 1);
  client.begin();
  const DriverSample driver = client.finish();
  EXPECT_LT(seconds_since(begin), 0.4 + 0.1);
  EXPECT_EQ(driver.state, DriverState::kNotAnswering);
  EXPECT_FALSE(driver.uninterruptible) << "it sleeps in the usual way";
}

TEST(Driver, AHelperThatDiesIsReportedAndNotWaitedFor) {
  Machine machine;
  machine.use_driver("gpu 0\nhost delay.nvmlInit_v2=60\n");
  const auto begin = Clock::now();
  nvml::Client client(Duration(20), 1);
  client.begin();
  ASSERT_EQ(kill(client.helper_pid(), SIGKILL), 0);
  const DriverSample driver = client.finish();
  EXPECT_LT(seconds_since(begin), 5);
  EXPECT_EQ(driver.state, DriverState::kFailed);
  client.begin();
  EXPECT_EQ(client.finish().state, DriverState::kFailed) << "writing to it again is no signal for us";
}

TEST(Driver, AHelperThatDiesBetweenTwoRoundsIsNoSignalForUs) {
  Machine machine;
  machine.use_driver("gpu 0\n");
  nvml::Client client(Duration(20), 1);
  client.begin();
  EXPECT_EQ(client.finish().state, DriverState::kOk);
  ASSERT_EQ(kill(client.helper_pid(), SIGKILL), 0);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(client.helper_pid()), &info, WEXITED | WNOWAIT), 0);
  client.begin();
  const DriverSample driver = client.finish();
  EXPECT_EQ(driver.state, DriverState::kFailed);
  EXPECT_EQ(driver.gpus.at(0).stuck_in, "") << "the GPU has done nothing wrong";
}

TEST(Driver, AHelperThatDoesNotRunIsNoFaultOfTheGpu) {
  Machine machine;
  machine.use_driver("gpu 0\non 0 4000 vram=30\n");
  nvml::Client client(Duration(1), 1);
  client.begin();
  ASSERT_EQ(client.finish().gpus.at(0).not_asked, "");
  const int pid = client.helper_pid();
  ASSERT_EQ(kill(pid, SIGSTOP), 0);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(pid), &info, WSTOPPED | WNOWAIT), 0);
  client.begin();
  const GpuSample gpu = client.finish().gpus.at(0);
  EXPECT_EQ(gpu.stuck_in, "");
  EXPECT_NE(gpu.not_asked.find("does not run"), std::string::npos) << gpu.not_asked;
  EXPECT_EQ(gpu.rows.size(), 1U) << "who was on it is still known";
  ASSERT_EQ(kill(pid, SIGCONT), 0);
  const auto answers = [&] {
    client.begin();
    return client.finish().gpus.at(0).not_asked.empty();
  };
  EXPECT_TRUE(drover_test::eventually(std::chrono::seconds(10), answers));
}

TEST(Driver, AnAnswerThatComesLateIsNotForgottenAndNotTakenForANewOne) {
  Machine machine;
  machine.use_driver(
      "gpu 0\ngpu 1\nhost delay.nvmlDeviceGetPowerUsage=0.7\nat 5 host delay.nvmlDeviceGetPowerUsage=0\n");
  machine.set_driver_time(0);
  nvml::Client client(Duration(0.4), 2);
  client.begin();
  EXPECT_NE(client.finish().gpus.at(0).stuck_in, "");
  machine.set_driver_time(6);
  const auto answers = [&] {
    client.begin();
    const DriverSample driver = client.finish();
    return driver.gpus.at(0).stuck_in.empty() && driver.gpus.at(1).stuck_in.empty();
  };
  EXPECT_TRUE(drover_test::eventually(std::chrono::seconds(10), answers));
  EXPECT_TRUE(answers()) << "and from then on";
}

TEST(Driver, AnXidIsToldOnce) {
  Machine machine;
  machine.use_driver("gpu 0\nat 5 gpu 0 xid=79\n");
  nvml::Client client(Duration(5), 1);
  std::size_t told = 0;
  for (const double time : {0.0, 5.0, 6.0}) {
    machine.set_driver_time(time);
    client.begin();
    told += client.finish().gpus.at(0).xids.size();
  }
  EXPECT_EQ(told, 1U);
}

TEST(Driver, PartsOfADividedGpuHaveMemoryAndProcesses) {
  for (const char* const lists : {"", "host mig_lists=1\n", "host row=32\n"}) {
    const DriverSample driver = look(std::string("gpu 0 mig=1 instances=1:0:40,5:1:20\non 0 4000 vram=30 gi=1 sm=9\n"
                                                 "on 0 4001 vram=10 gi=5 ci=1\n") +
                                     lists);
    ASSERT_EQ(driver.gpus.size(), 1U);
    const GpuSample& gpu = driver.gpus[0];
    ASSERT_EQ(gpu.instances.size(), 2U);
    EXPECT_EQ(gpu.instances[1].gpu_instance, 5U);
    EXPECT_EQ(gpu.instances[1].compute_instance, 1U);
    EXPECT_EQ(gpu.instances[1].memory_total.value, 20ULL << 30U);
    EXPECT_EQ(gpu.instances[1].memory_used.value, 10ULL << 30U);
    EXPECT_EQ(gpu.instances[0].uuid, "MIG-0-1");
    EXPECT_EQ(gpu.instances[0].cores.code, Reading::kMig);
    ASSERT_EQ(gpu.rows.size(), 2U) << lists;
    EXPECT_EQ(gpu.rows[1].gpu_instance, 5U);
    EXPECT_EQ(gpu.rows[1].memory.value, 10ULL << 30U);
    EXPECT_EQ(gpu[Metric::kUtilCores].code, Reading::kMig) << "never 0";
    EXPECT_EQ(gpu.activity.code, Reading::kMig);
  }
}

TEST(Driver, CountersOfPartsTellWhatTheirProcessesDo) {
  Machine machine;
  machine.use_driver(
      "gpu 0 mig=1 instances=1:0:40,2:0:40,3:0:9 gpm=1\non 0 4000 vram=30 gi=1 sm=80\non 0 4001 vram=30 gi=2\n"
      "on 0 4002 vram=1 gi=3 sm=5\non 0 4003 vram=1 gi=3\n");
  nvml::Client client(Duration(5), 1);
  GpuSample gpu;
  for (int look = 0; look < 100; ++look) {  // with more samples than the false driver has room for
    machine.set_driver_time(look);
    client.begin();
    gpu = client.finish().gpus.at(0);
    if (look == 0) {
      EXPECT_EQ(gpu.activity.code, Reading::kOneLook);
    }
  }
  EXPECT_EQ(gpu.instances.at(0).cores.value, 80U);
  ASSERT_EQ(gpu.active.size(), 1U);
  EXPECT_EQ(gpu.active[0].pid, 4000);
  EXPECT_EQ(gpu.rows.at(1).use_code, Reading::kOk) << "its part rests, so it does";
  EXPECT_EQ(gpu.rows.at(2).use_code, Reading::kUntold);
  EXPECT_EQ(gpu.rows.at(3).use_code, Reading::kUntold);
}

TEST(Driver, CountersOfAWholeGpuAreTheDifferenceOfTwoLooks) {
  Machine machine;
  machine.use_driver("gpu 0 gpm=1 tensor=40.2 occupancy=30 dram=200\ngpu 1\n");
  nvml::Client client(Duration(5), 2);
  client.begin();
  EXPECT_EQ(client.finish().gpus.at(0)[Metric::kTensor].code, Reading::kOneLook);
  machine.set_driver_time(1);
  client.begin();
  const DriverSample driver = client.finish();
  EXPECT_EQ(driver.gpus.at(0)[Metric::kTensor].value, 41U) << "rounded up: little is not nothing";
  EXPECT_EQ(driver.gpus.at(0)[Metric::kOccupancy].value, 30U);
  EXPECT_EQ(driver.gpus.at(0)[Metric::kMemoryTraffic].code, Reading::kNoValue) << "200 %";
  EXPECT_EQ(driver.gpus.at(1)[Metric::kTensor].code, Reading::kNotSupported);
}

TEST(Driver, MigOnAnOldDriverIsNoReasonToFail) {
  const DriverSample driver = look(
      "gpu 0 mig=1 instances=1:0:40\non 0 4000 vram=30 gi=1\nhost "
      "missing=nvmlDeviceGetMaxMigDeviceCount,nvmlGpmQueryDeviceSupport\n");
  ASSERT_EQ(driver.gpus.size(), 1U);
  EXPECT_TRUE(driver.gpus[0].instances.empty());
  EXPECT_EQ(driver.gpus[0].rows.size(), 1U);
  EXPECT_EQ(driver.gpus[0].activity.code, Reading::kMig);
}

TEST(RowSize, IsSeenFromWhereTheWritingStopped) {
  for (const std::size_t row : {24, 32}) {
    std::vector<unsigned char> buffer(128 * 32 + 64, nvml::kSentinel);
    for (const std::size_t count : {1, 2, 100}) {
      std::fill_n(buffer.begin(), count * row, static_cast<unsigned char>(1));
      EXPECT_EQ(nvml::row_size(buffer, count), row);
    }
  }
  EXPECT_EQ(nvml::row_size(std::vector<unsigned char>(1000, 0), 2), 0U) << "written over: it tells nothing";
  EXPECT_EQ(nvml::row_size(std::vector<unsigned char>(64, nvml::kSentinel), 1000), 0U);
}

TEST(Rows, ACountBeyondTheBufferIsCut) {
  GpuSample sample;
  nvml::take_rows(sample, std::vector<unsigned char>(100, 1), 4'000'000'000U, 24, kUsesCompute);
  EXPECT_LE(sample.rows.size() + sample.junk_rows, 4U);
}

TEST(Records, ComeBackAsTheyWere) {
  GpuSample sample;
  sample.index = 3;
  sample.name = "n";
  sample.rows = {{5, kUsesMps, {0, 77}, Reading::kUntold, 3, 1}};
  sample.instances = {{3, 1, "part", "MIG-x", {0, 5}, {0, 6}, {Reading::kMig, 0}}};
  sample.active = {{5, 90, 40}};
  sample.xids = {79};
  sample[Metric::kMig] = {0, 1};
  helper::MessageReader reader;
  const std::string bytes = encode(helper::Answer{7, sample}) + helper::encode(helper::Stuck{1, "call"});
  for (const char& c : bytes) reader.add(std::as_bytes(std::span(&c, 1)));
  const auto first = reader.next(), second = reader.next();
  ASSERT_TRUE(first && second);
  const auto back = helper::decode_answer(first->payload);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->gpu.index, 3);
  EXPECT_EQ(back->gpu.rows[0].memory.value, 77U);
  EXPECT_EQ(back->gpu.rows[0].use_code, Reading::kUntold);
  EXPECT_EQ(back->gpu.rows[0].gpu_instance, 3U);
  EXPECT_EQ(back->gpu.instances.at(0).uuid, "MIG-x");
  EXPECT_EQ(back->gpu.instances.at(0).memory_used.value, 6U);
  EXPECT_EQ(back->gpu.active[0].cores, 90U);
  EXPECT_EQ(back->gpu.xids[0], 79U);
  EXPECT_EQ(back->gpu[Metric::kMig].value, 1U);
  EXPECT_EQ(helper::decode_stuck(second->payload)->call, "call");
  EXPECT_FALSE(reader.next());
}

TEST(Records, NonsenseIsRefused) {
  GpuSample sample;
  sample.rows = {{5, 1, {0, 77}}};
  drover_test::fuzz(encode(helper::Answer{7, sample}), drover_test::read_messages);
}

}  // namespace
