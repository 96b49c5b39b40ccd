// SPDX-License-Identifier: Apache-2.0
#include "drover/health/rules/identity.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "drover/os/file_system.h"
#include "drover/os/host_files.h"

namespace drover::inline v1::health {
namespace {

constexpr int kMostAncestors = 32;

const std::string* variable(const ProcessDetail& detail, const char* name) {
  const auto found = detail.environment.find(name);
  return found == detail.environment.end() ? nullptr : &found->second;
}

std::optional<int> number(const ProcessDetail& detail, std::initializer_list<const char*> names) {
  for (const char* const name : names) {
    const std::string* const text = variable(detail, name);
    const auto value = text != nullptr ? os::parse_number(*text) : std::nullopt;
    if (value && *value < 10'000'000) return static_cast<int>(*value);
  }
  return std::nullopt;
}

/// The part of a cgroup path after `mark`, up to the next separator.
std::string part_after(const std::string& path, std::string_view mark) {
  const std::size_t at = path.find(mark);
  if (at == path.npos) return {};
  const std::string rest = path.substr(at + mark.size());
  return rest.substr(0, rest.find_first_of("/."));
}

void find_container(Job& job, const std::string& cgroup) {
  if (cgroup.find("kubepods") != cgroup.npos) {
    job.scheduler = "kubernetes";
    job.id = part_after(cgroup, "/pod");
    if (job.id.empty()) job.id = part_after(cgroup, "-pod");
    job.label = "pod " + job.id;
    return;
  }
  for (const std::string_view mark : {"/docker-", "/docker/", "/libpod-"}) {
    const std::string id = part_after(cgroup, mark);
    if (id.empty()) continue;
    job.scheduler = "docker";
    job.id = id.substr(0, 12);
    job.label = "container " + job.id;
    return;
  }
  const std::size_t slash = cgroup.rfind('/');
  if (slash == cgroup.npos || !cgroup.ends_with(".service")) return;
  job.scheduler = "systemd";
  job.id = cgroup.substr(slash + 1);
  job.label = "unit " + job.id;
}

template <std::size_t N>
bool contains_any(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) { return text.find(word) != text.npos; });
}

constexpr std::array<std::string_view, 6> kNotebooks = {
    "ipykernel", "jupyter-lab", "jupyter-notebook", "jupyterhub-singleuser", "colab_kernel", "rsession"};
constexpr std::array<std::string_view, 12> kServers = {"vllm",
                                                       "tritonserver",
                                                       "ollama",
                                                       "ray::",
                                                       "sglang",
                                                       "torchserve",
                                                       "uvicorn",
                                                       "gunicorn",
                                                       "text-generation-server",
                                                       "llama-server",
                                                       "triton_python_backend",
                                                       "model_server"};
constexpr std::array<std::string_view, 18> kSystem = {
    "Xorg",        "Xwayland", "gnome-shell", "kwin_wayland",  "nvidia-cuda-mps", "nv-hostengine", "nvidia-persiste",
    "dcgmi",       "nvvs",     "nvidia-smi",  "nvidia-fabric", "nvidia-imex",     "dcgm-exporter", "nvidia-powerd",
    "drover-nvml", "nvtop",    "nvitop",      "gpustat"};

/// What name and command line say about one process.
Kind own_kind(const ProcessBrief& process, const ProcessDetail* detail) {
  if (contains_any(process.name, kSystem)) return Kind::kSystem;
  const std::string_view command = detail != nullptr ? std::string_view(detail->command) : std::string_view();
  if (contains_any(command, kNotebooks) || contains_any(process.name, kNotebooks)) return Kind::kNotebook;
  if (contains_any(command, kServers) || contains_any(process.name, kServers)) return Kind::kServer;
  return Kind::kPlain;
}

/// A master that is this node's own says nothing about other nodes, and neither does torchrun's run id "none".
std::string wide_group_of(const ProcessDetail& detail) {
  std::string group;
  const auto add = [&](const std::string& part) { group += (group.empty() ? "" : ", ") + part; };
  const std::string *job = variable(detail, "SLURM_JOB_ID"), *step = variable(detail, "SLURM_STEP_ID");
  if (job != nullptr && os::parse_number(*job)) add("slurm " + *job + (step != nullptr ? "." + *step : ""));
  const std::string *run = variable(detail, "TORCHELASTIC_RUN_ID"), *master = variable(detail, "MASTER_ADDR"),
                    *port = variable(detail, "MASTER_PORT");
  if (run != nullptr && !run->empty() && *run != "none") add("run " + *run);
  const std::string* const name_space = variable(detail, "PMIX_NAMESPACE");  // Open MPI: of one mpirun, on all nodes
  if (group.empty() && name_space != nullptr && !name_space->empty()) add("mpi " + *name_space);
  const bool loopback = master == nullptr || master->empty() || *master == "localhost" || *master == "::1" ||
                        master->substr(0, 4) == "127.";
  if (!loopback && port != nullptr) add("master " + *master + ":" + *port);
  // Two torchruns of one step on one node differ in nothing else.
  if (loopback && master != nullptr && port != nullptr && !group.empty()) add("port " + *port);
  return group;
}

}  // namespace

Job job_of(const ProcessDetail& detail) {
  Job job;
  job.rank = number(detail, {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"});
  job.world_size = number(detail, {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"});
  // An interactive shell of srun is "task 0 of 1", which makes no rank of what is started in it.
  if (!job.rank && job.world_size.value_or(1) > 1) job.rank = number(detail, {"SLURM_PROCID"});
  job.local_world_size = number(detail, {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"});
  find_container(job, detail.cgroup);
  const std::string* const slurm = variable(detail, "SLURM_JOB_ID");
  if (slurm != nullptr && os::parse_number(*slurm)) {
    job.scheduler = "slurm";
    job.id = *slurm;
    job.label = "slurm " + job.id;
  }
  if (job.rank) {
    for (const char* const name : {"SLURM_JOB_ID", "TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE"}) {
      if (const std::string* const value = variable(detail, name)) job.group += *value + "/";
    }
    if (job.group.empty()) job.group = "/";
    job.wide_group = wide_group_of(detail);
  }
  return job;
}

const char* to_text(Kind kind) noexcept {
  static constexpr const char* kTexts[] = {"plain", "notebook", "server", "stopped", "debugger", "system"};
  return kTexts[static_cast<int>(kind)];
}

Kind kind_of(const HostSample& host, const ProcessBrief& process, const ProcessDetail* detail) {
  const Kind own = own_kind(process, detail);
  if (own == Kind::kSystem) return own;
  if (process.state == 't' || (detail != nullptr && detail->tracer != 0)) return Kind::kDebugged;
  if (process.state == 'T') return Kind::kStopped;
  if (own != Kind::kPlain) return own;
  const ProcessBrief* ancestor = find_process(host, process.parent);
  for (int steps = 0; ancestor != nullptr && steps < kMostAncestors; ++steps) {
    const Kind kind = own_kind(*ancestor, find_detail(host, ancestor->pid));
    if (kind == Kind::kNotebook || kind == Kind::kServer) return kind;
    ancestor = find_process(host, ancestor->parent);
  }
  const bool ranked = detail != nullptr && job_of(*detail).ranked();
  return !ranked && detail != nullptr && detail->listens.value_or(false) ? Kind::kServer : Kind::kPlain;
}

bool is_reaper(const HostSample& host, int pid, bool container) {
  if (pid == 1 && !container) return true;
  const ProcessBrief* const process = find_process(host, pid);
  if (process == nullptr) return false;
  static constexpr std::array<std::string_view, 9> kReapers = {
      "systemd", "init", "tini", "dumb-init", "docker-init", "catatonit", "s6-svscan", "runsvdir", "containerd-shim"};
  return std::any_of(kReapers.begin(), kReapers.end(),
                     [&](std::string_view name) { return process->name.substr(0, name.size()) == name; });
}

bool is_launcher(const ProcessBrief& process, const ProcessDetail* detail) {
  static constexpr std::array<std::string_view, 11> kLaunchers = {
      "torchrun",   "mpirun",    "mpiexec",    "orterun",           "prterun",      "hydra_pmi",
      "accelerate", "deepspeed", "horovodrun", "torch.distributed", "drover launch"};
  const std::string_view command = detail != nullptr ? std::string_view(detail->command) : std::string_view();
  return contains_any(process.name, kLaunchers) || contains_any(command.substr(0, 256), kLaunchers);
}

double age_of(const ProcessBrief& process, double now) {
  return std::max(0.0, now - static_cast<double>(process.start_ticks) / os::clock_ticks());
}

bool waits_in_driver(const std::string& function) {
  static constexpr std::array<std::string_view, 8> kWords = {"nvidia",     "uvm",    "nvkms",  "rm_ioctl",
                                                             "os_acquire", "amdgpu", "amdkfd", "i915_"};
  static constexpr std::array<std::string_view, 5> kStarts = {"nv_", "kfd_", "xe_", "ttm_", "drm_"};
  return contains_any(function, kWords) || std::any_of(kStarts.begin(), kStarts.end(), [&](std::string_view start) {
           return function.substr(0, start.size()) == start;
         });
}

bool waits_in_storage(const std::string& function) {
  static constexpr std::array<std::string_view, 16> kWords = {
      "nfs",        "rpc_",         "lustre", "ll_",  "cl_sync", "ceph",  "fuse", "io_schedule",
      "folio_wait", "wait_on_page", "jbd2",   "xfs_", "ext4_",   "btrfs", "blk_", "gpfs"};
  return contains_any(function, kWords);
}

}  // namespace drover::inline v1::health
