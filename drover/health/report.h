// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

/// What an inspection says. Plain values: any thread, any process. Texts may hold whatever a process calls itself:
/// sanitize (os/terminal.h) before a terminal sees them.
namespace drover::inline v1::health {

/// kUnknown stands beside the others: something could not be judged.
enum class Severity { kInfo, kUnknown, kWarning, kCritical };
enum class Confidence { kNone, kLow, kMedium, kHigh };
const char* to_text(Severity severity) noexcept;
const char* to_text(Confidence confidence) noexcept;

/// The rules; kG0 is the gate "cannot judge", kHost are findings about CPUs and memory, kRanks compares the ranks of a
/// job over many nodes (merge.h).
enum class Rule { kG0, kR1, kR2, kR3, kR4, kR5, kR6, kR7, kR8, kR9, kHost, kRanks };
const char* to_text(Rule rule) noexcept;

/// A value, or the reason why there is none.
template <class T>
struct Maybe {
  std::optional<T> value;
  std::string reason;

  explicit operator bool() const noexcept { return value.has_value(); }
  const T& operator*() const { return *value; }
};

/// One verdict with its evidence. Order of `action`: ask, keep evidence, end it gently, and only then by force.
struct Finding {
  Rule rule = Rule::kHost;
  Severity severity = Severity::kInfo;
  Confidence confidence = Confidence::kNone;
  std::string verdict;     ///< "SPINNING, NO PROGRESS"
  std::string node;        ///< in a merged report only
  std::optional<int> gpu;  ///< index
  std::string gpu_uuid;
  std::optional<int> pid;
  std::string user, command, job;
  std::optional<double> age_s;   ///< of the process
  std::optional<double> held_s;  ///< for how long the condition is known to hold
  std::optional<std::uint64_t> memory_bytes;
  std::vector<std::string> because, not_because, action;
  std::vector<std::string> limits;  ///< the thresholds that decided, as "r8.warn=1h"
};

/// Shares of time in which some, or all, tasks waited (PSI), over 10 and 60 seconds.
struct Stall {
  double some10 = 0, some60 = 0, full10 = 0, full60 = 0;
};

struct CpuReport {
  std::string model;
  std::size_t logical = 0;  ///< online
  std::size_t physical = 0;
  std::size_t sockets = 0, numa_nodes = 0;
  bool hyperthreading = false;
  std::size_t performance_cores = 0, efficiency_cores = 0;  ///< both 0: all cores are alike
  std::size_t allowed = 0;                                  ///< logical CPUs this process may run on
  std::optional<double> quota;                              ///< CPUs, the tightest of the cgroup and its ancestors
  Maybe<double> busy, iowait, steal;                        ///< shares of all CPUs over the interval
  std::vector<std::optional<double>> each;                  ///< busy share by CPU number
  Maybe<double> cgroup_busy;                                ///< of what this cgroup may use
  /// Share of the quota's periods in the interval in which it was used up: of the cgroup, or of one above it, the
  /// worst.
  Maybe<double> throttled;
  double load1 = 0;
  Maybe<Stall> pressure;
};

struct MemoryReport {
  std::uint64_t total = 0, available = 0, swap_total = 0, swap_free = 0, shared = 0;  ///< bytes, of the machine
  std::uint64_t huge_total = 0, huge_free = 0;                                        ///< bytes in huge pages
  std::optional<std::uint64_t> limit, limit_used;  ///< of the tightest cgroup; cache that can go is not counted
  std::optional<std::uint64_t> oom_kills;
  Maybe<Stall> pressure, io_pressure;
};

struct ProcessReport {
  int pid = 0, parent = 0;
  std::optional<int> inner_pid;
  std::string user, name, command, job, container;
  std::optional<std::uint64_t> start_ticks;
  char state = '?';  ///< as in ps; '-': it is not there
  std::optional<double> age_s;
  /// Of one core. On a GPU: with all its descendants, since the look before; of the busiest: its own, over the window.
  std::optional<double> cpu_share;
  std::optional<int> rank, world_size;
  std::string job_group;            ///< equal for the ranks of one job on all nodes; empty: no rank, or nothing tells
  bool environment_unread = false;  ///< then rank and job are not known
};

struct GpuProcessReport {
  ProcessReport process;
  std::string uses;  ///< "C", "G", "M" (compute, graphics, MPS client) or several
  std::optional<std::uint32_t> gpu_instance, compute_instance;  ///< of MIG
  Maybe<std::uint64_t> memory_bytes;
  Maybe<double> cores, memory;  ///< shares of the GPU, the mean over the samples
};

/// One point of a GPU's past.
struct GpuPoint {
  double at = 0;  ///< seconds: in a report since 1970, in the history since boot
  std::optional<double> cores = {};
  std::optional<std::uint64_t> memory_used = {};
  std::optional<double> power_w = {};
};

/// An Xid in the kernel's log since boot.
struct LoggedXidReport {
  std::uint64_t xid = 0;
  double age_s = 0;
  std::optional<int> pid;
  std::string name;  ///< of the process
};

/// A part of a GPU that is divided (MIG).
struct GpuInstanceReport {
  std::uint32_t gpu_instance = 0, compute_instance = 0;
  std::string name, uuid;
  Maybe<std::uint64_t> memory_total, memory_used;
  Maybe<double> cores;  ///< busy share at the last look
};

struct GpuReport {
  int index = 0;
  std::string vendor;  ///< "nvidia", "amd", "intel"
  std::string name, uuid, bus;
  std::string problem;  ///< why there is nothing more to say: "does not answer (in nvmlDeviceGetPowerUsage)"
  Maybe<std::uint64_t> memory_total, memory_used, memory_reserved;
  Maybe<double> cores, memory;  ///< busy shares, the mean over the samples
  Maybe<double> power_w, power_limit_w, temperature_c, clock_mhz, clock_memory_mhz;
  Maybe<std::uint64_t> ecc_uncorrected;
  Maybe<std::uint64_t> remap_pending, remap_failed;  ///< 1: a memory row waits for its remap; remapping one failed
  std::vector<std::string> slowed_by;                ///< why the clocks are lower than they could be
  std::vector<std::uint64_t> xids;
  std::vector<LoggedXidReport> logged_xids;  ///< the newest first, at most kLoggedXids
  std::optional<bool> mig;
  std::vector<GpuInstanceReport> instances;
  Maybe<double> occupancy, tensor, memory_traffic;  ///< of Hopper and later: shares, at the last look
  std::vector<GpuProcessReport> processes;
  std::vector<GpuPoint> series;  ///< of this window and of the history, ascending, at most kSeriesPoints
};

constexpr std::size_t kLoggedXids = 20;

struct DriverReport {
  std::string state;  ///< "ok", "no_gpu", "not_answering" ...
  std::string version, cuda, problem;
  std::string log_problem = {};  ///< why the kernel's log was not read for Xids; empty: it was, or there was no need
};

/// "slurm 4711, rank 13"; empty: neither is known.
std::string job_text(const ProcessReport& process);

/// 2 with a critical finding, 1 with a warning, 3 when nothing is worse but something could not be judged, else 0.
int exit_code_of(const std::vector<Finding>& findings, bool unknown_counts) noexcept;
/// "WARNING: GPU 3 IDLE ... (and 2 notes)": the first finding, and how many others there are. For a code that is not 0.
std::string verdict_of(const std::vector<Finding>& findings, int code);

/// The whole. Lists are in a stable order: findings the worst first, GPUs by index, processes by memory.
struct Report {
  std::string host, kernel;
  std::string node;                     ///< its name in the cluster: Slurm's, else the host's
  std::optional<int> rank, world_size;  ///< of the inspection itself, under srun or mpirun
  std::string job;
  double unix_time = 0;
  double window_s = 0;  ///< what was really watched
  int samples = 0;
  bool once = true;        ///< a single look
  bool container = false;  ///< not in the machine's own pid namespace
  std::string demo;        ///< name of the situation that was played, empty for a real machine
  CpuReport cpu;
  MemoryReport memory;
  std::size_t processes = 0;
  std::map<char, std::size_t> states;
  std::vector<ProcessReport> busiest;
  DriverReport driver;
  std::vector<GpuReport> gpus;
  std::vector<Finding> findings;
  std::vector<std::string> warnings;
  std::vector<std::string> limits;  ///< all thresholds in force
  bool unknown_counts = true;

  /// 0 nothing above info, 1 a warning, 2 a critical finding, 3 nothing worse, but something could not be judged.
  int exit_code() const noexcept;
  /// One line: "CRITICAL: GPU 3 FAULT: the GPU is lost; and 2 warnings".
  std::string verdict() const;
};

}  // namespace drover::inline v1::health
