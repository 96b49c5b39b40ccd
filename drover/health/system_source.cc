// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <system_error>
#include <vector>

#include "drover/health/drm/probe_client.h"
#include "drover/health/nvml/client.h"
#include "drover/health/nvml/helper.h"
#include "drover/health/probe/host_probe.h"
#include "drover/health/probe/process_probe.h"
#include "drover/health/probe/xid_log.h"
#include "drover/health/rules/identity.h"
#include "drover/health/source.h"
#include "drover/health/thresholds.h"
#include "drover/os/file_system.h"
#include "drover/os/host_files.h"
#include "drover/os/self.h"

namespace drover::inline v1::health {
namespace {

/// Processes in these states are described in any case, but not more than so many.
constexpr std::size_t kMostSuspects = 256;
constexpr int kAncestors = 8;
/// Of a launcher, its ranks that are on no GPU (yet), but not more processes than so many.
constexpr std::size_t kMostRanks = 256;
/// Of processes on GPUs what they started, which may work for them: not more of each than so many, and in all, with
/// the same share for each.
constexpr std::size_t kMostBelow = 64, kMostBelowAll = 512;
constexpr double kTopologyEvery = 60;  // seconds
constexpr double kAskAgain = 5;        // seconds

/// Who descends from whom. Made when it is asked for the first time, which most looks do not.
class Descent {
 public:
  explicit Descent(const HostSample& host) : host_(host) {}

  /// The descendants of these, the nearest first, and of brothers the youngest first, as the oldest are data workers
  /// that a program starts once; down to `leaves`, until `most` more are found.
  void add_below(std::vector<int> parents, const std::set<int>& leaves, std::size_t most, std::set<int>& found) {
    if (children_.empty()) fill();
    most += found.size();
    for (std::size_t next = 0; next < parents.size() && found.size() < most; ++next) {
      const auto before = [](const ProcessBrief* process, int parent) { return process->parent < parent; };
      auto child = std::lower_bound(children_.begin(), children_.end(), parents[next], before);
      for (; child != children_.end() && (*child)->parent == parents[next] && found.size() < most; ++child) {
        const int pid = (*child)->pid;
        if (leaves.count(pid) == 0 && found.insert(pid).second) parents.push_back(pid);
      }
    }
  }

 private:
  void fill() {
    for (const ProcessBrief& process : host_.processes) children_.push_back(&process);
    std::sort(children_.begin(), children_.end(), [](const ProcessBrief* a, const ProcessBrief* b) {
      return a->parent != b->parent ? a->parent < b->parent : a->start_ticks > b->start_ticks;
    });
  }

  const HostSample& host_;
  std::vector<const ProcessBrief*> children_;  ///< by parent
};

/// Whether one of the GPUs that it is on is in use.
bool has_busy_gpu(const Sample& sample, int pid) {
  const auto& gpus = sample.driver.gpus;
  return std::any_of(gpus.begin(), gpus.end(), [&](const GpuSample& gpu) {
    return gpu[Metric::kUtilCores].number().value_or(0) > 0 &&
           std::any_of(gpu.rows.begin(), gpu.rows.end(), [&](const GpuProcessRow& row) { return row.pid == pid; });
  });
}

class SystemSource : public Source {
 public:
  explicit SystemSource(const SystemSourceOptions& options)
      : options_(options),
        processes_(options.root),
        others_(options.root, in_pid_namespace(options.root), options.wake, options.deadline),
        log_(options.root),
        all_visible_(!may_miss_gpus(options.root, os::environment())) {
    pci_ = find_nvidia_devices(options.root);
  }

  double now() override {
    if (options_.now) return options_.now();
    return os::seconds_since_boot();
  }
  void wait(double until) override {
    if (options_.wait) return options_.wait(until);
    os::wait_since_boot(until);
  }

  Sample sample(const std::set<int>& watched, bool threads) override;
  HolderScan holders(Sample& sample) override;
  void describe_processes(Sample& sample, const std::set<int>& pids) override;
  bool exists(int pid) override {
    if (options_.exists) return options_.exists(pid);
    if (!options_.root.empty()) return os::HostFolder(options_.root + "/proc/" + std::to_string(pid)).open();
    return os::process_existence(pid) != os::Existence::kNo;
  }

  void describe(Report& report, const Sample& first, const Sample& last, double seconds) override;
  std::string user(std::uint32_t uid) override;
  std::string boot() override;
  bool container() override { return in_pid_namespace(options_.root); }

 private:
  bool begin_round();
  void reconsider();
  bool all_asleep() const noexcept { return pci_.count > 0 && pci_.asleep == pci_.count && !options_.wake; }
  void leave_alone(DriverSample answer);
  void describe_missing(Sample& sample, const std::set<int>& pids, bool threads);
  static void add_other_gpus(Sample& sample, std::vector<GpuSample> gpus);
  bool ask_driver(const HostSample& host);
  std::optional<int> begin_others(const Sample& sample);
  std::vector<GpuSample> finish_others(std::optional<int> hangs);
  std::optional<int> stuck_helper(const HostSample& host, const helper::Role& role);
  static std::set<int> whom_to_describe(Sample& sample, const std::set<int>& watched);
  static std::set<int> on_gpus(const Sample& sample);
  static std::set<int> below_launchers(const Sample& sample, Descent& descent);
  static std::set<int> below_gpus(const Sample& sample, Descent& descent);

  const SystemSourceOptions options_;
  ProcessProbe processes_;
  drm::ProbeClient others_;  ///< GPUs of other vendors than NVIDIA
  XidLog log_;
  const bool all_visible_;
  PciGpus pci_;
  std::optional<nvml::Client> driver_;
  std::optional<DriverSample> fixed_;  ///< what is said about the driver without asking it
  double reconsider_at_ = -1;          ///< what fixed_ says holds until then
  std::map<std::uint32_t, std::string> users_;
  CpuReport topology_;  ///< of topology_at_: some files for each core, which hardly ever change
  double topology_at_ = -1;
};

Sample SystemSource::sample(const std::set<int>& watched, bool threads) {
  Sample sample;
  sample.at = now();
  reconsider();
  bool asked = driver_.has_value() && begin_round();  // it works while the process table is read
  sample.host = read_cpu_times(options_.root);
  processes_.list(sample.host);
  if (!asked && ask_driver(sample.host)) asked = begin_round();
  const auto hangs = begin_others(sample);
  sample.driver = asked ? driver_->finish() : *fixed_;
  std::vector<GpuSample> others = finish_others(hangs);
  if (pci_.count > 0 || !sample.driver.gpus.empty())
    log_.fill(sample.driver, options_.now ? 0 : os::seconds_suspended());
  if (all_visible_) sample.driver.devices = pci_.driven;
  sample.driver.by_root = os::current_user() == 0;
  add_other_gpus(sample, std::move(others));
  processes_.describe(sample.host, whom_to_describe(sample, watched), threads);
  Descent descent(sample.host);
  describe_missing(sample, below_launchers(sample, descent), threads);
  processes_.read_io(sample.host, below_gpus(sample, descent));
  return sample;
}

/// The helper of an earlier run that hangs, if so: then nothing is asked.
std::optional<int> SystemSource::begin_others(const Sample& sample) {
  if (!others_.needed()) return std::nullopt;
  const auto hangs = others_.started() ? std::nullopt : stuck_helper(sample.host, drm::kRole);
  if (!hangs) others_.begin(sample.host.processes, sample.at);
  return hangs;
}

std::vector<GpuSample> SystemSource::finish_others(std::optional<int> hangs) {
  if (hangs) return others_.unasked("an earlier look, pid " + std::to_string(*hangs) + ", which still waits");
  return others_.finish();
}

/// Behind NVIDIA's, so that those keep the numbers that their own tools use.
void SystemSource::add_other_gpus(Sample& sample, std::vector<GpuSample> gpus) {
  int next = 0;
  for (const GpuSample& gpu : sample.driver.gpus) next = std::max(next, gpu.index + 1);
  for (GpuSample& gpu : gpus) {
    gpu.index += next;
    sample.driver.gpus.push_back(std::move(gpu));
  }
}

HolderScan SystemSource::holders(Sample& sample) {
  HolderScan scan = processes_.find_holders(sample.host);
  std::set<int> pids;
  for (const Holder& holder : scan.holders) pids.insert(holder.pid);
  describe_processes(sample, pids);
  return scan;
}

void SystemSource::describe_processes(Sample& sample, const std::set<int>& pids) {
  describe_missing(sample, pids, false);
}

void SystemSource::describe_missing(Sample& sample, const std::set<int>& pids, bool threads) {
  std::set<int> missing;
  for (const int pid : pids) {
    if (find_detail(sample.host, pid) == nullptr) missing.insert(pid);
  }
  processes_.describe(sample.host, missing, threads);
}

/// False when no process can be started to ask the driver; the rest of the machine is looked at all the same.
bool SystemSource::begin_round() {
  try {
    driver_->begin();
    return true;
  } catch (const std::system_error& error) {
    DriverSample failed;
    failed.state = pci_.count > 0 ? DriverState::kFailed : DriverState::kNoGpu;
    failed.problem = std::string("the driver was not asked, as no process could be started for that: ") + error.what();
    leave_alone(std::move(failed));
    driver_.reset();
    return false;
  }
}

void SystemSource::leave_alone(DriverSample answer) {
  fixed_ = std::move(answer);
  reconsider_at_ = now() + kAskAgain;
}

/// GPUs wake, fall asleep, come and go; a driver lets go of who hung in it; a machine that had no room for one more
/// process has it again.
void SystemSource::reconsider() {
  if (now() < reconsider_at_) return;
  reconsider_at_ = now() + kAskAgain;
  pci_ = find_nvidia_devices(options_.root);
  fixed_.reset();
  if (all_asleep()) driver_.reset();
}

/// Before the driver is asked for the first time: whether it should be.
bool SystemSource::ask_driver(const HostSample& host) {
  if (fixed_) return false;
  DriverSample answer;
  if (all_asleep()) {
    answer.state = DriverState::kAsleep;
    answer.problem = "all GPUs are powered down and were left so; --wake looks at them all the same";
  } else if (const auto pid = stuck_helper(host, nvml::kRole)) {
    answer.state = DriverState::kNotAnswering;
    answer.uninterruptible = true;
    answer.problem = "an earlier look still waits for the driver (pid " + std::to_string(*pid) +
                     ", uninterruptible), so it was not asked again; see dmesg for Xid or NVRM";
  } else {
    driver_.emplace(options_.deadline, pci_.count);
    return true;
  }
  leave_alone(std::move(answer));
  return false;
}

/// A helper of an earlier run that the driver never let go: another one would only join it. It was told to end, or its
/// parent is gone: one of a run that goes on has it still. One that ends now is young, and another user may call his
/// processes what he likes.
std::optional<int> SystemSource::stuck_helper(const HostSample& host, const helper::Role& role) {
  const double old = now() - std::chrono::duration<double>(helper::kSurelyHangs).count();
  for (const ProcessBrief& process : host.processes) {
    if (process.name != role.name || static_cast<double>(process.start_ticks) / os::clock_ticks() > old) continue;
    HostSample alone;
    alone.processes = {process};
    ProcessProbe(options_.root).describe(alone, {process.pid}, true);
    const ProcessDetail* const detail = find_detail(alone, process.pid);
    if (detail == nullptr || (detail->uid != 0U && detail->uid != os::current_user())) continue;
    // When its parent is killed, its first thread ends with the conversation, and the one that hangs stays.
    const bool left = detail->kill_pending || process.state == 'Z' || is_adopted(host, process, container());
    const auto stuck = [](const ThreadSample& thread) { return thread.state == 'D'; };
    if (left && std::any_of(detail->threads.begin(), detail->threads.end(), stuck)) return process.pid;
  }
  return std::nullopt;
}

/// Also counts those that are too many.
std::set<int> SystemSource::whom_to_describe(Sample& sample, const std::set<int>& watched) {
  std::set<int> pids = watched;
  for (const GpuSample& gpu : sample.driver.gpus) {
    for (const GpuProcessRow& row : gpu.rows) {
      pids.insert(row.pid);
      const ProcessBrief* const process = find_process(sample.host, row.pid);
      if (process == nullptr) continue;
      // the launcher, the server, the notebook that it belongs to; in a container also pid 1
      for (const ProcessBrief& ancestor : Ancestors(sample.host, *process, kAncestors)) pids.insert(ancestor.pid);
    }
  }
  std::size_t suspects = 0;
  for (const ProcessBrief& process : sample.host.processes) {
    // A zombie matters when the driver lists it, or when threads of it live.
    const bool suspect = process.state == 'D' || (process.state == 'Z' && process.threads > 1);
    if (!suspect && process.name != "slurmstepd" && process.name != "salloc") continue;
    if (suspect && ++suspects > kMostSuspects && pids.count(process.pid) == 0) {
      ++sample.host.stuck_left_out;
      continue;
    }
    pids.insert(process.pid);
  }
  return pids;
}

std::set<int> SystemSource::on_gpus(const Sample& sample) {
  std::set<int> pids;
  for (const GpuSample& gpu : sample.driver.gpus) {
    for (const GpuProcessRow& row : gpu.rows) pids.insert(row.pid);
  }
  return pids;
}

/// What launchers of processes on GPUs started, wrappers too, down to who is on a GPU: whose workers are no ranks.
std::set<int> SystemSource::below_launchers(const Sample& sample, Descent& descent) {
  const std::set<int> leaves = on_gpus(sample);
  std::vector<int> launchers;
  for (const auto& [pid, detail] : sample.host.details) {
    const ProcessBrief* const process = find_process(sample.host, pid);
    if (process != nullptr && leaves.count(pid) == 0 && is_launcher(*process, &detail)) launchers.push_back(pid);
  }
  std::set<int> found;
  if (!launchers.empty()) descent.add_below(std::move(launchers), leaves, kMostRanks, found);
  return found;
}

/// What processes on GPUs started, of which no more is asked than what it reads and writes. One that runs with its GPU
/// in use needs nobody else to be at work; with a GPU that rests it may poll, and wait for what it started.
std::set<int> SystemSource::below_gpus(const Sample& sample, Descent& descent) {
  const std::set<int> roots = on_gpus(sample);
  std::vector<int> rest;
  for (const int root : roots) {
    const ProcessBrief* const process = find_process(sample.host, root);
    if (process != nullptr && (process->state != 'R' || !has_busy_gpu(sample, root))) rest.push_back(root);
  }
  std::set<int> found;
  const std::size_t share = std::min(kMostBelow, kMostBelowAll / std::max<std::size_t>(rest.size(), 1));
  for (const int root : rest) descent.add_below({root}, roots, share, found);
  std::erase_if(found, [&](int pid) { return find_detail(sample.host, pid) != nullptr; });
  return found;
}

void SystemSource::describe(Report& report, const Sample& first, const Sample& last, double seconds) {
  report.host = options_.root.empty() ? os::host_name() : "fixture";
  report.kernel = kernel_release(options_.root);
  report.unix_time = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  if (topology_at_ < 0 || last.at - topology_at_ > kTopologyEvery) {
    topology_ = read_topology(options_.root);
    topology_at_ = last.at;
  }
  report.cpu = topology_;
  fill_load(report.cpu, first.host, last.host, seconds, options_.root);
  report.memory = read_memory(options_.root);
}

std::string SystemSource::user(std::uint32_t uid) {
  const auto known = users_.find(uid);
  if (known != users_.end()) return known->second;
  std::string name = os::user_name(uid, options_.root);
  if (name.empty()) name = "uid " + std::to_string(uid);
  return users_.emplace(uid, std::move(name)).first->second;
}

std::string SystemSource::boot() {
  std::string id = os::read_small_file(options_.root + "/proc/sys/kernel/random/boot_id", 64).value_or(std::string());
  return id.substr(0, id.find('\n'));
}

}  // namespace

std::unique_ptr<Source> system_source(const SystemSourceOptions& options) {
  return std::make_unique<SystemSource>(options);
}

}  // namespace drover::inline v1::health
