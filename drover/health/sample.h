// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

/// What one look at the machine gives: facts as the kernel and the driver tell them, no judgement. Values.
namespace drover::inline v1::health {

/// The answer to one question to the driver. The codes are NVML's; negative ones are ours.
struct Reading {
  static constexpr int kOk = 0, kNotSupported = 3, kNoPermission = 4, kNotFound = 6, kTooSmall = 7, kTimeout = 10,
                       kNoFunction = 13, kGpuLost = 15, kResetRequired = 16;
  static constexpr int kNotAsked = -1, kNoValue = -2;  ///< never asked; the driver said "not available" by a value

  int code = kNotAsked;
  std::uint64_t value = 0;

  bool ok() const noexcept { return code == kOk; }
  std::optional<double> number(double factor = 1) const {
    return ok() ? std::optional(static_cast<double>(value) * factor) : std::nullopt;
  }
  /// Why there is no value, for people: "not supported by this GPU or driver". Empty when there is one.
  std::string why() const;
};

/// What is asked of each GPU. Percentages are 0 to 100; the other units are in the names.
enum class Metric {
  kMemoryTotal,  ///< bytes
  kMemoryUsed,   ///< without what the driver keeps for itself, when kMemoryReserved is known; else with it
  kMemoryReserved,
  kUtilCores,
  kUtilMemory,
  kPowerMilliwatts,
  kPowerLimitMilliwatts,
  kEnergyMillijoules,
  kTemperature,
  kClockCoresMhz,
  kClockMemoryMhz,
  kClockReasons,
  kPcieSendKilobytes,  ///< a second
  kPcieReceiveKilobytes,
  kPcieReplays,
  kNvlinkSendKib,
  kNvlinkReceiveKib,
  kEccUncorrected,
  kRemapPending,
  kRemapFailed,
  kRecoveryAction,
  kMig,
  kMinor,
  kCount
};
inline constexpr std::size_t kMetrics = static_cast<std::size_t>(Metric::kCount);
const char* metric_name(Metric metric) noexcept;

/// How a process uses a GPU. One process may do several.
enum : std::uint32_t { kUsesCompute = 1, kUsesGraphics = 2, kUsesMps = 4 };

/// A row of the driver's lists.
struct GpuProcessRow {
  int pid = 0;
  std::uint32_t uses = 0;
  Reading memory;  ///< bytes
};

/// A row of the driver's list of processes that did something lately.
struct GpuActivityRow {
  int pid = 0;
  std::uint32_t cores = 0, memory = 0;  ///< percent, the most of all rows of this process
};

struct GpuSample {
  int index = 0;
  std::string name, uuid, bus;
  std::array<Reading, kMetrics> readings{};
  Reading processes;  ///< whether `rows` can be trusted
  Reading activity;   ///< whether `active` can be trusted; kNotFound: nobody did anything
  std::vector<GpuProcessRow> rows;
  std::vector<GpuActivityRow> active;
  std::vector<std::uint64_t> xids;  ///< that arrived since the last look
  std::uint32_t junk_rows = 0;      ///< rows of the driver that made no sense
  std::uint32_t row_bytes = 0;      ///< size of the driver's rows, 0: not known
  std::string stuck_in;             ///< the call that did not come back; all else is as it was before, or empty

  const Reading& operator[](Metric metric) const noexcept { return readings[static_cast<std::size_t>(metric)]; }
  Reading& operator[](Metric metric) noexcept { return readings[static_cast<std::size_t>(metric)]; }
};

/// What became of the driver as a whole.
enum class DriverState {
  kNoGpu,  ///< there is no NVIDIA device here
  kOk,
  kNoLibrary,  ///< a device, but no libnvidia-ml
  kNotLoaded,  ///< a device, but no kernel module
  kMismatch,   ///< library and kernel module are of different versions
  kNoPermission,
  kBlocked,  ///< the cgroup forbids the device files
  kAsleep,   ///< all GPUs are powered down, and were not woken
  kNotAnswering,
  kFailed,
};

struct DriverSample {
  DriverState state = DriverState::kNoGpu;
  std::string version, problem;  ///< problem: one sentence with what to do; empty for kOk
  int cuda = 0;                  ///< 12040 for 12.4; 0: not known
  bool uninterruptible = false;  ///< kNotAnswering: who asked it is in uninterruptible sleep
  std::vector<GpuSample> gpus;
};

/// /proc/PID/stat: of every process.
struct ProcessBrief {
  int pid = 0, parent = 0, group = 0, session = 0, threads = 0;
  char state = '?';
  std::uint64_t start_ticks = 0;  ///< since boot
  std::uint64_t cpu_ticks = 0;
  std::string name;
};

struct ThreadSample {
  int tid = 0;
  char state = '?';
  std::string waits_in;  ///< kernel function; empty: running, or not to be told
};

/// More about those that matter. What may not be read is nullopt or empty.
struct ProcessDetail {
  std::optional<std::uint32_t> uid;
  std::string command;  ///< arguments joined by blanks; bytes as they are, so sanitize before printing
  std::string cgroup;
  std::map<std::string, std::string> environment;  ///< only the variables of job_variables()
  bool environment_known = false;
  bool kill_pending = false;
  int tracer = 0;
  int inner_pid = 0;  ///< in the innermost pid namespace, when that is another one
  std::optional<std::uint64_t> io_bytes;
  std::vector<ThreadSample> threads;
  bool threads_cut = false;
  std::optional<bool> listens;  ///< on a TCP port
};

/// Who has device files of GPUs open.
struct Holder {
  int pid = 0;
  std::vector<int> minors;
  bool control_only = false;  ///< nvidiactl or nvidia-uvm, but no GPU
};
struct HolderScan {
  bool done = false;
  std::vector<Holder> holders;
  int unreadable = 0;  ///< processes whose descriptors may not be looked at
};

struct CpuTimes {
  std::uint64_t busy = 0, total = 0, iowait = 0, steal = 0;
};

struct Pressure {
  double some10 = 0, some60 = 0, full10 = 0, full60 = 0;  ///< shares, 0 to 1
};

struct HostSample {
  CpuTimes cpu;
  std::vector<CpuTimes> cpus;                    ///< by CPU number; empty entries for those that are away
  std::optional<std::uint64_t> cgroup_usage_us;  ///< CPU time of the own cgroup
  std::optional<std::uint64_t> cgroup_throttled_us;
  std::vector<ProcessBrief> processes;  ///< ascending by pid
  std::map<int, ProcessDetail> details;
  int unreadable_processes = 0;
};

struct Sample {
  double at = 0;  ///< seconds since boot (CLOCK_MONOTONIC), so that two programs agree
  HostSample host;
  DriverSample driver;
};

/// nullptr when there is none.
const ProcessBrief* find_process(const HostSample& host, int pid) noexcept;
const ProcessDetail* find_detail(const HostSample& host, int pid) noexcept;

/// The environment variables that say what job a process belongs to.
const std::vector<std::string>& job_variables();

}  // namespace drover::inline v1::health
