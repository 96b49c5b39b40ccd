// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include "drover/health/rules/job_view.h"
#include "drover/health/rules/kernel_place.h"
#include "drover/health/rules/rules.h"

namespace drover::inline v1::health {
namespace {

using enum Limit;

/// Its first thread is a zombie, and others of it live.
bool lives_on(const ProcessBrief& brief) { return brief.state == 'Z' && brief.threads > 1; }

void add_threads_left(const ProcessBrief& brief, Finding& finding) {
  if (lives_on(brief))
    finding.because.push_back(count_text(brief.threads - 1, "of its threads still lives", "of its threads still live"));
}

/// R2's evidence.
void explain_kernel(const Subject& subject, const ProcessTrack& track, bool killed, Finding& finding) {
  if (lives_on(*subject.brief)) finding.because.emplace_back("its first thread is a zombie");
  add_threads_left(*subject.brief, finding);
  if (track.stuck.holds()) {
    finding.because.push_back("thread " + pid_list(track.stuck_threads) + " was uninterruptible in " +
                              (track.stuck.hits == 1 ? "" : "each of ") +
                              count_text(track.stuck.hits, "look", "looks") + " over " +
                              duration_text(track.stuck.length()));
    finding.because.push_back(track.stuck_in.empty() ? "where it waits in the kernel is not told (needs root)"
                                                     : "it waits in " + track.stuck_in);
  }
  if (subject.detail != nullptr && subject.detail->memory_locked) {
    finding.because.emplace_back(
        "the map of its memory is locked: who reads its command or environment, as ps does, hangs");
  }
  if (killed) {
    finding.because.push_back("SIGKILL has been pending for " + duration_text(track.killed.length()) +
                              " or longer, and it still lives");
  }
}

/// Threads wait for a lock of the kernel, and the process itself uses the CPU: one that pins hundreds of gigabytes
/// holds the lock of its memory for minutes. Nobody pins for longer than r6.high.
bool waits_for_itself(const Scene& scene, const ProcessTrack& track) {
  return track.stuck.holds() && !track.killed.holds() && waits_for_lock(track.stuck_in) && track.measured &&
         track.own_share >= kMuchCpu && track.stuck.length() < scene.limits[kR6High];
}

/// The verdict where the GPU's driver has nothing to do with it, and what to do then. Whether that is so.
bool explain_wait(const Scene& scene, const Subject& subject, const ProcessTrack& track, Finding& finding) {
  // A stop would not keep SIGKILL from it: a freezer.
  if (!track.stuck.holds() && (track.frozen || subject.kind == Kind::kStopped)) {
    finding.verdict = "KILLED WHILE PAUSED";
    finding.not_because.emplace_back("a driver that is stuck: the freezer of its cgroup holds the process");
    finding.action.emplace_back("thaw its cgroup (docker unpause, systemctl thaw): the signal ends it then");
    return true;
  }
  if (track.in_storage) {
    finding.verdict = "WAITS FOR STORAGE";
    finding.not_because.emplace_back("the GPU driver: the kernel function belongs to storage or a file system");
    finding.action.emplace_back("look at what it waits for (mount, df, dmesg); the process goes on when that does");
    return true;
  }
  if (track.for_memory) {
    finding.verdict = "WAITS FOR MEMORY";
    finding.not_because.emplace_back("the GPU driver: the kernel function belongs to the limits and the use of memory");
    finding.action.emplace_back(
        "look who uses the memory (memory.high and memory.max of its cgroup, free, dmesg); the process goes on when "
        "some is free");
    return true;
  }
  if (waits_for_itself(scene, track)) {
    finding.verdict = "WAITS FOR A LOCK";
    finding.not_because.push_back("a driver that is stuck: the process itself uses " + percent_text(track.own_share) +
                                  " of a core, and may have the lock, as one that pins much memory");
    finding.action.emplace_back("look again in some minutes; the threads go on when the lock is free");
    return true;
  }
  return false;
}

/// What to do about R2.
void advise_kernel(const Scene& scene, const std::vector<Subject>& all, const Subject& subject,
                   const ProcessTrack& track, Finding& finding) {
  advise_asking(scene, all, subject, finding);
  const GpuSample* const gpu = subject.gpus.empty() ? nullptr : subject.gpus.front().gpu;
  finding.action.push_back("keep evidence: cat /proc/" + std::to_string(subject.pid) + "/task/*/wchan; " +
                           how_to_read_log(gpu));
  if (track.stuck.holds() && track.stuck_in.empty()) {
    finding.action.push_back(
        "look as root first, where it waits: what waits for storage or memory goes on by itself when that comes");
  }
  if (track.in_driver) {
    finding.action.push_back("more signals do nothing: drain the node, read the kernel's log, then reset the GPU (" +
                             how_to_reset(gpu) + ", as root) or reboot");
  } else {
    finding.action.push_back(std::string("more signals do nothing: ") +
                             (track.stuck.holds() ? "it goes on when what it waits for comes; where that never does"
                                                  : "it ends when it leaves the kernel; where it never does") +
                             ", drain the node and reboot it");
  }
}

/// Whether it runs, as a killed process does that gives back hundreds of gigabytes, pinned ones above all. Nobody needs
/// longer for that than r6.medium.
bool gives_back(const ProcessTrack& track) {
  return track.killed.holds() && !track.stuck.holds() && track.measured && track.own_share >= kMuchCpu;
}

/// For how long it may wait for storage or memory: what others have to give comes in minutes, or somebody has to look.
/// One that reads and writes meanwhile, as far as /proc tells, or works, is slow, and the server of its files is there.
Limit patience_of(const Scene& scene, const ProcessTrack& track, bool killed) {
  if (killed) return kR6Medium;
  const bool silent = track.io_rate >= 0 && track.io_rate <= scene.limits[kR7Io] && track.measured &&
                      track.cpu_share <= scene.limits[kR7Cpu];
  return silent ? kR2Storage : kR8Warn;
}

/// R2 for one process: `subject` may be on no GPU.
void judge_kernel(const Scene& scene, const std::vector<Subject>& all, const Subject& subject,
                  std::vector<Finding>& findings) {
  const ProcessTrack* const track = subject.track;
  if (track == nullptr || subject.brief == nullptr) return;
  const bool on_gpu = !subject.gpus.empty();
  const bool killed = track->killed.holds() && (subject.brief->state != 'Z' || lives_on(*subject.brief));
  const bool stuck = track->stuck.holds();
  if (!killed && !stuck) return;
  if (!on_gpu && !track->in_driver && !killed) return;  // a vfork, a disk: no business of the GPU's
  Finding finding = about(scene, Rule::kR2, subject, "STUCK IN KERNEL");
  explain_kernel(subject, *track, killed, finding);
  if (!explain_wait(scene, subject, *track, finding)) advise_kernel(scene, all, subject, *track, finding);
  const bool by_kill = killed && (!stuck || track->killed.length() >= scene.limits[kR2Kill]);
  if (gives_back(*track)) finding.not_because.emplace_back("an end that takes long: it runs, as one that frees memory");
  const bool waits = !track->in_driver && (track->in_storage || track->for_memory);
  const Limit limit = waits                ? patience_of(scene, *track, killed)
                      : gives_back(*track) ? kR6Medium
                      : by_kill            ? kR2Kill
                                           : kR2State;
  const double held = by_kill ? track->killed.length() : track->stuck.length();
  const bool matters = on_gpu && !waits_for_itself(scene, *track);
  const Severity severity = track->in_driver ? Severity::kCritical : matters ? Severity::kWarning : Severity::kInfo;
  const bool two_signs = track->in_driver || (stuck && by_kill);
  // A signal that is pending stays so, and two looks prove it; a thread may be caught in a short wait by chance.
  const int looks = by_kill ? std::numeric_limits<int>::max() : track->stuck.hits;
  grade(scene, finding, held, scene.limits[limit], severity, two_signs ? Confidence::kHigh : Confidence::kMedium,
        looks);
  finding.limits = {scene.limits.text(limit)};
  findings.push_back(std::move(finding));
}

/// Who may keep the memory of a zombie: its own threads that live, and who inherited the device. The kernel gives its
/// children another parent before it becomes one, so kinship says nothing.
UnlistedHolders holders_beside(const Scene& scene, const Subject& subject) {
  UnlistedHolders all;
  const auto uid = subject.detail != nullptr ? subject.detail->uid : std::nullopt;
  const auto add = [](std::vector<int>& to, const std::vector<int>& pids) {
    for (const int pid : pids) {
      if (std::find(to.begin(), to.end(), pid) == to.end()) to.push_back(pid);
    }
  };
  for (const Subject::On& on : subject.gpus) {
    const auto holders = unlisted_holders(scene, *on.gpu, uid);
    if (!holders) continue;
    add(all.pids, holders->pids);
    for (const auto& [why, pids] : holders->others) add(all.others[why], pids);
  }
  return all;
}

/// Of the zombie's own user, and nobody whose work is to look after others: the owner may signal it.
bool may_be_signalled(const Scene& scene, const ProcessBrief* parent, const Subject& zombie) {
  if (parent == nullptr || is_supervisor(parent->name)) return false;
  const ProcessDetail* const detail = find_detail(scene.last.host, parent->pid);
  return detail != nullptr && detail->uid && zombie.detail != nullptr && detail->uid == zombie.detail->uid;
}

bool is_on_gpu(const Scene& scene, int pid) {
  const auto& gpus = scene.last.driver.gpus;
  return std::any_of(gpus.begin(), gpus.end(), [&](const GpuSample& gpu) {
    return std::any_of(gpu.rows.begin(), gpu.rows.end(), [&](const GpuProcessRow& row) { return row.pid == pid; });
  });
}

/// A notebook's or another server, a person's shell, or what works, is on a GPU itself or has another child that lives.
bool does_more(const Scene& scene, const ProcessBrief& parent) {
  const HostSample& host = scene.last.host;
  const Kind kind = kind_of(host, parent, find_detail(host, parent.pid));
  if (kind == Kind::kNotebook || kind == Kind::kServer || is_on_gpu(scene, parent.pid)) return true;
  if (works(scene.tracker.process(key_of(host, parent.pid)))) return true;
  if (is_terminal(parent, nullptr) || parent.name == "tmux: server" || parent.name == "screen") return true;  // by name
  return std::any_of(host.processes.begin(), host.processes.end(),
                     [&](const ProcessBrief& process) { return process.parent == parent.pid && process.state != 'Z'; });
}

/// Whether to end the zombie's container, pod, unit or job as a whole ends its parent as well, and that does more.
bool ends_parent_too(const Scene& scene, const Subject& zombie) {
  const HostSample& host = scene.last.host;
  const ProcessBrief* const parent = find_process(host, zombie.brief->parent);
  if (zombie.job.scheduler.empty() || parent == nullptr || is_supervisor(parent->name)) return false;
  const ProcessDetail* const detail = find_detail(host, parent->pid);
  if (detail == nullptr || !does_more(scene, *parent)) return false;
  const Job job = job_of(host, *parent, *detail);
  return job.scheduler == zombie.job.scheduler && job.id == zombie.job.id;
}

/// A zombie is gone when its parent asks for it.
void advise_parent(const Scene& scene, const Subject& zombie, Finding& finding) {
  const int pid = zombie.brief->parent;
  const ProcessBrief* const parent = find_process(scene.last.host, pid);
  const std::string name = name_of(scene.last.host, pid), number = std::to_string(pid);
  if (pid <= 1 || is_reaper(scene.last.host, pid, scene.container)) {
    finding.action.push_back("leave its parent alone, pid " + name + ": it collects the zombie by itself, at the end");
  } else if (!may_be_signalled(scene, parent, zombie)) {
    finding.action.push_back("a zombie cannot be killed, and only its parent, pid " + name +
                             ", can collect it: ask its owner, and do not end it, as others may depend on it");
  } else if (const bool first = is_first_of_container(scene.last.host, pid); first || does_more(scene, *parent)) {
    finding.action.push_back("a zombie cannot be killed: kill -CHLD " + number + " asks its parent, pid " + name +
                             ", to collect it, and ends nothing; do not end the parent, " +
                             (first ? "with which its container ends" : "which does more than that"));
  } else {
    finding.action.push_back("a zombie cannot be killed: kill -CHLD " + number + " asks its parent, pid " + name +
                             ", to collect it; if that does not help, end the parent after asking: kill -TERM " +
                             number);
  }
}

/// Whether threads of it, whose first one has ended, do more than wait, poll or spin. A little CPU use counts for some
/// minutes only.
bool works_on(const Scene& scene, const Subject& subject) {
  if (!lives_on(*subject.brief)) return false;
  bool computes = false;
  for (const Subject::On& on : subject.gpus) {
    if (on.hold->spinning.holds()) return false;
    computes = computes || (on.hold->was_busy && !on.hold->idle.holds());
  }
  const ProcessTrack* const track = subject.track;
  if (computes || track == nullptr || !track->measured) return computes;
  const bool in_time = track->defunct.length() < scene.limits[kR6High];
  return track->cpu_share > (in_time ? scene.limits[kR8Cpu] : kMuchCpu) && (in_time || !may_poll(*track));
}

/// While threads of it live, nobody can collect it; a signal to it reaches them.
void advise_threads_left(const Subject& zombie, const UnlistedHolders& holders, Finding& finding) {
  finding.action.push_back(
      "it goes when its threads end, which its parent cannot hasten: see where they wait, cat /proc/" +
      std::to_string(zombie.pid) + "/task/*/wchan");
  std::vector<int> pids = {zombie.pid};
  pids.insert(pids.end(), holders.pids.begin(), holders.pids.end());
  advise_ending(finding, 0, pids);
}

void explain_defunct(const Scene& scene, const Subject& subject, const UnlistedHolders& holders, Finding& finding) {
  const auto bytes = subject.memory();
  finding.because.push_back("its first thread is a zombie, and the driver still " +
                            (bytes ? "counts " + bytes_text(*bytes) + " for it" : "lists it"));
  if (!bytes) finding.not_because.emplace_back("that it holds memory is not known: the driver does not tell how much");
  add_threads_left(*subject.brief, finding);
  if (!holders.pids.empty()) {
    finding.because.push_back("these have the device open, and may hold its memory: " +
                              names_of(scene.last.host, holders.pids));
  }
  note_others(scene, holders, finding);
  finding.because.push_back("its parent is pid " + name_of(scene.last.host, subject.brief->parent));
}

void judge_defunct(const Scene& scene, const std::vector<Subject>& all, const Subject& subject,
                   std::vector<Finding>& findings) {
  const auto bytes = subject.memory();
  if (bytes && *bytes <= 0) return;
  Finding finding = about(scene, Rule::kR3, subject, "DEFUNCT, HOLDS MEMORY");
  const UnlistedHolders holders = holders_beside(scene, subject);
  explain_defunct(scene, subject, holders, finding);
  const double held = subject.track != nullptr ? subject.track->defunct.length() : 0;
  const bool two_signs = subject.brief->threads > 1 || !holders.pids.empty();
  // Two looks are proof, whatever lies between: who is a zombie stays one.
  const bool works = works_on(scene, subject);
  grade(scene, finding, held, scene.limits[kR3Hold], bytes && !works ? Severity::kWarning : Severity::kInfo,
        works       ? Confidence::kLow
        : two_signs ? Confidence::kHigh
                    : Confidence::kMedium);
  finding.limits = {scene.limits.text(kR3Hold)};
  if (works) {
    finding.not_because.emplace_back("a fault: threads of it are at work, and only its first one has ended");
    findings.push_back(std::move(finding));
    return;
  }
  if (ends_parent_too(scene, subject)) {
    advise_asking(finding, Job());
  } else {
    advise_asking(scene, all, subject, finding);
  }
  if (lives_on(*subject.brief)) {
    advise_threads_left(subject, holders, finding);
  } else {
    advise_parent(scene, subject, finding);
    if (!holders.pids.empty()) advise_ending(finding, 0, holders.pids);
  }
  findings.push_back(std::move(finding));
}

/// Of one whose first thread is a zombie: what keeps a thread of it from its end says more, as soon as it is as sure.
void judge_zombie(const Scene& scene, const std::vector<Subject>& all, const Subject& subject,
                  std::vector<Finding>& findings) {
  std::vector<Finding> kernel, defunct;
  if (lives_on(*subject.brief)) judge_kernel(scene, all, subject, kernel);
  judge_defunct(scene, all, subject, defunct);
  const bool by_kernel = !kernel.empty() && (defunct.empty() || kernel.front().severity >= defunct.front().severity);
  for (Finding& finding : by_kernel ? kernel : defunct) findings.push_back(std::move(finding));
}

}  // namespace

void judge_stuck(const Scene& scene, const std::vector<Subject>& all, std::vector<Finding>& findings) {
  for (const Subject& subject : all) {
    if (subject.brief == nullptr) continue;  // R4's
    if (subject.brief->state == 'Z') {
      judge_zombie(scene, all, subject, findings);
    } else {
      judge_kernel(scene, all, subject, findings);
    }
  }
  const HostSample& host = scene.last.host;
  for (const auto& [pid, detail] : host.details) {  // those that are on no GPU
    const auto on_gpu = [&, wanted = pid](const Subject& subject) { return subject.pid == wanted; };
    if (std::any_of(all.begin(), all.end(), on_gpu)) continue;
    Subject subject;
    subject.pid = pid;
    subject.brief = find_process(host, pid);
    if (subject.brief == nullptr) continue;
    subject.detail = &detail;
    subject.track = scene.tracker.process(key_of(host, pid));
    subject.job = job_of(host, *subject.brief, detail);
    // Who began its unit is not looked at: to stop that might end another user's service.
    if (subject.job.scheduler == "systemd") {
      for (std::string* const text : {&subject.job.scheduler, &subject.job.id, &subject.job.label}) text->clear();
    }
    judge_kernel(scene, all, subject, findings);
  }
}

}  // namespace drover::inline v1::health
