// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <set>

#include "drover/health/rules/rules.h"
#include "drover/health/rules/words.h"

namespace drover::inline v1::health {
namespace {

constexpr std::size_t kMostNames = 12;

/// Those that are listed on any GPU and live. Libraries open all GPUs that a process may use, so its workers have the
/// device files of all of them.
std::set<int> live_and_listed(const Scene& scene) {
  std::set<int> pids;
  for (const GpuSample& gpu : scene.last.driver.gpus) {
    const std::vector<int> here = listed_and_alive(scene, gpu);
    pids.insert(here.begin(), here.end());
  }
  return pids;
}

/// The one of `pids` that is this process or one of its ancestors; 0: none.
int kin_of(const HostSample& host, const ProcessBrief& process, const std::set<int>& pids) {
  for (const ProcessBrief& at : Ancestors::and_itself(host, process)) {
    if (pids.count(at.pid) > 0) return at.pid;
  }
  return 0;
}

/// A unit of the machine, what root started as a daemon (it leads its own group, which workers of a job do not), who
/// looks after processes of others, as a slurmstepd, and what supervisord and the like have started and not lost. A
/// rank is none of these, though torchrun makes it lead its own group.
bool is_service(const Scene& scene, const ProcessBrief& process, const ProcessDetail* detail) {
  const bool roots = detail == nullptr || detail->uid.value_or(0) == 0;
  if (roots && is_supervisor(process.name)) return true;
  if (detail == nullptr) return false;
  const HostSample& host = scene.last.host;
  const Job job = job_of(host, process, *detail);
  if (job.ranked()) return false;
  const bool unit = job.scheduler == "systemd" && detail->cgroup.find("/system.slice/") != std::string::npos;
  const bool supervised = is_run_by_supervisor(*detail) && !is_adopted(host, process, scene.container);
  // In a container all may be root's; there only what serves others is a daemon, as an exporter of measurements.
  const bool contained = job.scheduler == "docker" || job.scheduler == "podman" || job.scheduler == "kubernetes";
  const bool daemon = detail->uid == 0U && process.group == process.pid &&
                      (!contained || kind_of(host, process, detail) == Kind::kServer);
  return unit || supervised || daemon;
}

/// Why this holder has none of the memory; empty: it may have it.
std::string innocence(const Scene& scene, const ProcessBrief& process, const std::set<int>& listed,
                      std::optional<std::uint32_t> uid) {
  const HostSample& host = scene.last.host;
  const ProcessDetail* const detail = find_detail(host, process.pid);
  const int kin = kin_of(host, process, listed);
  if (kin == process.pid) return "listed on another GPU, and lives";
  if (kin != 0) return "of " + name_of(host, kin) + ", which is listed and lives";
  if (is_service(scene, process, detail)) return "a service of the machine or a daemon of root";
  if (uid && detail != nullptr && detail->uid && *detail->uid != *uid) return "another user's";
  return {};
}

}  // namespace

std::vector<int> listed_and_alive(const Scene& scene, const GpuSample& gpu) {
  std::vector<int> pids;
  for (const GpuProcessRow& row : gpu.rows) {
    const ProcessBrief* const process = find_process(scene.last.host, row.pid);
    const bool own = scene.tracker.owner(scene.last.host, gpu.uuid, row.pid) == key_of(scene.last.host, row.pid);
    if (process != nullptr && own && process->state != 'Z') pids.push_back(row.pid);
  }
  return pids;
}

void note_importers(const Scene& scene, const GpuSample& gpu, Finding& finding) {
  const std::vector<int> pids = listed_and_alive(scene, gpu);
  if (pids.empty()) return;
  const std::string names = names_of(scene.last.host, pids);
  finding.not_because.push_back("memory that a listed process imported (CUDA IPC) and still uses: " + names);
  finding.action.push_back("ask the owners of those that are listed first: " + names);
}

bool is_supervisor(std::string_view name) {
  static constexpr auto kStarts = std::to_array<std::string_view>(
      {"containerd", "conmon", "dockerd",    "podman",  "runc", "crun",    "runsc",    "kubelet",
       "crio",       "slurmd", "slurmstepd", "pbs_mom", "sge_", "condor_", "sshd",     "systemd",
       "cron",       "atd",    "login",      "sudo",    "s6-",  "runsv",   "supervis", "jupyterhub"});
  return starts_with_any(name, kStarts);
}

std::string name_of(const HostSample& host, int pid) {
  const ProcessBrief* const process = find_process(host, pid);
  return std::to_string(pid) + (process != nullptr ? " (" + process->name + ")" : "");
}

std::string names_of(const HostSample& host, const std::vector<int>& pids) {
  std::string text;
  for (std::size_t i = 0; i < std::min(pids.size(), kMostNames); ++i) {
    text += (i > 0 ? ", " : "") + name_of(host, pids[i]);
  }
  return text + (pids.size() > kMostNames ? " and " + std::to_string(pids.size() - kMostNames) + " more" : "");
}

std::optional<UnlistedHolders> unlisted_holders(const Scene& scene, const GpuSample& gpu,
                                                std::optional<std::uint32_t> uid) {
  const Reading minor = gpu[Metric::kMinor];
  if (!minor.ok()) return std::nullopt;
  UnlistedHolders result;
  const bool nvidia = gpu.vendor == "nvidia";
  const HostSample& host = scene.last.host;
  const std::set<int> listed = live_and_listed(scene);
  for (const Holder& holder : scene.holders.holders) {
    const auto& open = nvidia ? holder.minors : holder.render_minors;
    if (std::find(open.begin(), open.end(), static_cast<int>(minor.value)) == open.end()) continue;
    const ProcessBrief* const process = find_process(host, holder.pid);
    const auto is_its_own = [&](const GpuProcessRow& row) {
      return row.pid == holder.pid && scene.tracker.owner(host, gpu.uuid, row.pid) == key_of(host, row.pid);
    };
    if (process == nullptr || std::any_of(gpu.rows.begin(), gpu.rows.end(), is_its_own)) continue;
    if (kind_of(host, *process, find_detail(host, holder.pid)) == Kind::kSystem) continue;
    const bool watches = nvidia && !holder.uvm;
    const std::string why = watches ? "it only looks, as monitors do" : innocence(scene, *process, listed, uid);
    (why.empty() ? result.pids : result.others[why]).push_back(holder.pid);
  }
  return result;
}

void note_others(const Scene& scene, const UnlistedHolders& holders, Finding& finding) {
  for (const auto& [why, pids] : holders.others) {
    finding.not_because.push_back("has it open, and is to be left alone, " + why + ": " +
                                  names_of(scene.last.host, pids));
  }
}

}  // namespace drover::inline v1::health
