// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "drover/health/rules/streak.h"
#include "drover/health/sample.h"
#include "drover/health/thresholds.h"

namespace drover::inline v1::health {

/// A process of this boot: its number and start time. The time is 0 for a process that is not in the table.
using ProcessKey = std::pair<int, std::uint64_t>;

/// What is remembered of a process over many looks.
struct ProcessTrack {
  Streak stuck;    ///< one and the same thread uninterruptible
  Streak killed;   ///< SIGKILL is pending
  Streak defunct;  ///< the leader is a zombie
  Streak calm;     ///< it and its descendants use little CPU, and it moves little data (R8's limits)
  Streak blocked;  ///< they use none, nothing is read or written, and all threads sleep (R7's limits)
  Streak polls;    ///< they use just one core, and nothing is read or written
  std::vector<int> stuck_threads;
  bool others_unseen = false;  ///< since `stuck` holds only the first thread was looked at
  std::string stuck_in;        ///< the kernel function; empty: not to be told
  bool in_storage = false, for_memory = false, in_driver = false;
  bool frozen = false;  ///< by the freezer of its cgroup
  bool io_known = false;
  bool measured = false;                  ///< cpu_share is of the last interval
  double cpu_share = 0, cpu_seconds = 0;  ///< of one core over the last interval; and in all, with descendants
  double own_share = 0;                   ///< cpu_share without descendants
  double io_rate = -1;                    ///< bytes a second over the last interval; negative: not known
  double io_below = 0;                    ///< the same of its descendants, as far as known
  std::uint64_t io_bytes = 0;
  double seen = -1;
};

/// Whether it uses more than a little CPU, or moves data; nobody knows of a nullptr.
inline bool works(const ProcessTrack* track) { return track != nullptr && track->measured && !track->calm.holds(); }

/// What is remembered of a process on a GPU.
struct HoldTrack {
  Streak idle;           ///< nothing ran on this GPU for it
  Streak spinning;       ///< R6's condition
  Streak gone;           ///< listed, but there is no such process
  Spread power;          ///< watts while it was spinning
  Spread cores, memory;  ///< percent, in all looks
  bool was_busy = false;
  double seen = -1;
};

/// NVML's reasons for clocks that hardware has cut to half or less (nvmlClocksEventReasonHwThermalSlowdown and
/// ...HwPowerBrakeSlowdown): heat, and a signal of the power supply.
inline constexpr std::uint64_t kHeatSlowdown = 0x40, kPowerBrake = 0x80;

struct GpuTrack {
  Streak unattributed;
  /// At work, with its clocks cut by its hardware: for heat, or its power supply. Its length is that of the time in
  /// which they were cut, without as long a time in which they were not.
  Streak slowed;
  std::uint64_t slowed_by = 0;  ///< the reasons when that was seen last; 0: not since the program was started
  double energy_j = -1,
         power_w = -1;  ///< power_w: mean over the last interval, from the energy counter if there is one
  double nvlink_bytes = -1, nvlink_rate = -1;
  double idle_power_w = -1;  ///< the least seen while nothing ran
  Spread cores, memory;
  std::string cannot_judge;      ///< G0, at the last look; empty: activity can be trusted
  std::set<std::uint64_t> xids;  ///< that arrived while watching, the last one no longer ago than r1.recent
  double xid_at = 0;             ///< when that was
  std::vector<LoggedXid> logged;
  /// Rows that are older than the process of their number: that of a process which ended, and whose number was given to
  /// another one. By number: whose they are.
  std::map<int, ProcessKey> outlived;
  double seen = -1;
};

/// Puts looks together. One thread at a time.
class Tracker {
 public:
  explicit Tracker(const Thresholds& limits) : limits_(limits) {}

  /// `exists`: whether a process exists, whatever the table shows.
  void add(const Sample& sample, bool container, const std::function<bool(int)>& exists);

  /// Processes that the next look should describe again: those that were seen on a GPU, and those in trouble. Who only
  /// waited for a disk in the last look is not followed, else a long watch would follow everybody in the end.
  std::set<int> watched() const;

  const std::map<ProcessKey, ProcessTrack>& processes() const noexcept { return processes_; }
  const std::map<std::pair<std::string, ProcessKey>, HoldTrack>& holds() const noexcept { return holds_; }
  const std::map<std::string, GpuTrack>& gpus() const noexcept { return gpus_; }
  std::map<ProcessKey, ProcessTrack>& processes() noexcept { return processes_; }
  std::map<std::pair<std::string, ProcessKey>, HoldTrack>& holds() noexcept { return holds_; }
  std::map<std::string, GpuTrack>& gpus() noexcept { return gpus_; }

  const ProcessTrack* process(const ProcessKey& key) const noexcept;
  const HoldTrack* hold(const std::string& gpu, const ProcessKey& key) const noexcept;
  const GpuTrack* gpu(const std::string& uuid) const noexcept;
  /// Whose a row of the driver's list is, at the last look: of the process of that number, but for rows that outlived
  /// theirs.
  ProcessKey owner(const HostSample& host, const std::string& gpu, int pid) const noexcept;

 private:
  void add_cpu(const Sample& sample);
  void add_io(const Sample& sample);
  void add_process(const Sample& sample, const ProcessBrief& brief, const ProcessDetail& detail);
  void add_work(ProcessTrack& track, double at, const ProcessBrief& brief, const ProcessDetail& detail);
  void add_threads(ProcessTrack& track, double at, const ProcessDetail& detail);
  void add_stuck(ProcessTrack& track, double at, const std::vector<ThreadSample>& threads);
  void add_gpu(const Sample& sample, const GpuSample& gpu, bool container, const std::function<bool(int)>& exists);
  void add_hold(const Sample& sample, const GpuSample& gpu, const GpuTrack& track, const GpuProcessRow& row,
                bool container, const std::function<bool(int)>& exists);
  std::map<int, ProcessKey> find_outlived(const Sample& sample, const GpuSample& gpu, double before) const;
  Holds spinning(const GpuSample& gpu, const GpuTrack& track, const ProcessTrack* process, double cores) const;
  void forget(double now);

  const Thresholds limits_;
  std::map<ProcessKey, ProcessTrack> processes_;
  std::map<std::pair<std::string, ProcessKey>, HoldTrack> holds_;
  std::map<std::string, GpuTrack> gpus_;
  std::vector<ProcessBrief> before_;               ///< the last table
  std::map<int, double> cpu_delta_;                ///< seconds since the last look, with descendants
  std::map<ProcessKey, std::uint64_t> io_before_;  ///< what was read and written until the last look
  std::map<int, double> io_below_;                 ///< bytes since the last look, by descendants
  double last_at_ = -1;
};

/// Bytes a second that no heartbeat writes, and no monitor that a job started.
inline constexpr double kMuchTraffic = 1e6;
/// Work, and no polling now and then: of a core.
inline constexpr double kMuchCpu = 0.5;

/// The gate G0: why the driver's activity list says nothing about processes here; empty when it can be trusted. Pure.
std::string cannot_judge(const GpuSample& gpu, const HostSample& host, bool container);

/// The memory on a GPU that none of its processes accounts for, in bytes; negative when that cannot be told.
double unattributed_bytes(const GpuSample& gpu);

/// The key under which a GPU's process is tracked.
ProcessKey key_of(const HostSample& host, int pid) noexcept;

}  // namespace drover::inline v1::health
