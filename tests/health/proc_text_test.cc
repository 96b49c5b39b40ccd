// SPDX-License-Identifier: Apache-2.0
#include "drover/health/probe/proc_text.h"

#include <gtest/gtest.h>

#include "os/fixture_tree.h"

namespace {

using namespace drover::health;
using drover_test::fuzz;

constexpr const char* kStat =
    "4242 (a) b (c)) D 1 4240 4239 0 -1 4194304 100 0 0 0 250 30 0 0 20 0 17 0 123456 1000000 500 18446744073709551615 "
    "0 0\n";

TEST(Stat, NamesMayHoldBlanksAndParentheses) {
  ProcessBrief brief;
  ASSERT_TRUE(parse_stat(kStat, brief));
  EXPECT_EQ(brief.pid, 4242);
  EXPECT_EQ(brief.name, "a) b (c)");
  EXPECT_EQ(brief.state, 'D');
  EXPECT_EQ(brief.parent, 1);
  EXPECT_EQ(brief.group, 4240);
  EXPECT_EQ(brief.session, 4239);
  EXPECT_EQ(brief.cpu_ticks, 280U);
  EXPECT_EQ(brief.threads, 17);
  EXPECT_EQ(brief.start_ticks, 123456U);
}

TEST(Stat, WhatIsCutOrHasNoNameIsRefused) {
  ProcessBrief brief;
  for (const char* const text : {"", "12", "12 (x", "12 x) S 1", "0 (x) S 1 1 1", "-1 (x) S 1 1 1", "12 (x) SS 1 1 1",
                                 "12 (x) S 1 1 1 0 0 0 0 0 0 0 5"}) {
    EXPECT_FALSE(parse_stat(text, brief)) << text;
  }
}

TEST(Status, FindsAPendingKillInEitherMask) {
  EXPECT_TRUE(parse_status("Uid:\t5\t6\t7\t8\nSigPnd:\t0000000000000100\n").kill_pending);
  EXPECT_TRUE(parse_status("ShdPnd:\t0000000000000100\n").kill_pending);
  EXPECT_FALSE(
      parse_status("SigPnd:\t0000000000004000\nShdPnd:\t00000000000000ff\nSigBlk:\t0000000000000100\n").kill_pending);
}

TEST(Status, TakesTheEffectiveUserAndTheInnermostPid) {
  const StatusFields fields = parse_status("Uid:\t5\t6\t7\t8\nTracerPid:\t77\nNSpid:\t4242\t12\t1\n");
  EXPECT_EQ(fields.uid, 6U);
  EXPECT_EQ(fields.tracer, 77);
  EXPECT_EQ(fields.inner_pid, 1);
  EXPECT_EQ(parse_status("NSpid:\t4242\n").inner_pid, 0);
}

TEST(Io, AddsReadsAndWrites) {
  EXPECT_EQ(parse_io("rchar: 100\nwchar: 20\nsyscr: 1\n"), 120U);
  EXPECT_EQ(parse_io("rchar: 100\n"), std::nullopt);
  EXPECT_EQ(parse_io("rchar: 18446744073709551615\nwchar: 20\n"), 18446744073709551615ULL) << "saturates";
}

TEST(Environ, KeepsOnlyWhatIsWanted) {
  const std::string text("HOME=/x\0RANK=3\0RANK=4\0XRANK=9\0WORLD_SIZE=8=9\0RUBBISH\0", 54);
  const auto found = parse_environ(text, {"RANK", "WORLD_SIZE"});
  EXPECT_EQ(found.size(), 2U);
  EXPECT_EQ(found.at("RANK"), "3");
  EXPECT_EQ(found.at("WORLD_SIZE"), "8=9");
}

TEST(Environ, AValueIsCut) {
  const auto found = parse_environ("MASTER_ADDR=" + std::string(100'000, 'x'), {"MASTER_ADDR"});
  EXPECT_EQ(found.at("MASTER_ADDR"), std::string(256, 'x'));
}

TEST(Cmdline, JoinsArgumentsAndIsBounded) {
  EXPECT_EQ(parse_cmdline(std::string("python\0-c\0x y\0", 14)), "python -c x y");
  EXPECT_EQ(parse_cmdline(std::string(100, 'x'), 10), "xxxxxxxxxx");
  EXPECT_EQ(parse_cmdline(""), "");
}

TEST(Cgroup, TakesTheLongestPath) {
  EXPECT_EQ(parse_process_cgroup("12:cpu:/\n3:memory:/slurm/uid_1/job_7\n0::/user.slice\n"), "/slurm/uid_1/job_7");
  EXPECT_EQ(parse_process_cgroup("0::/\n"), "/");
  EXPECT_EQ(parse_process_cgroup("nonsense"), "");
}

TEST(CpuTimes, IdleAndWaitingAreNotBusyAndGuestsAreNotCountedTwice) {
  const auto table =
      parse_cpu_times("cpu  10 2 3 80 5 1 1 4 7 1\ncpu0 10 2 3 80 5 1 1 4 7 1\ncpu2 1 0 0 9 0 0 0 0\nintr 5\ncpu7 9\n");
  ASSERT_TRUE(table);
  EXPECT_EQ(table->all.total, 106U);
  EXPECT_EQ(table->all.busy, 21U);
  EXPECT_EQ(table->all.steal, 4U);
  ASSERT_EQ(table->cpus.size(), 3U) << "cpu1 is away, cpu7 comes after the CPUs";
  EXPECT_EQ(table->cpus[1].total, 0U);
  EXPECT_EQ(table->cpus[2].busy, 1U);
  EXPECT_FALSE(parse_cpu_times("intr 5\n"));
  EXPECT_LE(parse_cpu_times("cpu 1\ncpu99999999 1\n")->cpus.size(), 1U);
}

TEST(Meminfo, TakesBytesAndKnowsPagesWithoutUnit) {
  const auto info = parse_meminfo(
      "MemTotal:       1024 kB\nHugePages_Total:       3\nbad line\n:\nX: y kB\nHuge: 99999999999999999999 kB\n");
  EXPECT_EQ(info.at("MemTotal"), 1024U * 1024);
  EXPECT_EQ(info.at("HugePages_Total"), 3U);
  EXPECT_EQ(info.size(), 2U);
}

TEST(Pressure, ReadsSharesAndMissesFullOfTheCpu) {
  const auto pressure =
      parse_pressure("some avg10=12.50 avg60=3.00 avg300=0.00 total=1\nfull avg10=1.00 avg60=50.00 avg300=0 total=2\n");
  ASSERT_TRUE(pressure);
  EXPECT_DOUBLE_EQ(pressure->some10, 0.125);
  EXPECT_DOUBLE_EQ(pressure->full60, 0.5);
  EXPECT_TRUE(parse_pressure("some avg10=1.00 avg60=1.00 avg300=0 total=1\n"));
  EXPECT_FALSE(parse_pressure("full avg10=1.00\n"));
  EXPECT_DOUBLE_EQ(parse_pressure("some avg10=nan avg60=-4 total=1\n")->some60, 0);
}

TEST(Tcp, FindsSocketsThatListenForAServiceOnly) {
  const char* const text =
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
      "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1 x\n"
      "   1: 0100007F:1F90 0100007F:0050 01 00000000:00000000 00:00000000 00000000  1000        0 4712 1 x\n"
      "   2: 0100007F:A113 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4713 1 x\n"
      "   3: 0100007F:6D7C 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4714 1 x\n"
      "   4: 1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4715 1 x\n"
      "   5: 0100007F:1F901 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4716 1 x\n";
  EXPECT_EQ(parse_listening(text, 32'768), std::vector<std::uint64_t>{4711});
  EXPECT_EQ(parse_listening(text, 50'000), (std::vector<std::uint64_t>{4711, 4713}));
  EXPECT_EQ(socket_inode("socket:[4711]"), 4711U);
  EXPECT_EQ(socket_inode("pipe:[4711]"), std::nullopt);
  EXPECT_EQ(socket_inode("socket:[47"), std::nullopt);
  EXPECT_EQ(socket_inode(""), std::nullopt);
}

TEST(Tcp, PortsThatTheKernelOrALibraryOfTrainingChoseAreNoServices) {
  EXPECT_EQ(parse_first_free_port("32768\t60999\n"), 32'768);
  EXPECT_EQ(parse_first_free_port("49152\t65535\n"), 49'152);
  EXPECT_EQ(parse_first_free_port("1024\t65535\n"), 10'000) << "then the usual ports of services are still theirs";
  for (const char* const text : {"", "x", "-5 7"}) EXPECT_EQ(parse_first_free_port(text), 32'768) << text;
  for (const int port : {80, 8000, 30'000, 50'051}) EXPECT_TRUE(is_port_of_service(port, 32'768)) << port;
  for (const int port : {12'355, 28'028, 29'500, 32'768, 60'999, 65'535})
    EXPECT_FALSE(is_port_of_service(port, 32'768)) << port;
}

TEST(DeviceFiles, GpusAndControlFilesAreToldApart) {
  EXPECT_EQ(nvidia_minor("/dev/nvidia0"), 0);
  EXPECT_EQ(nvidia_minor("/dev/nvidia15"), 15);
  for (const char* const path :
       {"/dev/nvidia", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0x", "/dev/nvidia123456", "/tmp/nvidia0"}) {
    EXPECT_EQ(nvidia_minor(path), std::nullopt) << path;
  }
  EXPECT_TRUE(is_nvidia_control("/dev/nvidiactl"));
  EXPECT_TRUE(is_nvidia_control("/dev/nvidia-uvm"));
  EXPECT_FALSE(is_nvidia_control("/dev/nvidia0"));
}

TEST(Parsers, TakeAnyBytes) {
  fuzz(kStat, [](std::string_view text) {
    ProcessBrief brief;
    if (parse_stat(text, brief)) {
      EXPECT_GT(brief.pid, 0);
    }
  });
  fuzz("Uid:\t5\t6\t7\t8\nTracerPid:\t77\nNSpid:\t4242\t12\t1\nSigPnd:\t0000000000000100\n",
       [](std::string_view text) { parse_status(text); });
  fuzz("rchar: 100\nwchar: 20\n", [](std::string_view text) { parse_io(text); });
  fuzz(std::string_view("A=b\0RANK=3\0", 11), [](std::string_view text) { parse_environ(text, job_variables()); });
  fuzz("0::/user.slice/docker-0123.scope\n1:cpu:/x\n", [](std::string_view text) { parse_process_cgroup(text); });
  fuzz("cpu  10 2 3 80 5 1 1 4 7 1\ncpu0 10 2 3 80 5\ncpu2 1 0 0 9\n", [](std::string_view text) {
    if (const auto table = parse_cpu_times(text)) {
      EXPECT_LE(table->cpus.size(), 65'536U);
    }
  });
  fuzz("MemTotal: 1024 kB\nHugePages_Total: 3\n", [](std::string_view text) { parse_meminfo(text); });
  fuzz("some avg10=12.50 avg60=3.00\nfull avg10=1.00 avg60=50.00\n", [](std::string_view text) {
    if (const auto pressure = parse_pressure(text)) {
      EXPECT_LE(pressure->full60, 1);
    }
  });
  fuzz("heading\n 0: 1:2 3:4 0A 0:0 00:0 0 1000 0 4711 1\n",
       [](std::string_view text) { parse_listening(text, 32'768); });
  fuzz("socket:[4711]", [](std::string_view text) { socket_inode(text); });
  fuzz("/dev/nvidia12", [](std::string_view text) { nvidia_minor(text); });
}

}  // namespace
