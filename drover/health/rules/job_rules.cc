// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <string_view>
#include <tuple>

#include "drover/health/rules/job_advice.h"

namespace drover::inline v1::health {
namespace {

using enum Limit;

void name_silence(const JobView& view, Finding& finding) {
  const ProcessTrack* const track = view.subject.track;
  if (track == nullptr) return;
  finding.because.push_back("its CPU use is " + percent_text(track->cpu_share) + " of a core, descendants included");
  if (track->io_rate >= 0) {
    finding.because.push_back("it reads and writes " + bytes_text(track->io_rate) + " a second");
  } else if (!track->io_known) {
    finding.not_because.emplace_back("its reads and writes may not be seen (needs root)");
  }
}

/// How an orphan waits, and for how long; nothing when it works.
struct Waiting {
  std::string how;
  double held = 0, enough = 0;
  int looks = 0;
  bool polls = false;
};
Waiting waiting_of(const JobView& view) {
  const Thresholds& limits = view.scene.limits;
  const ProcessTrack* const track = view.subject.track;
  if (view.holds_spinning)
    return {"its GPU spins without progress for ", view.spinning, limits[kR5Hold], view.spinning_looks};
  if (!view.holds_idle || track == nullptr) return {};
  if (track->calm.holds() && track->io_rate <= limits[kR7Io])
    return {"its GPU and CPU are idle for ", std::min(view.idle, track->calm.length()), limits[kR5Hold],
            view.idle_looks};
  // As MPI waits. A calculation looks the same for a while, so it needs longer, and others to wait for.
  if (!track->polls.holds() || view.subject.job.world_size.value_or(1) < 2) return {};
  return {"its GPU is idle, and it uses just one core and reads and writes nothing, as one that polls, for ",
          std::min(view.idle, track->polls.length()), limits[kR6High], view.idle_looks, true};
}

/// Whom a sign can be about: not what is stopped or debugged.
bool may_be_orphan(const Subject& subject) {
  if (subject.job.scheduler != "slurm") return subject.job.ranked() && subject.kind == Kind::kPlain;
  return subject.kind == Kind::kPlain || subject.kind == Kind::kNotebook || subject.kind == Kind::kServer;
}

/// A rank here that still computes, reads or writes, or is held by a person: the job may be about to end well.
/// One core alone does not count, as ranks poll whose job is over.
bool explain_orphan(const JobView& view, double held, Finding& finding) {
  const std::string at_work = peer_at_work(view, std::max(held, view.scene.limits[kR6High]));
  if (at_work.empty()) return false;
  finding.not_because.push_back("a job that is over: " + at_work + ", and the others wait for it");
  finding.action.push_back("look at that one first: " + at_work);
  return true;
}

void judge_orphan(const JobView& view, std::vector<Finding>& findings) {
  const Subject& subject = view.subject;
  const Thresholds& limits = view.scene.limits;
  if (!may_be_orphan(subject)) return;
  Waiting waits = waiting_of(view);
  if (waits.how.empty()) return;
  const Signs signs = signs_of_orphan(view);
  if (signs.texts.empty()) return;
  const bool rests_often = subject.kind != Kind::kPlain;  // a server, a notebook
  if (rests_often || (!signs.sure && !view.holds_spinning)) waits.enough = std::max(waits.enough, limits[kR6High]);
  // A launcher that lives would have ended them after a fault: the last one may save or convert what all have done.
  if (waits.polls && !signs.sure && launcher_of(view) != 0) waits.enough = std::max(waits.enough, limits[kR8Warn]);
  Finding finding = about(view.scene, Rule::kR5, subject, "ORPHANED JOB");
  finding.because = signs.texts;
  finding.because.push_back(waits.how + duration_text(waits.held));
  const bool plain_rank = subject.job.ranked() && subject.kind == Kind::kPlain;
  finding.not_because.emplace_back(plain_rank ? "a service, or a shell's background job: it has a rank"
                                              : "a job that runs: Slurm would have a step of it here");
  const bool explained = explain_orphan(view, waits.held, finding);
  grade(view.scene, finding, waits.held, waits.enough, explained ? Severity::kInfo : Severity::kWarning,
        explained                ? Confidence::kLow
        : signs.texts.size() > 1 ? Confidence::kHigh
                                 : Confidence::kMedium,
        waits.looks);
  const Limit limit = waits.enough == limits[kR5Hold] ? kR5Hold : waits.enough == limits[kR6High] ? kR6High : kR8Warn;
  finding.limits = {limits.text(limit)};
  advise(view, finding);
  findings.push_back(std::move(finding));
}

/// What the other ranks of the job do: all the same, or one that does not follow.
void compare_peers(const JobView& view, Finding& finding, Confidence& confidence) {
  int same = 0;
  std::vector<const Subject*> idle;
  for (const Subject* const peer : peers(view)) {
    const JobView other(view.scene, *peer, view.all);
    if (other.holds_spinning) ++same;
    if (!other.holds_spinning && other.holds_idle) idle.push_back(peer);
  }
  if (same > 0)
    finding.because.push_back(count_text(same, "other rank of the job here spins", "other ranks of the job here spin") +
                              " as well");
  for (const Subject* const peer : idle)
    finding.because.push_back(rank_text(peer->job, peer->pid) + " does nothing on its GPU: look there first");
  if (!idle.empty() && confidence == Confidence::kMedium) confidence = Confidence::kHigh;
}

/// What its GPU shows.
void describe_spinning(const JobView& view, Finding& finding) {
  const GpuSample& gpu = *view.spins_on->gpu;
  const Spread& power = view.spins_on->hold->power;
  finding.gpu = gpu.index;
  finding.gpu_uuid = gpu.uuid;
  finding.because.push_back(
      "its GPU is " + percent_text(0.01 * view.spins_on->hold->cores.mean) + " busy, its memory only " +
      percent_text(gpu[Metric::kUtilMemory].number(0.01).value_or(0)) + ", for " + duration_text(view.spinning));
  const double limit = gpu[Metric::kPowerLimitMilliwatts].number(1e-3).value_or(0);
  // The mean may come from the history, and be any number.
  const auto watts = [](double value) { return std::to_string(static_cast<int>(std::clamp(value, 0.0, 1e6))) + " W"; };
  finding.because.push_back("it draws " + watts(power.mean) + " of " + watts(limit) + ", evenly; PCIe moves " +
                            bytes_text(1e3 * (gpu[Metric::kPcieSendKilobytes].number().value_or(0) +
                                              gpu[Metric::kPcieReceiveKilobytes].number().value_or(0))) +
                            " a second");
  if (gpu[Metric::kTensor].ok() && gpu[Metric::kMemoryTraffic].ok()) {
    finding.because.push_back(
        "its tensor cores are " + percent_text(0.01 * static_cast<double>(gpu[Metric::kTensor].value)) +
        " busy, its memory's bandwidth " + percent_text(0.01 * static_cast<double>(gpu[Metric::kMemoryTraffic].value)) +
        " (the GPU's own counters)");
  }
}

bool judge_spinning(const JobView& view, std::vector<Finding>& findings) {
  if (!view.holds_spinning) return false;
  const Scene& scene = view.scene;
  Finding finding = about(scene, Rule::kR6, view.subject, "SPINNING, NO PROGRESS");
  describe_spinning(view, finding);
  name_silence(view, finding);
  finding.not_because.emplace_back("slowed by heat or a power brake: the clock reasons say no");
  const double held = view.spinning;
  const bool complete = view.subject.track != nullptr && view.subject.track->io_known;
  Confidence confidence = held >= scene.limits[kR6High] && complete ? Confidence::kHigh : Confidence::kMedium;
  const ProcessBrief* const dead = dead_beside(view);
  if (dead != nullptr)
    finding.because.push_back("pid " + std::to_string(dead->pid) + ", a worker of the same engine, has died");
  const bool server = view.subject.kind == Kind::kServer && dead == nullptr;
  const bool debugged = view.subject.brief->state == 't';  // and not merely started below a debugger
  if (debugged) finding.not_because.emplace_back("a fault: a debugger holds it, as at a breakpoint in a kernel");
  const bool explained = explain_waiting(view, held, finding) || debugged;
  if (explained) confidence = Confidence::kLow;
  if (!finding.action.empty()) confidence = std::min(confidence, Confidence::kMedium);  // others may be at work
  if (view.subject.job.ranked() && !explained) compare_peers(view, finding, confidence);
  if (ranks_elsewhere(view) > 0) confidence = std::min(confidence, Confidence::kMedium);
  if (held < scene.limits[kR6Low]) finding.not_because.emplace_back("a phase without traffic: too short to rule out");
  if (server) finding.not_because.emplace_back("a fault: some servers wait for requests by spinning");
  if (!explained && is_alone(view)) {
    confidence = std::min(confidence, Confidence::kMedium);
    finding.not_because.emplace_back(
        "one long kernel, or double precision on a card that is slow at it: they look the same, and it has nobody to "
        "wait for");
  }
  grade(scene, finding, held, scene.limits[kR6Medium], server || explained ? Severity::kInfo : Severity::kWarning,
        confidence, view.spinning_looks);
  finding.limits = {scene.limits.text(kR6Medium), scene.limits.text(kR6Cores), scene.limits.text(kR6Memory),
                    scene.limits.text(kR6PowerOfLimit), scene.limits.text(kR6Pcie)};
  advise(view, finding);
  findings.push_back(std::move(finding));
  return true;
}

std::string who_slept(const ProcessBrief& process) {
  if (process.threads <= kMostThreads) return "all its threads slept";
  return "the first " + std::to_string(kMostThreads) + " of its " + std::to_string(process.threads) +
         " threads, which are all that are looked at, slept";
}

/// A lock that is a file's mere existence (torch.utils.file_baton) outlives who made it.
constexpr const char* kStaleLock =
    "if its stack shows a wait for a lock that is a file (FileBaton.wait, SoftFileLock): who made it may have died; "
    "when no build or download runs any more, here and on the other nodes that share the folder, remove it (of torch: "
    "~/.cache/torch_extensions/*/*/lock), or the next start waits too";

bool judge_blocked(const JobView& view, std::vector<Finding>& findings) {
  const ProcessTrack* const track = view.subject.track;
  const Scene& scene = view.scene;
  if (!view.subject.job.ranked() || view.subject.kind != Kind::kPlain) return false;
  const double naps = naps_for(view);
  if (!view.holds_idle || track == nullptr || (!track->blocked.holds() && naps <= 0)) return false;
  Finding finding = about(scene, Rule::kR7, view.subject, "BLOCKED JOB");
  const double held = naps > 0 ? naps : std::min(view.idle, track->blocked.length());
  const ProcessDetail* const detail = view.subject.detail;
  finding.because.push_back(
      "nothing ran on its GPU and " +
      (naps > 0 ? "it only looked again and again, as for the lock of a file," : who_slept(*view.subject.brief)) +
      " for " + duration_text(held));
  name_silence(view, finding);
  if (detail != nullptr && !detail->first.waits_in.empty()) {
    finding.because.push_back("its first thread waits in " + detail->first.waits_in);
  }
  bool peer_spins = false;
  for (const Subject* const peer : peers(view))
    peer_spins = peer_spins || JobView(scene, *peer, view.all).holds_spinning;
  if (peer_spins) finding.because.emplace_back("other ranks of its job spin, and wait for this one: look here first");
  if (view.was_busy) finding.because.emplace_back("it was busy before");
  finding.not_because.emplace_back("stopped, debugged, a server, a notebook, or writing a checkpoint");
  const bool all_seen = track->io_known && view.subject.brief->threads <= kMostThreads;
  const bool explained = explain_waiting(view, held, finding);
  const bool sure = (view.was_busy || peer_spins) && all_seen && !explained;
  grade(scene, finding, held, scene.limits[naps > 0 ? kR8Warn : kR7Hold],
        explained ? Severity::kInfo : Severity::kWarning,
        explained ? Confidence::kLow
        : sure    ? Confidence::kHigh
                  : Confidence::kMedium,
        view.idle_looks);
  finding.limits = {scene.limits.text(naps > 0 ? kR8Warn : kR7Hold), scene.limits.text(naps > 0 ? kR8Cpu : kR7Cpu),
                    scene.limits.text(naps > 0 ? kR8Io : kR7Io)};
  advise(view, finding, naps > 0 ? kStaleLock : "");
  findings.push_back(std::move(finding));
  return true;
}

/// What was said already about another rank of the job is not said again: only its evidence is its own.
void refer(const Subject& subject, const Finding& first, const Job& firsts, Finding& finding) {
  const auto said = [](const std::vector<std::string>& before) {
    return [&](const std::string& text) { return std::find(before.begin(), before.end(), text) != before.end(); };
  };
  std::erase_if(finding.not_because, said(first.not_because));
  finding.because.erase(std::remove_if(finding.because.begin() + 1, finding.because.end(), said(first.because)),
                        finding.because.end());
  finding.action = {"as for " + rank_text(firsts, *first.pid) + " of the same job; the evidence here is that of pid " +
                    std::to_string(subject.pid)};
}

/// The most specific verdict about what it does; but one that is only a note hides no warning.
bool judge_waiting(const JobView& view, std::vector<Finding>& findings) {
  std::vector<Finding> orphan, waits;
  judge_orphan(view, orphan);
  if (!judge_spinning(view, waits)) judge_blocked(view, waits);
  const bool is_orphan = !orphan.empty() && (waits.empty() || orphan.front().severity >= waits.front().severity);
  for (Finding& finding : is_orphan ? orphan : waits) findings.push_back(std::move(finding));
  return is_orphan || !waits.empty();
}

}  // namespace

void judge_jobs(const Scene& scene, const std::vector<Subject>& all, std::vector<Finding>& findings) {
  using Kin = std::tuple<Rule, Severity, std::string>;
  std::map<Kin, std::pair<std::size_t, const Job*>> firsts;
  for (const Subject& subject : all) {
    if (subject.brief == nullptr || subject.brief->state == 'Z' || subject.kind == Kind::kSystem) continue;
    if (subject.age(scene.last.at) < scene.limits[kGrace]) continue;          // it may still be starting
    if (subject.track != nullptr && subject.track->killed.holds()) continue;  // R2's
    const JobView view(scene, subject, all);
    if (!judge_waiting(view, findings)) {
      judge_idle(view, findings);
      continue;
    }
    if (!subject.job.ranked()) continue;
    Finding& finding = findings.back();
    const auto [first, is_new] =
        firsts.try_emplace({finding.rule, finding.severity, subject.job.group}, findings.size() - 1, &subject.job);
    if (!is_new) refer(subject, findings[first->second.first], *first->second.second, finding);
  }
}

}  // namespace drover::inline v1::health
