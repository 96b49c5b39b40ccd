// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string_view>

#include "drover/health/rules/identity.h"
#include "drover/health/rules/words.h"
#include "drover/os/host_files.h"

namespace drover::inline v1::health {
namespace {

constexpr std::size_t kKernelsName = 15;  // letters of a name that the kernel keeps
constexpr double kStartsAtOnce = 1;       // seconds

/// Whether it is the program of one of these names, or a part of it: "vllm", "vllm.entrypoints.openai.api_server",
/// "mpiexec.hydra", "VLLM::EngineCor"; but no script that has the name in its own, as "train_vllm.py" or "vllm.py".
template <std::size_t N>
bool is_called(std::string_view name, const std::array<std::string_view, N>& words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    if (name.size() == kKernelsName && word.starts_with(name)) return true;
    if (!name.starts_with(word)) return false;
    const std::string_view rest = name.substr(word.size());
    if (rest.empty() || word.ends_with(':')) return true;
    return std::string_view(".:-").find(rest.front()) != rest.npos && !rest.ends_with(".py");
  });
}

constexpr auto kNotebooks = std::to_array<std::string_view>(
    {"ipykernel", "ipykernel_launcher", "ipykernel_launcher.py", "jupyter-lab", "jupyter-labhub", "jupyter-notebook",
     "jupyterhub-singleuser", "colab_kernel_launcher", "colab_kernel_launcher.py", "rsession", "marimo",
     // A person types into these as well.
     "ipython", "ipython3", "bpython", "ptpython", "spyder_kernels", "pydevconsole.py"});
/// Of Ray, whose workers also train, a replica of Serve and a worker of vLLM. Some of these get their requests by a
/// Unix socket or a queue, or serve by programs of other names below them.
constexpr auto kServers = std::to_array<std::string_view>({"vllm",
                                                           "VLLM::",
                                                           "sglang",
                                                           "tritonserver",
                                                           "triton_python_backend_stub",
                                                           "ollama",
                                                           "ray::ServeReplica",
                                                           "ray::RayWorkerWrapper",
                                                           "torchserve",
                                                           "model_service_worker.py",
                                                           "text-generation",
                                                           "uvicorn",
                                                           "gunicorn",
                                                           "hypercorn",
                                                           "bentoml",
                                                           "streamlit",
                                                           "pvserver",
                                                           "dask",
                                                           "distributed.cli",
                                                           "dynamo.vllm",
                                                           "dynamo.sglang",
                                                           "dynamo.trtllm",
                                                           "local-ai",
                                                           "lm-studio",
                                                           "lms",
                                                           "xinference",
                                                           "uwsgi",
                                                           "daphne",
                                                           "granian"});
/// Workers of a queue wait for tasks as servers do for requests.
constexpr std::array<std::string_view, 4> kQueues = {"celery", "[celeryd", "rq", "rqworker"};
/// Words that make a server of whatever has one of them in its name: trtllm-serve, model_server, "lmdeploy serve".
constexpr std::array<std::string_view, 3> kServing = {"serve", "server", "serving"};
/// Servers of editors and terminals: what a person starts from there serves nobody.
constexpr auto kEditors =
    std::to_array<std::string_view>({"server-main.js", "code-server", "remote-dev-server", "remote-dev-serv",
                                     "gnome-terminal-server", "mosh-server", "wezterm-mux-server"});
/// Programs that a person types into while they wait for that; with a script to run they are none.
constexpr auto kPrompts = std::to_array<std::string_view>({"MATLAB", "R", "octave", "octave-cli", "octave-gui", "julia",
                                                           "maple", "MathKernel", "WolframKernel", "pdb", "ipdb"});
/// What cannot serve, or get calls, without the process that started it.
constexpr std::array<std::string_view, 4> kParts = {"VLLM::Engine", "VLLM::Worker", "sglang::schedul", "ray::"};
/// A virtual machine's share of a GPU is held for its guest, whatever that does.
constexpr auto kSystem = std::to_array<std::string_view>(
    {"Xorg",        "Xwayland", "gnome-shell", "kwin_wayland",  "nvidia-cuda-mps", "nv-hostengine", "nvidia-persiste",
     "dcgmi",       "nvvs",     "nvidia-smi",  "nvidia-fabric", "nvidia-imex",     "dcgm-exporter", "nvidia-powerd",
     "drover-nvml", "nvtop",    "nvitop",      "gpustat",       "nvidia-vgpu",     "qemu-system"});
// Both adopt orphans; the init of a container also starts the one process that it is there for, at once.
constexpr std::array<std::string_view, 4> kManagers = {"systemd", "init", "s6-svscan", "runsvdir"};
constexpr std::array<std::string_view, 6> kContainerInits = {"tini",        "tini-static", "dumb-init",
                                                             "docker-init", "catatonit",   "podman-init"};
constexpr std::array<std::string_view, 8> kShells = {"bash", "sh", "dash", "zsh", "fish", "ksh", "tcsh", "csh"};

/// What is run, of all arguments: the program, of an interpreter its script or module, and a command as in "lmdeploy
/// serve". A path to data or the name of an option says nothing about what a program is.
struct Program {
  std::string_view program, script, command;
  std::string_view path;  ///< of the script
  bool prompt = false;    ///< an interpreter that asks for what it is to do
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
  return starts_with_any(program, kInterpreters);
}

std::string_view text_of(const ProcessDetail* detail) {
  return detail != nullptr ? std::string_view(detail->command) : std::string_view();
}

Program program_of(const ProcessDetail* detail) {
  const auto base = [](std::string_view path) { return path.substr(path.rfind('/') + 1); };
  std::string_view arguments = text_of(detail);
  Program result;
  result.program = base(next_word(arguments));
  std::string_view word = next_word(arguments);
  if (is_interpreter(result.program)) {
    for (; !word.empty() && word.front() == '-'; word = next_word(arguments)) {
      if (word == "-c") return result;  // a text, of which the words say nothing
      if (word == "-m") break;
      if (word == "-W" || word == "-X") next_word(arguments);
      result.prompt = result.prompt || word == "-i";
    }
    result.prompt = result.prompt || word.empty();
    result.path = word == "-m" ? next_word(arguments) : word;
    result.script = base(result.path);
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

template <std::size_t N>
bool is_called(const ProcessBrief& process, const Program& runs, const std::array<std::string_view, N>& words) {
  return is_called(process.name, words) || is_called(runs.program, words) || is_called(runs.script, words);
}

/// What name and command line say about one process.
Kind own_kind(const ProcessBrief& process, const ProcessDetail* detail) {
  if (starts_with_any(process.name, kSystem) || process.name == "vgpu") return Kind::kSystem;
  const Program runs = program_of(detail);
  const std::array<std::string_view, 3> names = {process.name, runs.program, runs.script};
  const auto any = [&](const auto& fits) { return std::any_of(names.begin(), names.end(), fits); };
  if (is_called(process, runs, kNotebooks)) return Kind::kNotebook;
  if (any([](std::string_view name) { return is_one_of(name, kEditors); })) return Kind::kPlain;
  const bool serves = is_called(process, runs, kServers) || is_called(process, runs, kQueues) ||
                      names_serving(runs.program) || names_serving(runs.script) || is_one_of(runs.command, kServing);
  return serves ? Kind::kServer : Kind::kPlain;
}

/// What debugpy runs, which holds it without the kernel's help, as the debuggers of editors do.
bool is_debugger(const ProcessDetail* detail) {
  const Program runs = program_of(detail);
  return runs.script == "debugpy" || runs.path.ends_with("/debugpy/launcher") ||
         runs.path.ends_with("/debugpy/adapter");
}

/// What started it, unless a person's shell lies between: what is started in a terminal is no part of who opened that.
/// A worker of a queue may be given jobs to start, which are no servers then, nor are the ranks that any server starts.
Kind kind_of_ancestors(const HostSample& host, const ProcessBrief& process, bool ranked) {
  bool of_job = false;
  for (const ProcessBrief& ancestor : Ancestors(host, process)) {
    const ProcessDetail* const more = find_detail(host, ancestor.pid);
    if (is_terminal(ancestor, more)) break;
    if (is_debugger(more)) return Kind::kDebugged;
    const Kind kind = own_kind(ancestor, more);
    const bool gives_jobs = of_job && (ranked || is_called(ancestor, program_of(more), kQueues));
    if (kind == Kind::kNotebook || (kind == Kind::kServer && !gives_jobs)) return kind;
    of_job = of_job || is_launcher(ancestor, more);
  }
  return Kind::kPlain;
}

/// Whether a part of the program, or a web server that it started, listens for it on a port of a service. Other
/// children may listen for themselves, as wandb's does.
bool serves_by_child(const HostSample& host, const ProcessBrief& program) {
  return std::any_of(host.processes.begin(), host.processes.end(), [&](const ProcessBrief& child) {
    if (child.parent != program.pid || child.state == 'Z' || starts_with_any(child.name, kParts)) return false;
    const ProcessDetail* const detail = find_detail(host, child.pid);
    if (detail == nullptr || !detail->listens.value_or(false)) return false;
    return own_kind(child, detail) == Kind::kServer || is_worker_of_parent(host, child, *detail);
  });
}

/// Whether it, or the program of which it is a worker by Python's multiprocessing or a fork, listens on a port of a
/// service.
bool is_of_service(const HostSample& host, const ProcessBrief& process) {
  for (const ProcessBrief& at : Ancestors::and_itself(host, process)) {
    const ProcessDetail* const detail = find_detail(host, at.pid);
    if (detail == nullptr) return false;
    if (detail->listens.value_or(false) || serves_by_child(host, at)) return true;
    if (!is_worker_of_parent(host, at, *detail)) return false;
  }
  return false;
}

/// The topmost of it and those above it that cannot serve without who started them.
const ProcessBrief& topmost_part(const HostSample& host, const ProcessBrief& process) {
  const ProcessBrief* top = &process;
  for (const ProcessBrief& ancestor : Ancestors(host, process)) {
    if (!starts_with_any(ancestor.name, kParts)) break;
    top = &ancestor;
  }
  return *top;
}

/// What an engine is depends on who uses it: a script may ask the questions itself. Where it may not be seen whether
/// that one listens, it may serve.
Kind kind_of_engine(const HostSample& host, const ProcessBrief& process) {
  const ProcessBrief* const user = user_of_engine(host, process);
  const ProcessDetail* const detail = user != nullptr ? find_detail(host, user->pid) : nullptr;
  if (detail == nullptr || !detail->listens) return Kind::kServer;
  const Kind kind = kind_of(host, *user, detail);
  if (kind == Kind::kPlain) return serves_by_child(host, *user) ? Kind::kServer : kind;
  return kind == Kind::kNotebook || kind == Kind::kDebugged ? kind : Kind::kServer;
}

/// MATLAB reads what is typed by another thread than its first one, and its desktop needs no terminal.
bool is_matlab_prompt(const ProcessDetail& detail) {
  const auto has = [&](const char* option) { return detail.command.find(option) != detail.command.npos; };
  if (program_of(&detail).program != "MATLAB" || has(" -batch")) return false;
  return detail.at_terminal.value_or(true) || has(" -desktop");
}

}  // namespace

const char* to_text(Kind kind) noexcept {
  static constexpr const char* kTexts[] = {"plain", "notebook", "server", "stopped", "debugger", "system"};
  return kTexts[static_cast<int>(kind)];
}

Kind kind_of(const HostSample& host, const ProcessBrief& process, const ProcessDetail* detail) {
  const Kind own = own_kind(process, detail);
  if (own == Kind::kSystem) return own;
  if (process.state == 't' || (detail != nullptr && detail->tracer != 0)) return Kind::kDebugged;
  if (process.state == 'T') return Kind::kStopped;
  if (own == Kind::kServer && has_lost_its_server(host, process)) return Kind::kPlain;
  if (own == Kind::kServer) return kind_of_engine(host, process);
  if (own != Kind::kPlain) return own;
  const ProcessBrief* const parent = find_process(host, process.parent);
  const bool typed = parent != nullptr && is_terminal(*parent, find_detail(host, parent->pid));
  const Program runs = program_of(detail);
  const bool ranked = detail != nullptr && job_of(*detail).ranked();
  if (typed && runs.prompt) return Kind::kNotebook;
  if (detail != nullptr && is_called(process, runs, kPrompts) && (detail->reads_terminal || is_matlab_prompt(*detail)))
    return Kind::kNotebook;
  if (const Kind kind = kind_of_ancestors(host, process, ranked); kind != Kind::kPlain) return kind;
  if (is_debugger(detail) && !ranked) return Kind::kDebugged;
  const bool listens_anyway = is_ray_worker(process) || ranked;
  return !listens_anyway && is_of_service(host, process) ? Kind::kServer : Kind::kPlain;
}

bool is_worker_of_parent(const HostSample& host, const ProcessBrief& process, const ProcessDetail& detail) {
  const bool spawned = detail.command.find("from multiprocessing.") != std::string::npos;
  return spawned || detail.command == text_of(find_detail(host, process.parent));
}

bool is_same_program(const ProcessDetail& one, const ProcessDetail& other) {
  const Program a = program_of(&one), b = program_of(&other);
  return !a.program.empty() && a.program == b.program && a.path == b.path;
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

const ProcessBrief* user_of_engine(const HostSample& host, const ProcessBrief& process) {
  if (!starts_with_any(process.name, kParts)) return nullptr;
  const ProcessBrief& top = topmost_part(host, process);
  const ProcessBrief* const user = is_ray_worker(top) ? nullptr : find_process(host, top.parent);
  return user != nullptr && !starts_with_any(user->name, kParts) ? user : nullptr;  // data may be wrong
}

bool has_lost_its_server(const HostSample& host, const ProcessBrief& process) {
  if (!starts_with_any(process.name, kParts)) return false;
  const ProcessBrief& top = topmost_part(host, process);
  const ProcessBrief* const parent = find_process(host, top.parent);
  // In a container pid 1 may be the server itself; one that is not shown is the machine's.
  const bool shown = find_process(host, 1) != nullptr;
  return is_adopted(host, top, shown) || (parent != nullptr && is_terminal(*parent, find_detail(host, parent->pid)));
}

bool is_launcher(const ProcessBrief& process, const ProcessDetail* detail) {
  static constexpr auto kLaunchers = std::to_array<std::string_view>(
      {"torchrun", "mpirun", "mpirun_rsh", "mpispawn", "mpiexec", "orterun", "prterun", "orted", "prted",
       "hydra_pmi_proxy", "hydra_bstrap_proxy", "accelerate", "deepspeed", "horovodrun"});
  if (is_called(process.name, kLaunchers)) return true;
  const Program runs = program_of(detail);
  const bool airflow = runs.program == "airflow" || runs.script == "airflow";
  if (airflow && (runs.command == "task" || runs.command == "tasks")) return true;
  return is_called(runs.program, kLaunchers) || is_called(runs.script, kLaunchers) ||
         runs.script.starts_with("torch.distributed") || (runs.program == "drover" && runs.command == "launch");
}

bool is_terminal(const ProcessBrief& process, const ProcessDetail* detail) {
  if (!is_one_of(process.name, kShells)) return false;
  if (detail != nullptr && !detail->at_terminal.value_or(true)) return false;
  std::string_view arguments = text_of(detail);
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

bool is_ray_worker(const ProcessBrief& process) { return process.name.starts_with("ray::"); }

bool is_python(const ProcessBrief& process, const ProcessDetail* detail) {
  return process.name.starts_with("python") || program_of(detail).program.starts_with("python");
}

double age_of(const ProcessBrief& process, double now) {
  return std::max(0.0, now - static_cast<double>(process.start_ticks) / os::clock_ticks());
}

}  // namespace drover::inline v1::health
