// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "drover/health/gpu_sample.h"

/// What one look at the machine gives: facts as the kernel and the driver tell them, no judgement. Values.
namespace drover::inline v1::health {

/// What became of NVIDIA's driver as a whole.
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
  kGpuFault,  ///< it does not start, for a GPU is lost or needs a reset
};

struct DriverSample {
  DriverState state = DriverState::kNoGpu;
  std::string version, problem;  ///< problem: one sentence with what to do; empty for kOk
  int cuda = 0;                  ///< 12040 for 12.4; 0: not known
  bool uninterruptible = false;  ///< kNotAnswering: who asked it is in uninterruptible sleep
  std::vector<GpuSample> gpus;   ///< NVIDIA's first, then those of other vendors, which this state is not about
  std::vector<LoggedXid> logged_elsewhere;  ///< of GPUs that the driver does not list (any more)
  std::string log_problem;                  ///< why the kernel's log was not read; empty: it was
  /// GPUs that NVIDIA's kernel module has, by PCI: "0000:3b:00.0". Empty where not all of them need be listed, as in a
  /// container or a job.
  std::vector<std::string> devices;
  bool by_root = false;  ///< who asked may see all of them
};

/// /proc/PID/stat: of every process.
struct ProcessBrief {
  int pid = 0, parent = 0, group = 0, session = 0, threads = 0;
  char state = '?';
  std::uint64_t start_ticks = 0;  ///< since boot, time of suspension included
  std::uint64_t cpu_ticks = 0;
  std::string name;
};

inline constexpr int kMostThreads = 1024;  ///< of one process: more are not looked at

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
  bool environment_known = false;  ///< false as well for one that gave itself a title, which is written over it
  bool memory_locked = false;      ///< command and environment were not told in time: see ProgramReader
  bool kill_pending = false;
  int tracer = 0;
  int inner_pid = 0;  ///< in the innermost pid namespace, when that is another one
  std::optional<std::uint64_t> io_bytes;
  ThreadSample first = {};            ///< its first thread, which is looked at in any case
  std::vector<ThreadSample> threads;  ///< at most kMostThreads; empty: they were not, or could not be, looked at
  /// On a TCP port of a service: none that the kernel or a library of training has chosen, and none that salloc hands
  /// on.
  std::optional<bool> listens;
  std::optional<bool> at_terminal;  ///< whether its standard input is a terminal that is open
  bool reads_terminal = false;      ///< its first thread waits for what a person types there
};

/// Who has device files of GPUs open; without any number: a control file only (nvidiactl, nvidia-uvm, kfd).
struct Holder {
  int pid = 0;
  bool uvm = false;  ///< nvidia-uvm, as every program of CUDA has: a monitor or a device plugin does without
  std::vector<int> minors;
  std::vector<int> render_minors;  ///< of DRM's render nodes: AMD's and Intel's GPUs
};
struct HolderScan {
  bool done = false;
  std::vector<Holder> holders;
  int unreadable = 0;  ///< processes whose descriptors may not be looked at
};

struct CpuTimes {
  std::uint64_t busy = 0, total = 0, iowait = 0, steal = 0;
};

/// Periods of a cgroup's CPU quota that are over (as a rule of 0.1 s), and those in which it was used up.
struct QuotaUse {
  std::uint64_t periods = 0, used_up = 0;
};

struct Pressure {
  double some10 = 0, some60 = 0, full10 = 0, full60 = 0;  ///< shares, 0 to 1
};

struct HostSample {
  CpuTimes cpu;
  std::vector<CpuTimes> cpus;                    ///< by CPU number; empty entries for those that are away
  std::optional<std::uint64_t> cgroup_usage_us;  ///< CPU time of the own cgroup
  std::map<std::string, QuotaUse> quotas;        ///< of the own cgroup and those above it that count, by directory
  std::vector<ProcessBrief> processes;           ///< ascending by pid
  std::map<int, ProcessDetail> details;
  /// What descendants of processes on GPUs have read and written, of those that are not in `details`; by pid.
  std::map<int, std::uint64_t> io_of_descendants;
  int unreadable_processes = 0;
  std::set<int> without_descriptor;  ///< processes of which more was to be read, when no descriptor was left
  int stuck_left_out = 0;            ///< processes in state D that were too many to be described
};

struct Sample {
  double at = 0;  ///< seconds since boot (CLOCK_BOOTTIME, as start_ticks are), so that two programs agree
  HostSample host;
  DriverSample driver;
};

/// nullptr when there is none.
const ProcessBrief* find_process(const HostSample& host, int pid) noexcept;
const ProcessDetail* find_detail(const HostSample& host, int pid) noexcept;

/// Those above a process, nearest first, as far as they were seen, pid 1 included. Borrows the sample. Of data that is
/// wrong, in which a process may be above itself, it ends too.
class Ancestors {
 public:
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = ProcessBrief;
    using difference_type = std::ptrdiff_t;
    using pointer = const ProcessBrief*;
    using reference = const ProcessBrief&;
    Iterator() = default;
    Iterator(const HostSample& host, const ProcessBrief* at, int most) : host_(&host), at_(at), left_(most) {}
    reference operator*() const noexcept { return *at_; }
    Iterator& operator++() noexcept {
      at_ = --left_ > 0 ? find_process(*host_, at_->parent) : nullptr;
      return *this;
    }
    Iterator operator++(int) noexcept { return std::exchange(*this, std::next(*this)); }
    bool operator==(const Iterator& other) const noexcept { return at_ == other.at_; }

   private:
    const HostSample* host_ = nullptr;
    const ProcessBrief* at_ = nullptr;
    int left_ = 0;
  };

  static constexpr int kMost = 64;
  explicit Ancestors(const HostSample& host, const ProcessBrief& process, int most = kMost) noexcept
      : begin_(host, find_process(host, process.parent), most) {}
  /// The process itself comes first.
  static Ancestors and_itself(const HostSample& host, const ProcessBrief& process, int most = kMost) noexcept {
    return Ancestors(Iterator(host, &process, most + 1));
  }
  Iterator begin() const noexcept { return begin_; }
  Iterator end() const noexcept { return {}; }

 private:
  explicit Ancestors(Iterator begin) noexcept : begin_(begin) {}
  Iterator begin_;
};

/// The environment variables that say what job a process belongs to.
const std::vector<std::string>& job_variables();

}  // namespace drover::inline v1::health
