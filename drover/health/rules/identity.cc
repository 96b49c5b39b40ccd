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
constexpr int kMostComponents = 8;   // of a heterogeneous job: job_variables() has so many
constexpr double kStartsAtOnce = 1;  // seconds

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

template <std::size_t N>
bool is_one_of(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

constexpr std::array<std::string_view, 5> kSupervisors = {"nomad", "gitlab-runner", "jenkins", "supervisor",
                                                          "supervisord"};

/// Units in which others' processes stay, or all of a person's: to end one of these by its unit would end them all.
bool is_host_of_others(std::string_view unit) {
  static constexpr std::array<std::string_view, 8> kOfPersons = {"gnome-terminal", "tmux",  "screen", "vncserver",
                                                                 "xrdp",           "emacs", "dbus",   "app-"};
  static constexpr std::array<std::string_view, 15> kHosts = {
      "cron",       "crond",  "cronie", "anacron",  "atd",  "ssh",    "sshd",          "user",
      "jupyterhub", "slurmd", "pbs",    "sgeexecd", "lsfd", "condor", "rstudio-server"};
  const std::string_view name = unit.substr(0, unit.find_first_of("@."));
  return is_one_of(name, kHosts) || is_one_of(name, kSupervisors) ||
         std::any_of(kOfPersons.begin(), kOfPersons.end(),
                     [&](std::string_view start) { return name.starts_with(start); });
}

/// Users may call their cgroups what they like, and commands with these names are to be pasted into a shell.
bool is_safe_in_shell(const std::string& name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view(":_.@-").find(c) != std::string_view::npos;
  };
  return !name.empty() && name.front() != '-' && std::all_of(name.begin(), name.end(), fits);
}

void find_container(Job& job, const std::string& cgroup) {
  if (cgroup.find("kubepods") != cgroup.npos) {
    std::string id = part_after(cgroup, "/pod");
    if (id.empty()) id = part_after(cgroup, "-pod");
    if (!is_safe_in_shell(id)) return;
    job.scheduler = "kubernetes";
    job.id = std::move(id);
    job.label = "pod " + job.id;
    return;
  }
  for (const std::string_view mark : {"/docker-", "/docker/", "/libpod-"}) {
    const std::string id = part_after(cgroup, mark);
    if (!is_safe_in_shell(id)) continue;
    job.scheduler = "docker";
    job.id = id.substr(0, 12);
    job.label = "container " + job.id;
    return;
  }
  const std::size_t slash = cgroup.rfind('/');
  if (slash == cgroup.npos || !cgroup.ends_with(".service")) return;
  std::string unit = cgroup.substr(slash + 1);
  if (!is_safe_in_shell(unit) || is_host_of_others(unit)) return;
  job.scheduler = "systemd";
  job.id = std::move(unit);
  job.label = "unit " + job.id;
  job.of_user = cgroup.find("/user@") < slash;
}

template <std::size_t N>
bool contains_any(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) { return text.find(word) != text.npos; });
}

constexpr std::array<std::string_view, 7> kNotebooks = {
    "ipykernel", "jupyter-lab", "jupyter-notebook", "jupyterhub-singleuser", "colab_kernel", "rsession", "marimo"};
/// Of Ray, whose workers also train, a replica of Serve and a worker of vLLM; the kernel keeps 15 letters of a name.
constexpr std::array<std::string_view, 10> kServers = {
    "vllm",   "VLLM::",     "tritonserver", "ollama",  "ray::ServeRepli", "ray::RayWorkerW",
    "sglang", "torchserve", "uvicorn",      "gunicorn"};
/// Words that make a server of whatever has one of them in its name: trtllm-serve, model_server, "lmdeploy serve".
constexpr std::array<std::string_view, 3> kServing = {"serve", "server", "serving"};
constexpr std::array<std::string_view, 3> kServersOfModels = {"text-generation-server", "triton_python_backend",
                                                              "model_service_worker"};  // TorchServe's
constexpr std::array<std::string_view, 18> kSystem = {
    "Xorg",        "Xwayland", "gnome-shell", "kwin_wayland",  "nvidia-cuda-mps", "nv-hostengine", "nvidia-persiste",
    "dcgmi",       "nvvs",     "nvidia-smi",  "nvidia-fabric", "nvidia-imex",     "dcgm-exporter", "nvidia-powerd",
    "drover-nvml", "nvtop",    "nvitop",      "gpustat"};
// Both adopt orphans; the init of a container also starts the one process that it is there for, at once.
constexpr std::array<std::string_view, 4> kManagers = {"systemd", "init", "s6-svscan", "runsvdir"};
constexpr std::array<std::string_view, 6> kContainerInits = {"tini",        "tini-static", "dumb-init",
                                                             "docker-init", "catatonit",   "podman-init"};
constexpr std::array<std::string_view, 8> kShells = {"bash", "sh", "dash", "zsh", "fish", "ksh", "tcsh", "csh"};

/// What is run, of all arguments: the program, of an interpreter its script or module, and a command as in "lmdeploy
/// serve". A path to data or the name of an option says nothing about what a program is.
struct Program {
  std::string_view program, script, command;
};

/// Takes the next argument off.
std::string_view next_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(word.size());
  return word;
}

bool is_interpreter(std::string_view program) {
  static constexpr std::array<std::string_view, 6> kInterpreters = {"python", "pypy", "node", "julia", "perl", "ruby"};
  return std::any_of(kInterpreters.begin(), kInterpreters.end(),
                     [&](std::string_view name) { return program.substr(0, name.size()) == name; });
}

Program program_of(std::string_view arguments) {
  const auto base = [](std::string_view path) { return path.substr(path.rfind('/') + 1); };
  Program result;
  result.program = base(next_word(arguments));
  std::string_view word = next_word(arguments);
  if (is_interpreter(result.program)) {
    for (; !word.empty() && word.front() == '-'; word = next_word(arguments)) {
      if (word == "-c") return result;  // a text, of which the words say nothing
      if (word == "-m") break;
      if (word == "-W" || word == "-X") next_word(arguments);
    }
    result.script = word == "-m" ? next_word(arguments) : base(word);
    word = next_word(arguments);
  }
  const bool bare = !word.empty() && word.find_first_not_of("abcdefghijklmnopqrstuvwxyz-") == word.npos;
  if (bare && word.front() != '-') result.command = word;
  return result;
}

/// Whether one of the parts between punctuation is a word of serving: "serve.py", not "observe.py".
bool names_serving(std::string_view name) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  while (!name.empty()) {
    const auto end = std::find_if_not(name.begin(), name.end(), is_letter);
    const auto length = static_cast<std::size_t>(end - name.begin());
    if (is_one_of(name.substr(0, length), kServing)) return true;
    name.remove_prefix(std::min(length + 1, name.size()));
  }
  return false;
}

bool is_server(const ProcessBrief& process, const Program& runs) {
  for (const std::string_view name : {std::string_view(process.name), runs.program, runs.script}) {
    if (contains_any(name, kServers) || contains_any(name, kServersOfModels)) return true;
  }
  return names_serving(runs.program) || names_serving(runs.script) || is_one_of(runs.command, kServing);
}

/// What name and command line say about one process.
Kind own_kind(const ProcessBrief& process, const ProcessDetail* detail) {
  if (contains_any(process.name, kSystem)) return Kind::kSystem;
  const Program runs = program_of(detail != nullptr ? std::string_view(detail->command) : std::string_view());
  for (const std::string_view name : {std::string_view(process.name), runs.program, runs.script}) {
    if (contains_any(name, kNotebooks)) return Kind::kNotebook;
  }
  return is_server(process, runs) ? Kind::kServer : Kind::kPlain;
}

/// A shell that a person types into: it runs no script and no given command.
bool is_terminal(const ProcessBrief& process, const ProcessDetail* detail) {
  if (!is_one_of(process.name, kShells)) return false;
  std::string_view arguments = detail != nullptr ? std::string_view(detail->command) : std::string_view();
  next_word(arguments);
  for (std::string_view word = next_word(arguments); !word.empty(); word = next_word(arguments)) {
    if (word == "--init-file" || word == "--rcfile") {
      next_word(arguments);
    } else if (word.front() != '-' || word == "-c") {
      return false;
    }
  }
  return true;
}

bool has_own_master(const ProcessDetail& detail) {
  const std::string* const master = variable(detail, "MASTER_ADDR");
  return master == nullptr || master->empty() || *master == "localhost" || *master == "::1" ||
         master->substr(0, 4) == "127.";
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
  // Two torchruns of one step on one node differ in nothing else.
  if (loopback && master != nullptr && port != nullptr && !group.empty()) add("port " + *port);
  return group;
}

/// What the ranks of one job have in common and those of others have not: the user, and what the launcher set. A master
/// that is the container's own says nothing about other containers.
std::string group_of(const ProcessDetail& detail, const std::string& container) {
  std::string group = "user " + (detail.uid ? std::to_string(*detail.uid) : "?");
  if (!container.empty() && has_own_master(detail)) group += "/in " + container;
  for (const char* const name : {"SLURM_JOB_ID", "SLURM_STEP_ID", "TORCHELASTIC_RUN_ID", "PMIX_NAMESPACE",
                                 "MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE"}) {
    if (const std::string* const value = variable(detail, name)) group += "/" + *value;
  }
  return group;
}

/// Whether the environment alone tells the job from another one of the same user.
bool tells_job(const ProcessDetail& detail) {
  return variable(detail, "PMIX_NAMESPACE") != nullptr || variable(detail, "MASTER_PORT") != nullptr ||
         variable(detail, "SLURM_STEP_ID") != nullptr;
}

/// The other ranks of PyTorch Lightning's own launcher have no RANK; that of the first node is LOCAL_RANK. The first
/// rank starts them, and has no number that can be seen.
void find_rank_of_lightning(Job& job, const ProcessDetail& detail) {
  if (job.rank || job.world_size.value_or(1) < 2 || number(detail, {"NODE_RANK"}) != 0) return;
  job.rank = number(detail, {"LOCAL_RANK"});
  job.launched = job.of_lightning = job.ranked();
}

void find_components(Job& job, const ProcessDetail& detail) {
  for (int part = 0; part < kMostComponents; ++part) {
    const std::string* const id = variable(detail, ("SLURM_JOB_ID_HET_GROUP_" + std::to_string(part)).c_str());
    if (id != nullptr && os::parse_number(*id)) job.components.push_back(*id);
  }
}

/// Whether what began its unit is another user's, as a JupyterHub of root's is, or a person types into it.
bool is_in_unit_of_others(const HostSample& host, const ProcessBrief& process, const ProcessDetail& detail) {
  const ProcessBrief* ancestor = find_process(host, process.parent);
  for (int steps = 0; ancestor != nullptr && ancestor->pid > 1 && steps < kMostAncestors; ++steps) {
    const ProcessDetail* const more = find_detail(host, ancestor->pid);
    if (more == nullptr || more->cgroup != detail.cgroup) return false;
    if (more->uid != detail.uid || is_terminal(*ancestor, more)) return true;
    ancestor = find_process(host, ancestor->parent);
  }
  return false;
}

}  // namespace

Job job_of(const ProcessDetail& detail) {
  Job job;
  job.rank = number(detail, {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"});
  job.world_size = number(detail, {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"});
  // An interactive shell of srun is "task 0 of 1", which makes no rank of what is started in it.
  if (!job.rank && job.world_size.value_or(1) > 1) job.rank = number(detail, {"SLURM_PROCID"});
  job.local_world_size = number(detail, {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"});
  find_rank_of_lightning(job, detail);
  for (const char* const name : {"LOCAL_WORLD_SIZE", "CROSS_SIZE", "TORCHELASTIC_RUN_ID", "OMPI_COMM_WORLD_RANK",
                                 "PMI_RANK", "PMIX_NAMESPACE", "SLURM_PROCID"})
    job.launched = job.launched || variable(detail, name) != nullptr;
  // It may also be left over from an earlier trial, and mean nothing to those who meet by other means.
  const bool some_here = job.local_world_size && job.world_size && *job.local_world_size < *job.world_size;
  job.one_node = variable(detail, "MASTER_ADDR") != nullptr && has_own_master(detail) && !some_here;
  find_container(job, detail.cgroup);
  const std::string container = job.scheduler == "systemd" ? std::string() : job.id;
  const std::string* const slurm = variable(detail, "SLURM_JOB_ID");
  if (slurm != nullptr && os::parse_number(*slurm)) {
    job.scheduler = "slurm";
    job.id = *slurm;
    job.label = "slurm " + job.id;
    find_components(job, detail);
  }
  if (job.rank) {
    job.group = group_of(detail, container);
    job.wide_group = wide_group_of(detail);
  }
  return job;
}

Job job_of(const HostSample& host, const ProcessBrief& process, const ProcessDetail& detail) {
  Job job = job_of(detail);
  if (job.scheduler == "systemd" && is_in_unit_of_others(host, process, detail)) {
    job.scheduler.clear();
    job.id.clear();
    job.label.clear();
  }
  if (!job.ranked() || tells_job(detail)) return job;
  const ProcessBrief* ancestor = find_process(host, process.parent);
  for (int steps = 0; ancestor != nullptr && steps < kMostAncestors; ++steps) {
    if (is_launcher(*ancestor, find_detail(host, ancestor->pid))) {
      job.group += "/launcher " + std::to_string(ancestor->pid);
      break;
    }
    ancestor = find_process(host, ancestor->parent);
  }
  return job;
}

bool is_run_by_supervisor(const ProcessDetail& detail) {
  const std::string_view cgroup = detail.cgroup, unit = cgroup.substr(cgroup.rfind('/') + 1);
  return unit.ends_with(".service") && is_one_of(unit.substr(0, unit.find_first_of("@.")), kSupervisors);
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
    const ProcessDetail* const more = find_detail(host, ancestor->pid);
    if (is_terminal(*ancestor, more)) break;  // what a person started in a terminal is no part of who opened it
    const Kind kind = own_kind(*ancestor, more);
    if (kind == Kind::kNotebook || kind == Kind::kServer) return kind;
    ancestor = find_process(host, ancestor->parent);
  }
  const bool listens_anyway = is_ray_worker(process) || (detail != nullptr && job_of(*detail).ranked());
  return !listens_anyway && detail != nullptr && detail->listens.value_or(false) ? Kind::kServer : Kind::kPlain;
}

bool is_reaper(const HostSample& host, int pid, bool container) {
  if (pid == 1 && !container) return true;
  const ProcessBrief* const process = find_process(host, pid);
  return process != nullptr && (is_one_of(process->name, kManagers) || is_one_of(process->name, kContainerInits));
}

bool is_adopted(const HostSample& host, const ProcessBrief& process, bool container) {
  if (!is_reaper(host, process.parent, container)) return false;
  const ProcessBrief* const parent = find_process(host, process.parent);
  if (parent == nullptr || !is_one_of(parent->name, kContainerInits)) return true;
  const double later = static_cast<double>(process.start_ticks) - static_cast<double>(parent->start_ticks);
  return later > kStartsAtOnce * os::clock_ticks();
}

bool is_launcher(const ProcessBrief& process, const ProcessDetail* detail) {
  static constexpr std::array<std::string_view, 9> kLaunchers = {
      "torchrun", "mpirun", "mpiexec", "orterun", "prterun", "hydra_pmi", "accelerate", "deepspeed", "horovodrun"};
  if (contains_any(process.name, kLaunchers)) return true;
  const Program runs = program_of(detail != nullptr ? std::string_view(detail->command) : std::string_view());
  return contains_any(runs.program, kLaunchers) || contains_any(runs.script, kLaunchers) ||
         runs.script.substr(0, 17) == "torch.distributed" || (runs.program == "drover" && runs.command == "launch");
}

bool is_ray_worker(const ProcessBrief& process) { return process.name.starts_with("ray::"); }

bool is_python(const ProcessBrief& process, const ProcessDetail* detail) {
  const std::string_view command = detail != nullptr ? std::string_view(detail->command) : std::string_view();
  return process.name.substr(0, 6) == "python" || program_of(command).program.substr(0, 6) == "python";
}

double age_of(const ProcessBrief& process, double now) {
  return std::max(0.0, now - static_cast<double>(process.start_ticks) / os::clock_ticks());
}

}  // namespace drover::inline v1::health
