// SPDX-License-Identifier: Apache-2.0
#include "drover/health/rules/identity.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "drover/health/rules/words.h"
#include "drover/os/file_system.h"
#include "drover/os/host_files.h"

namespace drover::inline v1::health {
namespace {

constexpr int kMostComponents = 8;  // of a heterogeneous job: job_variables() has so many

const std::string* variable(const ProcessDetail& detail, const char* name) {
  const auto found = detail.environment.find(name);
  return found == detail.environment.end() ? nullptr : &found->second;
}

bool has_any(const ProcessDetail& detail, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* name) { return variable(detail, name) != nullptr; });
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

constexpr std::array<std::string_view, 5> kSupervisors = {"nomad", "gitlab-runner", "jenkins", "supervisor",
                                                          "supervisord"};

/// Units in which others' processes stay, or all of a person's: to end one of these by its unit would end them all.
bool is_host_of_others(std::string_view unit) {
  static constexpr auto kStarts =
      std::to_array<std::string_view>({"gnome-terminal",  "tmux",        "screen", "vncserver", "xrdp",
                                       "emacs",           "dbus",        "app-",  // of persons
                                       "actions.runner.", "vsts.agent.", "k3s",    "rke2-",     "gridengine",
                                       "sgeexecd",        "hadoop",      "yarn",   "spark",     "airflow",
                                       "celery",          "dask",        "flink",  "oar-node",  "prefect",
                                       "dagster"});
  static constexpr auto kHosts = std::to_array<std::string_view>({"cron",
                                                                  "crond",
                                                                  "cronie",
                                                                  "anacron",
                                                                  "atd",
                                                                  "ssh",
                                                                  "sshd",
                                                                  "user",
                                                                  "jupyterhub",
                                                                  "slurmd",
                                                                  "pbs",
                                                                  "pbs_mom",
                                                                  "lsfd",
                                                                  "ray",
                                                                  "condor",
                                                                  "flux",
                                                                  "rstudio-server",
                                                                  "code-server",
                                                                  "buildkite-agent",
                                                                  "teamcity-agent",
                                                                  "kubelet",
                                                                  "docker",
                                                                  "containerd",
                                                                  "podman"});
  const std::string_view name = unit.substr(0, unit.find_first_of("@."));
  return is_one_of(name, kHosts) || is_one_of(name, kSupervisors) || starts_with_any(unit, kStarts);
}

/// Users may call their cgroups what they like, and commands with these names are to be pasted into a shell.
bool is_safe_in_shell(const std::string& name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view(":_.@-").find(c) != std::string_view::npos;
  };
  return !name.empty() && name.front() != '-' && std::all_of(name.begin(), name.end(), fits);
}

/// Also with what a shell would leave alone in quotes only, see how_to_cancel: "12[3].n1" is an array's task, and
/// systemd writes "\\x2d" for a dash.
bool is_safe_in_quotes(std::string name) {
  std::erase_if(name, [](char c) { return std::string_view("[]\\").find(c) != std::string_view::npos; });
  return is_safe_in_shell(name);
}

void find_container(Job& job, const std::string& cgroup) {
  const std::size_t users = cgroup.find("/user@");  // below it names are as that user likes them
  if (cgroup.find("kubepods") < users) {
    std::string id = part_after(cgroup, "/pod");
    if (id.empty()) id = part_after(cgroup, "-pod");
    if (!is_safe_in_shell(id)) return;
    std::replace(id.begin(), id.end(), '_', '-');  // systemd's names have them for those of the uid
    job.scheduler = "kubernetes";
    job.id = std::move(id);
    job.label = "pod " + job.id;
    return;
  }
  for (const std::string_view mark : {"/docker-", "/docker/", "/libpod-"}) {
    const std::string id = part_after(cgroup, mark);
    if (!is_safe_in_shell(id)) continue;
    job.of_user = users != cgroup.npos;
    job.scheduler = mark == "/libpod-" ? "podman" : "docker";
    job.id = id.substr(0, 12);
    job.label = "container " + job.id;
    return;
  }
  const std::size_t slash = cgroup.rfind('/');
  if (slash == cgroup.npos || !cgroup.ends_with(".service")) return;
  std::string unit = cgroup.substr(slash + 1);
  if (!is_safe_in_quotes(unit) || is_host_of_others(unit)) return;
  job.scheduler = "systemd";
  job.id = std::move(unit);
  job.label = "unit " + job.id;
  job.of_user = users < slash;
}

/// The number of the job in the cgroup that Slurm made for it, which anybody may read; empty: it is in none. A user may
/// give such names below his own user@N.service only.
std::string slurm_job_of(const std::string& cgroup) {
  const bool of_systemd = cgroup.starts_with("/system.slice/") && cgroup.find("slurmstepd.scope/") != cgroup.npos;
  if (!of_systemd && !cgroup.starts_with("/slurm")) return {};
  std::string id = part_after(cgroup, "/job_");
  return os::parse_number(id) ? id : std::string();
}

bool has_own_master(const ProcessDetail& detail) {
  const std::string* const master = variable(detail, "MASTER_ADDR");
  return master == nullptr || master->empty() || *master == "localhost" || *master == "::1" ||
         master->substr(0, 4) == "127.";
}

/// What other batch systems say of the job, in its environment only.
void find_batch_job(Job& job, const ProcessDetail& detail) {
  for (const auto& [name, scheduler] : {std::pair("PBS_JOBID", "pbs"), std::pair("LSB_JOBID", "lsf")}) {
    const std::string* const id = variable(detail, name);
    if (id == nullptr || !is_safe_in_quotes(*id)) continue;
    job.scheduler = scheduler;
    job.id = *id;
    const std::optional<int> index = number(detail, {"LSB_JOBINDEX"});
    if (job.scheduler == "lsf" && index.value_or(0) > 0) job.id += "[" + std::to_string(*index) + "]";
    job.label = job.scheduler + " " + job.id;
  }
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
  const bool loopback = has_own_master(detail);
  if (!loopback && port != nullptr) add("master " + *master + ":" + *port);
  const std::string *gloo = variable(detail, "HOROVOD_GLOO_RENDEZVOUS_ADDR"),
                    *gloo_port = variable(detail, "HOROVOD_GLOO_RENDEZVOUS_PORT");
  if (gloo != nullptr && gloo_port != nullptr && !gloo->starts_with("127.")) add("gloo " + *gloo + ":" + *gloo_port);
  // Two torchruns of one step on one node differ in nothing else.
  if (loopback && master != nullptr && port != nullptr && !group.empty()) add("port " + *port);
  // One job of these may start several launchers, of which its number alone tells nothing.
  Job batch;
  find_batch_job(batch, detail);
  return batch.label.empty() || group.empty() ? group : batch.label + ", " + group;
}

/// What the ranks of one job have in common and those of others have not: the user, and what the launcher set. A master
/// that is the container's own says nothing about other containers.
std::string group_of(const ProcessDetail& detail, const std::string& container) {
  std::string group = "user " + (detail.uid ? std::to_string(*detail.uid) : "?");
  if (!container.empty() && has_own_master(detail)) group += "/in " + container;
  for (const char* const name :
       {"SLURM_JOB_ID", "SLURM_STEP_ID", "PBS_JOBID", "LSB_JOBID", "LSB_JOBINDEX", "TORCHELASTIC_RUN_ID",
        "PMIX_NAMESPACE", "MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "HOROVOD_GLOO_RENDEZVOUS_PORT"}) {
    if (const std::string* const value = variable(detail, name)) group += "/" + *value;
  }
  return group;
}

/// Whether the environment alone tells the job from another one of the same user.
bool tells_job(const ProcessDetail& detail) {
  return has_any(detail, {"PMIX_NAMESPACE", "MASTER_PORT", "SLURM_STEP_ID", "HOROVOD_GLOO_RENDEZVOUS_PORT"});
}

/// The other ranks of PyTorch Lightning's own launcher have no RANK; that of the first node is LOCAL_RANK. The first
/// rank starts them, and has no number that can be seen.
void find_rank_of_lightning(Job& job, const ProcessDetail& detail) {
  if (job.rank || job.world_size.value_or(1) < 2 || number(detail, {"NODE_RANK"}) != 0) return;
  job.rank = number(detail, {"LOCAL_RANK"});
  job.launched = job.of_lightning = job.ranked();
}

/// srun's tasks on this node, where all nodes have as many: "4(x2)", "4". Of another launcher that Slurm's step has
/// started, which has tasks of its own, they say nothing.
std::optional<int> local_tasks_of_step(const Job& job, const ProcessDetail& detail) {
  if (job.world_size != number(detail, {"SLURM_STEP_NUM_TASKS"})) return std::nullopt;
  if (!has_any(detail, {"MASTER_ADDR", "PMI_RANK", "PMIX_NAMESPACE"}))
    return std::nullopt;  // tasks that share out a sweep end one after the other
  const std::string* const each = variable(detail, "SLURM_STEP_TASKS_PER_NODE");
  if (each == nullptr || each->find(',') != each->npos) return std::nullopt;
  const auto tasks = os::parse_number(each->substr(0, each->find('(')));
  const auto all = static_cast<std::uint64_t>(job.world_size.value_or(0));
  return tasks && *tasks <= all ? std::optional<int>(static_cast<int>(*tasks)) : std::nullopt;
}

void find_components(Job& job, const ProcessDetail& detail) {
  for (int part = 0; part < kMostComponents; ++part) {
    const std::string* const id = variable(detail, ("SLURM_JOB_ID_HET_GROUP_" + std::to_string(part)).c_str());
    if (id != nullptr && os::parse_number(*id)) job.components.push_back(*id);
  }
}

/// The cgroup that Slurm made is right where the environment was carried over from another job, unless that is of a
/// heterogeneous one of which the cgroup tells the part.
void find_slurm_job(Job& job, const ProcessDetail& detail) {
  const std::string* const told = variable(detail, "SLURM_JOB_ID");
  const std::string made = slurm_job_of(detail.cgroup);
  Job own;
  find_components(own, detail);
  const auto& parts = own.components;
  const bool carried = !made.empty() && std::find(parts.begin(), parts.end(), made) == parts.end();
  const bool is_number = told != nullptr && os::parse_number(*told);
  const std::string id = is_number && !carried ? *told : made;
  if (id.empty()) return;
  const bool agree = is_number && *told == id;
  job.scheduler = "slurm";
  job.id = id;
  job.label = "slurm " + job.id;
  job.components = agree ? parts : std::vector<std::string>();
  const std::string* const array = variable(detail, "SLURM_ARRAY_JOB_ID");
  const std::string* const task = variable(detail, "SLURM_ARRAY_TASK_ID");
  if (agree && array != nullptr && *array == id && task != nullptr && os::parse_number(*task))
    job.array_task = id + "_" + *task;
}

/// One that wrote a title over its environment, and its job's number with it, is of the job of who started it.
void inherit_job(Job& job, const HostSample& host, const ProcessBrief& process, const ProcessDetail& detail) {
  if (detail.environment_known) return;
  for (const ProcessBrief& ancestor : Ancestors(host, process)) {
    const ProcessDetail* const more = find_detail(host, ancestor.pid);
    if (more == nullptr || !more->uid || more->uid != detail.uid) return;
    if (!more->environment_known) continue;
    const Job above = job_of(*more);
    const bool batch = above.scheduler == "pbs" || above.scheduler == "lsf";
    if (!batch && (above.scheduler != "slurm" || (job.scheduler == "slurm" && job.id != above.id))) return;
    job.scheduler = above.scheduler;
    job.id = above.id;
    job.label = above.label;
    job.array_task = above.array_task;
    job.components = above.components;
    return;
  }
}

/// Its step of Slurm, as the slurmstepd above it says: "slurmstepd: [77.2]". Empty: a job's script, or not Slurm's.
std::string step_of(const Job& job, const HostSample& host, const ProcessBrief& process) {
  for (const ProcessBrief& ancestor : Ancestors(host, process)) {
    const ProcessDetail* const detail = find_detail(host, ancestor.pid);
    if (ancestor.name != "slurmstepd" || detail == nullptr) continue;
    const std::string step = part_after(detail->command, "[" + job.id + ".");
    const std::string number = step.substr(0, step.find(']'));
    return os::parse_number(number) ? number : std::string();
  }
  return {};
}

/// The oldest of it and its ancestors that is in its cgroup.
const ProcessBrief& first_of_cgroup(const HostSample& host, const ProcessBrief& process, const ProcessDetail& detail) {
  const ProcessBrief* first = &process;
  for (const ProcessBrief& ancestor : Ancestors(host, process)) {
    const ProcessDetail* const more = find_detail(host, ancestor.pid);
    if (ancestor.pid == 1 || more == nullptr || more->cgroup != detail.cgroup) break;
    first = &ancestor;
  }
  return *first;
}

/// Whether what began its unit is another user's, as a JupyterHub of root's is, or a person types into it, or it starts
/// jobs, as a scheduler of Airflow does.
bool is_in_unit_of_others(const HostSample& host, const ProcessBrief& process, const ProcessDetail& detail) {
  bool of_job = false;
  for (const ProcessBrief& ancestor : Ancestors(host, process)) {
    const ProcessDetail* const more = find_detail(host, ancestor.pid);
    if (ancestor.pid == 1 || more == nullptr || more->cgroup != detail.cgroup) return false;
    if (more->uid != detail.uid || is_terminal(ancestor, more)) return true;
    const bool launches = is_launcher(ancestor, more);
    if (of_job && !launches && !is_terminal(ancestor, nullptr)) return true;  // no script of a shell's either
    of_job = of_job || launches;
  }
  return false;
}

}  // namespace

Job job_of(const ProcessDetail& detail) {
  Job job;
  job.rank = number(detail, {"RANK"});
  job.world_size =
      number(detail, {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "HOROVOD_SIZE", "SLURM_STEP_NUM_TASKS"});
  // Every program that an MPI's launcher or srun starts has such a number: alone it waits for no other.
  if (!job.rank && job.world_size.value_or(2) > 1)
    job.rank = number(detail, {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "HOROVOD_RANK"});
  // An interactive shell of srun is "task 0 of 1", which makes no rank of what is started in it.
  if (!job.rank && job.world_size.value_or(1) > 1) job.rank = number(detail, {"SLURM_PROCID"});
  job.local_world_size = number(detail, {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "HOROVOD_LOCAL_SIZE",
                                         "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE"});
  if (!job.local_world_size) job.local_world_size = local_tasks_of_step(job, detail);
  find_rank_of_lightning(job, detail);
  // Alone in its world it may have been started by hand: torchrun would also give its run a name.
  job.launched = job.launched || (variable(detail, "LOCAL_WORLD_SIZE") != nullptr && job.world_size.value_or(1) > 1);
  job.launched = job.launched || has_any(detail, {"CROSS_SIZE", "TORCHELASTIC_RUN_ID", "OMPI_COMM_WORLD_RANK",
                                                  "PMI_RANK", "PMIX_NAMESPACE", "SLURM_PROCID", "HOROVOD_RANK"});
  // It may also be left over from an earlier trial, and mean nothing to those who meet by other means.
  const bool some_here = job.local_world_size && job.world_size && *job.local_world_size < *job.world_size;
  job.one_node = variable(detail, "MASTER_ADDR") != nullptr && has_own_master(detail) && !some_here;
  find_container(job, detail.cgroup);
  const std::string container = job.scheduler == "systemd" ? std::string() : job.id;
  find_batch_job(job, detail);
  find_slurm_job(job, detail);
  if (job.rank) {
    job.group = group_of(detail, container);
    job.wide_group = wide_group_of(detail);
  }
  return job;
}

Job job_of(const HostSample& host, const ProcessBrief& process, const ProcessDetail& detail) {
  Job job = job_of(detail);
  inherit_job(job, host, process, detail);
  if (job.scheduler == "slurm") job.step = step_of(job, host, process);
  if (job.scheduler == "systemd" && is_in_unit_of_others(host, process, detail)) {
    job.scheduler.clear();
    job.id.clear();
    job.label.clear();
  }
  if (job.scheduler == "systemd") {  // 0: a session that cannot be seen from here
    const ProcessBrief& first = first_of_cgroup(host, process, detail);
    job.left_in_unit = first.session != 0 && first.session != first.pid && is_reaper(host, first.parent, false);
  }
  if (is_ray_worker(process)) {  // what a launcher set is for the raylet that started it
    job.rank = job.world_size = job.local_world_size = std::nullopt;
    job.launched = job.one_node = false;
    job.group.clear();
    job.wide_group.clear();
  }
  if (!job.ranked() || tells_job(detail)) return job;
  for (const ProcessBrief& ancestor : Ancestors(host, process)) {
    if (!is_launcher(ancestor, find_detail(host, ancestor.pid))) continue;
    job.group += "/launcher " + std::to_string(ancestor.pid);
    break;
  }
  return job;
}

bool is_first_of_container(const HostSample& host, int pid) {
  const ProcessDetail* const detail = find_detail(host, pid);
  return detail != nullptr && detail->inner_pid == 1;
}

bool is_run_by_supervisor(const ProcessDetail& detail) {
  const std::string_view cgroup = detail.cgroup, unit = cgroup.substr(cgroup.rfind('/') + 1);
  return unit.ends_with(".service") && is_one_of(unit.substr(0, unit.find_first_of("@.")), kSupervisors);
}

}  // namespace drover::inline v1::health
