// SPDX-License-Identifier: Apache-2.0
#include "drover/health/rules/rules.h"

namespace drover::inline v1::health {
namespace {

using enum Limit;

/// Nobody is known who may hold it.
void advise_leak(const Scene& scene, const GpuSample& gpu, bool others, Finding& finding) {
  if (scene.holders.unreadable > 0 || !scene.holders.done) {
    finding.not_because.push_back(count_text(scene.holders.unreadable, "process", "processes") +
                                  " may not be looked at, and may be the holder");
    finding.action.emplace_back("run it as root, to see who has the device open");
    return;
  }
  if (others) {
    finding.because.emplace_back("nobody but those listed has the device open: the driver leaked it, it seems");
  } else {
    finding.because.emplace_back("nobody has the device open: the driver leaked it");
  }
  note_importers(scene, gpu, finding);
  finding.action.push_back("drain the GPU, then reset it (" + how_to_reset(&gpu) + ", as root) or reload the driver");
}

void name_holders(const Scene& scene, const GpuSample& gpu, Finding& finding) {
  finding.confidence = Confidence::kMedium;
  const auto holders = unlisted_holders(scene, gpu);
  if (!holders) {
    explain_unknown_holders(scene, gpu, finding);
    return;
  }
  note_others(scene, *holders, finding);
  const bool all_seen = scene.holders.done && scene.holders.unreadable == 0;
  if (!holders->pids.empty() || (all_seen && holders->others.empty())) finding.confidence = Confidence::kHigh;
  if (holders->pids.empty()) {
    advise_leak(scene, gpu, !holders->others.empty() || !listed_and_alive(scene, gpu).empty(), finding);
    return;
  }
  finding.because.push_back("these still have the device open: " + names_of(scene.last.host, holders->pids));
  finding.action.emplace_back(
      "ask the owner of the holders first: often data workers that outlived their job, and still hold its memory");
  advise_evidence(finding, holders->pids.front(), false);
  advise_ending(finding, 0, holders->pids);
}

/// The row is of a process that ended; its number may belong to another one by now.
std::string text_of_gone(const Scene& scene, const Subject& subject, const HoldTrack& hold) {
  const ProcessBrief* const younger = find_process(scene.last.host, subject.pid);
  const std::string who = younger == nullptr ? ", and there is no such process"
                                             : " from before " + younger->name + " began, which has that number now";
  return "the driver lists pid " + std::to_string(subject.pid) + who + ", in " +
         count_text(hold.gone.hits, "look", "looks") + " over " + duration_text(hold.gone.length());
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

/// Processes that seem to be absent, or to do nothing, as nothing could be opened.
void judge_unseen(const Scene& scene, std::vector<Finding>& findings) {
  const auto unseen = static_cast<int>(scene.last.host.without_descriptor.size());
  if (unseen == 0) return;
  Finding finding;
  finding.rule = Rule::kG0;
  finding.verdict = "CANNOT SEE ALL PROCESSES";
  finding.severity = Severity::kUnknown;
  finding.because.push_back("no file descriptor was left to look at " + count_text(unseen, "process", "processes"));
  finding.not_because.emplace_back("what these do, and whose ranks they are, is not known");
  finding.action.emplace_back("allow more open files (ulimit -n), or look again when the machine has some left");
  findings.push_back(std::move(finding));
}

}  // namespace

void judge_absent(const Scene& scene, const std::vector<Subject>& all, std::vector<Finding>& findings) {
  judge_unseen(scene, findings);
  for (const Subject& subject : all) {
    if (subject.brief != nullptr) continue;
    judge_gone(scene, subject, findings);
    judge_hidden(scene, subject, findings);
  }
}

}  // namespace drover::inline v1::health
