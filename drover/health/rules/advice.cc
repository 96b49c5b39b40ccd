// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "drover/health/rules/job_view.h"
#include "drover/health/rules/rules.h"

namespace drover::inline v1::health {

std::optional<double> Subject::memory() const {
  std::optional<double> sum;
  for (const On& on : gpus) {
    if (on.row->memory.ok()) sum = sum.value_or(0) + static_cast<double>(on.row->memory.value);
  }
  return sum;
}

namespace {

/// Only pictures are drawn by it, for a screen: a display server, a desktop's shell, a browser. Other vendors' drivers
/// call work of programs graphics as well.
bool draws_only(const Subject& subject) {
  return std::all_of(subject.gpus.begin(), subject.gpus.end(),
                     [](const Subject::On& on) { return on.gpu->vendor == "nvidia" && on.row->uses == kUsesGraphics; });
}

bool is_paused(const Subject& subject) { return subject.track != nullptr && subject.track->frozen; }

Kind kind_of(const Scene& scene, const Subject& subject) {
  const Kind kind = health::kind_of(scene.last.host, *subject.brief, subject.detail);
  // In a job's container or batch job it may render for hours on no screen.
  const bool at_screen = subject.job.scheduler.empty() || subject.job.scheduler == "systemd";
  if (draws_only(subject) && at_screen && !subject.job.ranked()) return Kind::kSystem;
  return kind != Kind::kSystem && is_paused(subject) ? Kind::kStopped : kind;
}

}  // namespace

std::vector<Subject> subjects(const Scene& scene) {
  std::map<ProcessKey, Subject> found;
  for (const GpuSample& gpu : scene.last.driver.gpus) {
    const GpuTrack* const track = scene.tracker.gpu(gpu.uuid);
    if (track == nullptr) continue;
    for (const GpuProcessRow& row : gpu.rows) {
      const ProcessKey key = scene.tracker.owner(scene.last.host, gpu.uuid, row.pid);
      const HoldTrack* const hold = scene.tracker.hold(gpu.uuid, key);
      if (hold == nullptr) continue;
      Subject& subject = found[key];
      subject.pid = row.pid;
      if (key == key_of(scene.last.host, row.pid)) {
        subject.brief = find_process(scene.last.host, row.pid);
        subject.detail = find_detail(scene.last.host, row.pid);
      }
      subject.track = scene.tracker.process(key);
      subject.gpus.push_back({&gpu, &row, hold, track});
    }
  }
  std::vector<Subject> result;
  for (auto& [key, subject] : found) {
    if (subject.detail != nullptr && subject.brief != nullptr)
      subject.job = job_of(scene.last.host, *subject.brief, *subject.detail);
    if (subject.brief != nullptr) subject.kind = kind_of(scene, subject);
    result.push_back(std::move(subject));
  }
  return result;
}

void explain_unknown_holders(const Scene& scene, const GpuSample& gpu, Finding& finding) {
  finding.not_because.emplace_back(
      "which processes have it open cannot be told: the driver does not tell the device's number");
  if (scene.container) return;  // the holders may be outside
  finding.action.push_back(std::string("look who has GPUs open, as root: fuser -v ") +
                           (gpu.vendor == "nvidia" ? "/dev/nvidia*" : "/dev/dri/*"));
}

namespace {

/// What could have shown work or a job, and may not be read.
void note_unseen(const ProcessDetail& detail, Finding& finding) {
  std::string unseen;
  const auto add = [&](bool missing, const char* what) {
    if (missing) unseen += (unseen.empty() ? "" : ", ") + std::string(what);
  };
  add(!detail.io_bytes, "what it reads and writes");
  const bool unknown = !detail.environment_known && !detail.memory_locked;
  const bool titled = unknown && detail.io_bytes;  // who may see that may see the environment
  add(unknown && !titled, "its environment (rank and job)");
  add(!detail.listens, "whether it listens on a port");
  if (titled)
    finding.not_because.emplace_back(
        "its rank and job are not known: it has written a title over its environment, or that could not be read");
  if (!unseen.empty()) finding.not_because.push_back("not ruled out, as it may not be seen (needs root): " + unseen);
}

}  // namespace

Finding about(const Scene& scene, Rule rule, const Subject& subject, const char* verdict) {
  Finding finding;
  finding.rule = rule;
  finding.verdict = verdict;
  finding.pid = subject.pid;
  if (!subject.gpus.empty()) {
    finding.gpu = subject.gpus.front().gpu->index;
    finding.gpu_uuid = subject.gpus.front().gpu->uuid;
  }
  if (const auto bytes = subject.memory()) finding.memory_bytes = static_cast<std::uint64_t>(*bytes);
  finding.job = subject.job.label;
  if (subject.job.rank) finding.job += (finding.job.empty() ? "rank " : ", rank ") + std::to_string(*subject.job.rank);
  if (subject.detail != nullptr) {
    finding.command = subject.detail->command;
    if (subject.detail->uid) finding.user = scene.user(*subject.detail->uid);
    if (rule == Rule::kR8) note_unseen(*subject.detail, finding);
    if (rule >= Rule::kR5 && subject.detail->memory_locked)
      finding.not_because.emplace_back(
          "its command, rank and job are not known: the map of its memory is locked, and who reads them, as ps does, "
          "hangs");
  }
  if (subject.brief != nullptr) {
    if (finding.command.empty()) finding.command = "[" + subject.brief->name + "]";
    finding.age_s = subject.age(scene.last.at);
  }
  return finding;
}

Finding about(Rule rule, const GpuSample& gpu, const char* verdict) {
  Finding finding;
  finding.rule = rule;
  finding.verdict = verdict;
  finding.gpu = gpu.index;
  finding.gpu_uuid = gpu.uuid;
  return finding;
}

void grade(const Scene& scene, Finding& finding, double held_s, double enough_s, Severity severity,
           Confidence confidence, int looks) {
  finding.held_s = held_s;
  const bool enough = held_s >= enough_s && looks >= scene.limits[Limit::kConfirm];
  finding.severity = enough ? severity : Severity::kInfo;
  finding.confidence = enough ? confidence : Confidence::kLow;
  if (enough) return;
  const bool alone = scene.once && held_s <= scene.window_s;  // else a history knows of earlier looks
  // Between two looks of a window lies a part of it, so the window to ask for is a little longer.
  const double minutes = enough_s / 60;
  const std::string window = minutes < 1 ? std::to_string(static_cast<int>(enough_s * 1.2 + 1)) + "s"
                                         : std::to_string(static_cast<int>(minutes * 1.05 + 1)) + "m";
  finding.not_because.push_back(
      (alone ? "known for long enough: a single look; run with --window "
             : "known for long enough: seen for " + duration_text(held_s) + " only; run with --window ") +
      window + ", or repeatedly with --history");
}

void advise_continuing(Finding& finding, const Subject& subject) {
  finding.action.push_back(
      is_paused(subject)
          ? "it is paused by the freezer of its cgroup: thaw that (docker unpause, systemctl thaw), and it goes on"
          : "it is stopped: kill -CONT " + std::to_string(subject.pid) + " lets it go on");
}

namespace {

std::string quoted(const std::string& id) { return id.find_first_of("[]\\") == id.npos ? id : "'" + id + "'"; }

/// Of an array only the one task, of a job the one step: the others may be at work, also on other nodes.
std::string how_to_cancel(const Job& job) {
  const std::string id = quoted(job.id);
  const std::string& slurm = job.array_task.empty() ? job.id : job.array_task;
  if (job.scheduler == "slurm") return "scancel " + slurm + (job.step.empty() ? "" : "." + job.step + " (that step)");
  if (job.scheduler == "pbs") return "qdel " + id;
  return job.scheduler == "lsf" ? "bkill " + id : std::string();
}

/// A user's own unit is known to his own systemd alone.
std::string unit_of(const Job& job) {
  return "; end it by its unit" + std::string(job.of_user ? ", as that user: systemctl --user" : ": systemctl") +
         " stop " + quoted(job.id);
}

}  // namespace

void advise_asking(Finding& finding, const Job& job) {
  const std::string who = finding.user.empty() ? "the owner" : finding.user;
  std::string ask = "ask " + who + " first";
  if (const std::string command = how_to_cancel(job); !command.empty()) ask += "; end it by the scheduler: " + command;
  if (job.scheduler == "kubernetes")
    ask += "; end it by the scheduler: kubectl delete pod NAME, of the pod with the uid " + job.id +
           " (kubectl get pods -A -o yaml)";
  if (job.scheduler == "docker")
    ask += "; end it by its engine" + std::string(job.of_user ? ", as that user" : "") + ": docker stop " + job.id;
  if (job.scheduler == "podman") ask += "; end it by its engine, as that user: podman stop " + job.id;
  if (job.scheduler == "systemd" && !job.left_in_unit) ask += unit_of(job);
  finding.action.push_back(std::move(ask));
}

namespace {

/// For how long one beside has to rest before it may be ended as well: a notebook keeps what its owner computed, and a
/// server that rests is well, unless the one that is accused is its like.
double enough_rest(const Scene& scene, const Subject& subject, Kind accused) {
  if (subject.kind == Kind::kPlain || (subject.kind == Kind::kServer && accused == Kind::kServer))
    return scene.limits[Limit::kR7Hold];
  return subject.kind == Kind::kServer ? std::numeric_limits<double>::max() : scene.limits[Limit::kR8Interactive];
}

/// Whether it has done nothing for long, on its GPUs and on the CPU, or only spun, with no rank that it may wait for.
bool rests(const Scene& scene, const std::vector<Subject>& all, const Subject& subject, Kind accused) {
  const double enough = enough_rest(scene, subject, accused);
  const auto lasts = [&](const Streak& streak) { return streak.holds() && streak.length() >= enough; };
  const auto spins = [&](const Subject::On& on) { return lasts(on.hold->spinning); };
  const JobView view(scene, subject, all);
  if (subject.kind == Kind::kPlain && std::all_of(subject.gpus.begin(), subject.gpus.end(), spins))
    return ranks_elsewhere(view) == 0 && peer_at_work(view, enough).empty();
  const bool on_gpus = std::all_of(subject.gpus.begin(), subject.gpus.end(),
                                   [&](const Subject::On& on) { return lasts(on.hold->idle); });
  return on_gpus && subject.track != nullptr && lasts(subject.track->calm);
}

/// Whether the other ends too when the container, pod, unit, job or step of the one is ended as a whole.
bool ends_with(const Job& one, const Job& other) {
  const bool same_step = one.step.empty() || other.step == one.step;
  return !one.scheduler.empty() && other.scheduler == one.scheduler && other.id == one.id && same_step;
}

bool is_of_same_ranks(const Job& one, const Job& other) {
  return one.ranked() && other.ranked() && one.group == other.group;
}

/// Whether it and those below it use the CPU, without those below it that are on GPUs.
bool uses_cpu(const Scene& scene, const std::vector<Subject>& all, int pid) {
  const HostSample& host = scene.last.host;
  const double enough = scene.limits[Limit::kR8Cpu];
  const ProcessTrack* const track = scene.tracker.process(key_of(host, pid));
  if (track == nullptr || !track->measured || track->cpu_share <= enough) return false;
  double share = track->cpu_share;
  for (const Subject& subject : all) {
    if (subject.brief == nullptr || subject.track == nullptr || !subject.track->measured) continue;
    if (!descends_from(host, *subject.brief, pid)) continue;
    const auto lies_between = [&](const Subject& other) {
      return other.brief != nullptr && descends_from(host, *subject.brief, other.pid) &&
             descends_from(host, *other.brief, pid);
    };
    const bool counted = std::any_of(all.begin(), all.end(), lies_between);  // by the one between
    if (!counted) share -= subject.track->cpu_share;
  }
  return share > enough;
}

/// What works on the CPU alone, as another kernel of its JupyterLab or another step does: what started it too is seen.
/// 0: nothing.
int cpu_work_beside(const Scene& scene, const std::vector<Subject>& all, const Subject& subject) {
  const HostSample& host = scene.last.host;
  for (const auto& [pid, detail] : host.details) {
    const ProcessBrief* const process = find_process(host, pid);
    const int number = pid;
    const bool on_gpu = std::any_of(all.begin(), all.end(), [&](const Subject& other) { return other.pid == number; });
    if (process == nullptr || on_gpu || process->state == 'Z') continue;
    const Job job = job_of(host, *process, detail);
    if (!ends_with(subject.job, job) || is_of_same_ranks(subject.job, job)) continue;
    const bool below = std::any_of(all.begin(), all.end(), [&](const Subject& other) {
      return other.brief != nullptr && descends_from(host, *process, other.pid);
    });
    if (!below && uses_cpu(scene, all, pid)) return pid;
  }
  return 0;
}

/// One that would end with it when its container, pod, unit, job or step is ended as a whole, and may be at work. The
/// other ranks of its job are ended with it anyway. 0: there is none.
int at_work_beside(const Scene& scene, const std::vector<Subject>& all, const Subject& subject) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Subject& other) {
    if (other.pid == subject.pid || other.brief == nullptr || other.brief->state == 'Z') return false;
    return ends_with(subject.job, other.job) && !is_of_same_ranks(subject.job, other.job) &&
           !rests(scene, all, other, subject.kind);
  });
  return found != all.end() ? found->pid : cpu_work_beside(scene, all, subject);
}

/// Whether it, or its launcher, is the first process of its container, which ends with that in any case.
bool holds_container(const HostSample& host, const Subject& subject) {
  const Ancestors line = Ancestors::and_itself(host, *subject.brief);
  return std::any_of(line.begin(), line.end(), [&](const ProcessBrief& at) {
    return is_first_of_container(host, at.pid) && (at.pid == subject.pid || is_launcher(at, find_detail(host, at.pid)));
  });
}

/// A person's shell that would end with its container, pod, unit or Slurm job, as that of srun --pty or docker exec:
/// what is typed there need not be on a GPU. nullptr: there is none, or it is there to look at the job.
const ProcessBrief* shell_beside(const HostSample& host, const Subject& subject) {
  if (subject.brief == nullptr || holds_container(host, subject)) return nullptr;
  const auto& processes = host.processes;
  const auto found = std::find_if(processes.begin(), processes.end(), [&](const ProcessBrief& process) {
    const ProcessDetail* const detail = find_detail(host, process.pid);
    if (detail == nullptr || process.pid == subject.pid || process.state == 'Z') return false;
    if (!is_terminal(process, detail)) return false;
    return ends_with(subject.job, job_of(host, process, *detail));
  });
  return found == processes.end() ? nullptr : &*found;
}

}  // namespace

void advise_asking(const Scene& scene, const std::vector<Subject>& all, const Subject& subject, Finding& finding) {
  const HostSample& host = scene.last.host;
  const bool alone = subject.job.scheduler.empty();
  const int other = alone ? 0 : at_work_beside(scene, all, subject);
  const ProcessBrief* const shell = alone || other != 0 ? nullptr : shell_beside(host, subject);
  if (other == 0 && shell == nullptr) return advise_asking(finding, subject.job);
  advise_asking(finding, Job());
  const std::string whole = subject.job.label.empty() ? subject.job.id : subject.job.label;
  finding.action.back() += "; do not end " + whole + " as a whole: pid " +
                           (other != 0 ? name_of(host, other) + " of it may be at work"
                                       : name_of(host, shell->pid) + " of it is a shell that a person types into");
}

void advise_evidence(Finding& finding, int pid, bool collective, bool python) {
  const std::string number = std::to_string(pid);
  finding.action.push_back("keep evidence: " + (python ? "py-spy dump --pid " + number + "; " : std::string()) +
                           "cat /proc/" + number + "/task/*/wchan; gdb -p " + number +
                           " -batch -ex 'thread apply all bt'");
  if (!collective) return;
  finding.action.push_back(
      "ask NCCL itself (2.24 and later), if it uses it: ncclras, or port 28028 of the node" +
      std::string(python ? "; next time set TORCH_NCCL_TRACE_BUFFER_SIZE=2000 and TORCH_NCCL_DUMP_ON_TIMEOUT=1" : ""));
}

void advise_careful_evidence(Finding& finding, int pid) {
  finding.action.push_back(
      "keep evidence: cat /proc/" + std::to_string(pid) +
      "/task/*/wchan; not py-spy, gdb or ps: they hang as well while the map of its memory is locked");
}

std::string count_text(int count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

std::string pid_list(const std::vector<int>& pids) {
  std::string text;
  for (const int pid : pids) text += (text.empty() ? "" : " ") + std::to_string(pid);
  return text;
}

std::string how_to_reset(const GpuSample* gpu) {
  if (gpu == nullptr) return "nvidia-smi --gpu-reset";
  if (gpu->vendor == "nvidia") return "nvidia-smi --gpu-reset -i " + std::to_string(gpu->index);
  if (gpu->vendor == "amd") return "amd-smi reset --gpureset -g " + gpu->bus;
  return "echo 1 > /sys/bus/pci/devices/" + gpu->bus + "/reset";
}

std::string how_to_read_log(const GpuSample* gpu) {
  if (gpu == nullptr || gpu->vendor == "nvidia") return "dmesg | grep -i -e xid -e nvrm";
  return gpu->vendor == "amd" ? "dmesg | grep -i -e amdgpu -e kfd" : "dmesg | grep -i -e i915 -e ' xe '";
}

void advise_ending(Finding& finding, int launcher, const std::vector<int>& pids) {
  std::vector<int> mortal = pids;  // pid 1 takes the machine, or the container, along
  std::erase_if(mortal, [](int pid) { return pid <= 1; });
  if (mortal.empty()) return;
  const std::string all = pid_list(mortal), first = launcher > 1 ? std::to_string(launcher) : all;
  finding.action.push_back("then kill -TERM " + first + (launcher > 1 ? " (the launcher)" : "") +
                           ", wait 30 s, then kill -INT " + first);
  finding.action.push_back("only if it still lives: kill -KILL " + all + ", these and no others");
}

namespace {

/// In a container the driver may list the machine's pids, and a number that fits by chance would be the wrong process.
void replace_killing(Finding& finding) {
  const auto kills = [](const std::string& step) { return step.find("kill -") != step.npos; };
  if (std::erase_if(finding.action, kills) == 0) return;
  finding.action.emplace_back("end it from the machine itself: in a container these pids may be other processes'");
}

}  // namespace

std::vector<Finding> judge(const Scene& scene) {
  std::vector<Finding> findings;
  judge_driver(scene, findings);
  const std::vector<Subject> all = subjects(scene);
  judge_absent(scene, all, findings);
  judge_stuck(scene, all, findings);
  judge_jobs(scene, all, findings);
  judge_clocks(scene, findings);
  judge_memory(scene, findings);
  if (scene.container) {
    for (Finding& finding : findings) replace_killing(finding);
  }
  return findings;
}

}  // namespace drover::inline v1::health
