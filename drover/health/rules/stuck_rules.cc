// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "drover/health/rules/rules.h"

namespace drover::inline v1::health {
namespace {

using enum Limit;

std::vector<int> children_of(const HostSample& host, int pid) {
  std::vector<int> pids;
  for (const ProcessBrief& process : host.processes) {
    if (process.parent == pid && process.pid != pid) pids.push_back(process.pid);
  }
  return pids;
}

std::string name_of(const HostSample& host, int pid) {
  const ProcessBrief* const process = find_process(host, pid);
  return std::to_string(pid) + (process != nullptr ? " (" + process->name + ")" : "");
}

/// R2's evidence, and what to do.
void explain_kernel(const Subject& subject, const ProcessTrack& track, bool killed, Finding& finding) {
  if (track.stuck.holds()) {
    finding.because.push_back("thread " + pid_list(track.stuck_threads) + " was uninterruptible in each of " +
                              std::to_string(track.stuck.hits) + " looks over " + duration_text(track.stuck.length()));
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
  if (track.in_storage) {
    finding.verdict = "WAITS FOR STORAGE";
    finding.not_because.emplace_back("the GPU driver: the kernel function belongs to storage or a file system");
    finding.action.emplace_back("look at what it waits for (mount, df, dmesg); the process goes on when that does");
    return;
  }
  advise_asking(finding, subject.job);
  const GpuSample* const gpu = subject.gpus.empty() ? nullptr : subject.gpus.front().gpu;
  finding.action.push_back("keep evidence: cat /proc/" + std::to_string(subject.pid) + "/task/*/wchan; " +
                           how_to_read_log(gpu));
  finding.action.push_back("more signals do nothing: drain the node, read the kernel's log, then reset the GPU (" +
                           how_to_reset(gpu) + ", as root) or reboot");
}

/// R2 for one process: `subject` may be on no GPU.
void judge_kernel(const Scene& scene, const Subject& subject, std::vector<Finding>& findings) {
  const ProcessTrack* const track = subject.track;
  if (track == nullptr || subject.brief == nullptr) return;
  const bool on_gpu = !subject.gpus.empty();
  const bool killed = track->killed.holds() && subject.brief->state != 'Z';
  const bool stuck = track->stuck.holds();
  if (!killed && !stuck) return;
  if (!on_gpu && !track->in_driver && !killed) return;  // a vfork, a disk: no business of the GPU's
  Finding finding = about(scene, Rule::kR2, subject, "STUCK IN KERNEL");
  explain_kernel(subject, *track, killed, finding);
  const bool by_kill = killed && (!stuck || track->killed.length() >= scene.limits[kR2Kill]);
  const double enough = scene.limits[by_kill ? kR2Kill : kR2State];
  const double held = by_kill ? track->killed.length() : track->stuck.length();
  const bool matters = on_gpu && !track->in_storage;
  const Severity severity = track->in_driver ? Severity::kCritical : matters ? Severity::kWarning : Severity::kInfo;
  const bool two_signs = track->in_driver || (stuck && by_kill);
  grade(scene, finding, held, enough, severity, two_signs ? Confidence::kHigh : Confidence::kMedium);
  finding.limits = {scene.limits.text(kR2State), scene.limits.text(kR2Kill)};
  findings.push_back(std::move(finding));
}

void judge_defunct(const Scene& scene, const Subject& subject, std::vector<Finding>& findings) {
  Finding finding = about(scene, Rule::kR3, subject, "DEFUNCT, HOLDS MEMORY");
  const HostSample& host = scene.last.host;
  finding.because.push_back("its first thread is a zombie, and the driver still counts " +
                            bytes_text(subject.memory().value_or(0)) + " for it");
  const int threads = subject.brief->threads;
  if (threads > 1) finding.because.push_back(std::to_string(threads - 1) + " of its threads still live");
  std::vector<int> holders;
  for (const int child : children_of(host, subject.pid)) {
    const auto has = [&](const Holder& holder) { return holder.pid == child; };
    if (std::any_of(scene.holders.holders.begin(), scene.holders.holders.end(), has)) holders.push_back(child);
  }
  if (!holders.empty()) finding.because.push_back("its children " + pid_list(holders) + " have GPU device files open");
  const double held = subject.track != nullptr ? subject.track->defunct.length() : 0;
  const bool two_signs = threads > 1 || !holders.empty();
  grade(scene, finding, held, scene.limits[kR3Hold], Severity::kWarning,
        two_signs ? Confidence::kHigh : Confidence::kMedium);
  finding.limits = {scene.limits.text(kR3Hold)};
  advise_asking(finding, subject.job);
  const int parent = subject.brief->parent;
  if (!holders.empty()) {
    advise_ending(finding, 0, holders);
  } else {
    finding.action.push_back("a zombie cannot be killed: end or signal its parent, pid " + name_of(host, parent) +
                             ", with kill -TERM after asking");
  }
  findings.push_back(std::move(finding));
}

void name_holders(const Scene& scene, const GpuSample& gpu, Finding& finding) {
  const auto pids = unlisted_holders(scene, gpu);
  const bool all_seen = pids && scene.holders.done && scene.holders.unreadable == 0;
  const bool named = pids && !pids->empty();
  if (!pids) {
    explain_unknown_holders(scene, gpu, finding);
  } else if (named) {
    std::string names;
    for (const int pid : *pids) names += (names.empty() ? "" : ", ") + name_of(scene.last.host, pid);
    finding.because.push_back("these still have the device open: " + names);
    finding.action.emplace_back(
        "ask the owner of the holders first: often data workers that outlived their job, and still hold its memory");
    advise_evidence(finding, pids->front(), false);
    advise_ending(finding, 0, *pids);
  } else if (all_seen) {
    finding.because.emplace_back("nobody has the device open: the driver leaked it");
    finding.action.push_back("drain the GPU, then reset it (" + how_to_reset(&gpu) + ", as root) or reload the driver");
  } else {
    finding.not_because.push_back(std::to_string(scene.holders.unreadable) +
                                  " processes may not be looked at: one of them may be the holder");
    finding.action.emplace_back("run it as root, to see who has the device open");
  }
  finding.confidence = named || all_seen ? Confidence::kHigh : Confidence::kMedium;
}

/// The row is of a process that ended; its number may belong to another one by now.
std::string text_of_gone(const Scene& scene, const Subject& subject, const HoldTrack& hold) {
  const ProcessBrief* const younger = find_process(scene.last.host, subject.pid);
  const std::string who = younger == nullptr ? ", and there is no such process"
                                             : " from before " + younger->name + " began, which has that number now";
  return "the driver lists pid " + std::to_string(subject.pid) + who + ", in " + std::to_string(hold.gone.hits) +
         " looks over " + duration_text(hold.gone.length());
}

/// The driver lists a process that is not there.
void judge_gone(const Scene& scene, const Subject& subject, std::vector<Finding>& findings) {
  for (const Subject::On& on : subject.gpus) {
    if (scene.container || !on.hold->gone.holds()) continue;
    Finding finding = about(Rule::kR4, *on.gpu, "ORPHANED HANDLE");
    finding.pid = subject.pid;
    if (on.row->memory.ok()) finding.memory_bytes = on.row->memory.value;
    finding.because.push_back(text_of_gone(scene, subject, *on.hold));
    finding.not_because.emplace_back("a container: these are the machine's own pids");
    name_holders(scene, *on.gpu, finding);
    const Confidence confidence = finding.confidence;
    grade(scene, finding, on.hold->gone.length(), scene.limits[kR4Twice], Severity::kWarning, confidence);
    finding.limits = {scene.limits.text(kR4Twice)};
    findings.push_back(std::move(finding));
  }
}

/// It exists, but /proc does not show it: mounted with hidepid.
void judge_hidden(const Scene& scene, const Subject& subject, std::vector<Finding>& findings) {
  for (const Subject::On& on : subject.gpus) {
    if (scene.container || on.hold->gone.holds() || on.track->seen != scene.last.at) continue;
    Finding finding = about(Rule::kG0, *on.gpu, "HIDDEN PROCESS");
    finding.pid = subject.pid;
    if (on.row->memory.ok()) finding.memory_bytes = on.row->memory.value;
    finding.severity = Severity::kUnknown;
    finding.because.push_back("pid " + std::to_string(subject.pid) + " exists, but /proc does not show it (hidepid)");
    finding.action.emplace_back("run it as root");
    findings.push_back(std::move(finding));
    return;
  }
}

}  // namespace

void judge_stuck(const Scene& scene, const std::vector<Subject>& all, std::vector<Finding>& findings) {
  for (const Subject& subject : all) {
    if (subject.brief == nullptr) {
      judge_gone(scene, subject, findings);
      judge_hidden(scene, subject, findings);
    } else if (subject.brief->state == 'Z') {
      judge_defunct(scene, subject, findings);
    } else {
      judge_kernel(scene, subject, findings);
    }
  }
  for (const auto& [pid, detail] : scene.last.host.details) {  // those that are on no GPU
    const auto on_gpu = [&, wanted = pid](const Subject& subject) { return subject.pid == wanted; };
    if (std::any_of(all.begin(), all.end(), on_gpu)) continue;
    Subject subject;
    subject.pid = pid;
    subject.brief = find_process(scene.last.host, pid);
    subject.detail = &detail;
    subject.track = scene.tracker.process(key_of(scene.last.host, pid));
    subject.job = job_of(detail);
    judge_kernel(scene, subject, findings);
  }
}

}  // namespace drover::inline v1::health
