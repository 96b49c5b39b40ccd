// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "drover/health/rules/rules.h"

namespace drover::inline v1::health {
namespace {

using enum Limit;

/// What can be said about the job of one process, over all GPUs it is on.
struct JobView {
  const Scene& scene;
  const Subject& subject;
  const std::vector<Subject>& all;

  double idle = 0, spinning = 0;  ///< seconds; idle on all its GPUs
  int idle_looks = 0, spinning_looks = 0;
  bool holds_idle = false, holds_spinning = false;
  const Subject::On* spins_on = nullptr;
  bool was_busy = false;

  JobView(const Scene& s, const Subject& one, const std::vector<Subject>& others)
      : scene(s), subject(one), all(others) {
    holds_idle = !subject.gpus.empty();
    idle = std::numeric_limits<double>::max();
    idle_looks = std::numeric_limits<int>::max();
    for (const Subject::On& on : subject.gpus) {
      holds_idle = holds_idle && on.hold->idle.holds() && on.track->cannot_judge.empty();
      idle = std::min(idle, on.hold->idle.length());
      idle_looks = std::min(idle_looks, on.hold->idle.hits);
      was_busy = was_busy || on.hold->was_busy;
      if (on.hold->spinning.holds() && (spins_on == nullptr || on.hold->spinning.length() > spinning)) {
        spins_on = &on;
        spinning = on.hold->spinning.length();
        spinning_looks = on.hold->spinning.hits;
      }
    }
    // Power that is low but goes up and down is work.
    const double flat = scene.limits[kR6Flat];
    holds_spinning = spins_on != nullptr && spins_on->hold->power.relative_variance() <= flat * flat;
  }
};

std::vector<const Subject*> peers(const JobView& view) {
  std::vector<const Subject*> result;
  for (const Subject& other : view.all) {
    if (&other != &view.subject && other.job.ranked() && other.job.group == view.subject.job.group)
      result.push_back(&other);
  }
  return result;
}

/// Ranks of the job that live on this node. One that is on no GPU is not described, and is known by its parent and
/// name.
int live_local_ranks(const JobView& view) {
  const HostSample& host = view.scene.last.host;
  int count = 0;
  for (const ProcessBrief& process : host.processes) {
    if (process.state == 'Z' || process.state == 'X') continue;
    const ProcessDetail* const detail = find_detail(host, process.pid);
    const Job job = detail != nullptr ? job_of(*detail) : Job();
    const bool rank = job.ranked() && job.group == view.subject.job.group;
    const bool sibling = detail == nullptr && process.parent > 1 && process.parent == view.subject.brief->parent &&
                         process.name == view.subject.brief->name;
    if (rank || sibling) ++count;
  }
  return count;
}

/// 0 when the parent is none: a TERM for a user's shell would end more than the job.
int launcher_of(const JobView& view) {
  const HostSample& host = view.scene.last.host;
  const ProcessBrief* const parent = find_process(host, view.subject.brief->parent);
  return parent != nullptr && is_launcher(*parent, find_detail(host, parent->pid)) ? parent->pid : 0;
}

std::vector<int> members(const JobView& view) {
  std::vector<int> pids = {view.subject.pid};
  for (const Subject* const peer : peers(view)) pids.push_back(peer->pid);
  std::sort(pids.begin(), pids.end());
  return pids;
}

/// Why the job has lost its head; empty: it has not.
std::vector<std::string> signs_of_orphan(const JobView& view) {
  const Scene& scene = view.scene;
  const HostSample& host = scene.last.host;
  const ProcessBrief& brief = *view.subject.brief;
  std::vector<std::string> signs;
  const ProcessBrief* const leader = find_process(host, brief.group);
  const bool leaderless = brief.group != brief.pid && (leader == nullptr || leader->state == 'Z');
  if (is_reaper(host, brief.parent, scene.container))
    signs.push_back("its launcher is gone: its parent is now pid " + std::to_string(brief.parent));
  if (view.subject.job.local_world_size) {
    const int live = live_local_ranks(view);
    if (live < *view.subject.job.local_world_size) {
      signs.push_back("only " + std::to_string(live) + " of " + std::to_string(*view.subject.job.local_world_size) +
                      " ranks of this node live");
    }
  }
  if (view.subject.job.scheduler == "slurm") {
    bool daemon = false, step = false;
    for (const ProcessBrief& process : host.processes) {
      daemon = daemon || process.name == "slurmd";
      const ProcessDetail* const detail = process.name == "slurmstepd" ? find_detail(host, process.pid) : nullptr;
      step =
          step || (process.name == "slurmstepd" &&
                   (detail == nullptr || detail->command.find("[" + view.subject.job.id + ".") != std::string::npos));
    }
    if (daemon && !step) signs.push_back("Slurm has no step of job " + view.subject.job.id + " here any more");
  }
  // A group without its leader is common among daemons: it only strengthens what else there is.
  if (!signs.empty() && leaderless)
    signs.push_back("the leader of its process group, " + std::to_string(brief.group) + ", is gone");
  return signs;
}

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

bool judge_orphan(const JobView& view, std::vector<Finding>& findings) {
  const Subject& subject = view.subject;
  if (!subject.job.ranked() || subject.kind != Kind::kPlain) return false;
  const std::vector<std::string> signs = signs_of_orphan(view);
  const ProcessTrack* const track = subject.track;
  const bool quiet =
      view.holds_idle && track != nullptr && track->calm.holds() && track->io_rate <= view.scene.limits[kR7Io];
  if (signs.empty() || (!quiet && !view.holds_spinning)) return false;
  Finding finding = about(view.scene, Rule::kR5, subject, "ORPHANED JOB");
  finding.because = signs;
  const double held = view.holds_spinning ? view.spinning : std::min(view.idle, track->calm.length());
  finding.because.push_back(
      (view.holds_spinning ? "its GPU spins without progress for " : "its GPU and CPU are idle for ") +
      duration_text(held));
  finding.not_because.emplace_back("a service, or a shell's background job: it has a rank");
  grade(view.scene, finding, held, view.scene.limits[kR5Hold], Severity::kWarning,
        signs.size() > 1 ? Confidence::kHigh : Confidence::kMedium,
        view.holds_spinning ? view.spinning_looks : view.idle_looks);
  finding.limits = {view.scene.limits.text(kR5Hold)};
  advise_asking(finding, subject.job);
  advise_evidence(finding, subject.pid, true);
  advise_ending(finding, launcher_of(view), members(view));
  findings.push_back(std::move(finding));
  return true;
}

/// What the other ranks of the job do: all the same, or one that does not follow.
void compare_peers(const JobView& view, Finding& finding, Confidence& confidence) {
  int same = 0;
  std::vector<int> idle;
  for (const Subject* const peer : peers(view)) {
    const JobView other(view.scene, *peer, view.all);
    if (other.holds_spinning) ++same;
    if (!other.holds_spinning && other.holds_idle) idle.push_back(peer->pid);
  }
  if (same > 0) finding.because.push_back(std::to_string(same) + " other ranks of the job here spin as well");
  for (const int pid : idle) {
    const auto at = std::find_if(view.all.begin(), view.all.end(), [&](const Subject& one) { return one.pid == pid; });
    finding.because.push_back("rank " + std::to_string(at->job.rank.value_or(-1)) + " (pid " + std::to_string(pid) +
                              ") does nothing: look there first");
  }
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
  if (view.subject.job.ranked()) compare_peers(view, finding, confidence);
  if (held < scene.limits[kR6Low]) finding.not_because.emplace_back("a phase without traffic: too short to rule out");
  const bool server = view.subject.kind == Kind::kServer;
  if (server) finding.not_because.emplace_back("a fault: some servers wait for requests by spinning");
  grade(scene, finding, held, scene.limits[kR6Medium], server ? Severity::kInfo : Severity::kWarning, confidence,
        view.spinning_looks);
  finding.limits = {scene.limits.text(kR6Medium), scene.limits.text(kR6Cores), scene.limits.text(kR6Memory),
                    scene.limits.text(kR6PowerOfLimit), scene.limits.text(kR6Pcie)};
  advise_asking(finding, view.subject.job);
  advise_evidence(finding, view.subject.pid, view.subject.job.ranked());
  advise_ending(finding, launcher_of(view), members(view));
  findings.push_back(std::move(finding));
  return true;
}

std::string who_slept(const ProcessBrief& process) {
  if (process.threads <= kMostThreads) return "all its threads slept";
  return "the first " + std::to_string(kMostThreads) + " of its " + std::to_string(process.threads) +
         " threads, which are all that are looked at, slept";
}

bool judge_blocked(const JobView& view, std::vector<Finding>& findings) {
  const ProcessTrack* const track = view.subject.track;
  const Scene& scene = view.scene;
  if (!view.subject.job.ranked() || view.subject.kind != Kind::kPlain) return false;
  if (!view.holds_idle || track == nullptr || !track->blocked.holds()) return false;
  Finding finding = about(scene, Rule::kR7, view.subject, "BLOCKED JOB");
  const double held = std::min(view.idle, track->blocked.length());
  const ProcessDetail* const detail = view.subject.detail;
  finding.because.push_back("nothing ran on its GPU and " + who_slept(*view.subject.brief) + " for " +
                            duration_text(held));
  name_silence(view, finding);
  if (detail != nullptr && !detail->threads.empty() && !detail->threads.front().waits_in.empty()) {
    finding.because.push_back("its first thread waits in " + detail->threads.front().waits_in);
  }
  bool peer_spins = false;
  for (const Subject* const peer : peers(view))
    peer_spins = peer_spins || JobView(scene, *peer, view.all).holds_spinning;
  if (peer_spins) finding.because.emplace_back("other ranks of its job spin, and wait for this one: look here first");
  if (view.was_busy) finding.because.emplace_back("it was busy before");
  finding.not_because.emplace_back("stopped, debugged, a server, a notebook, or writing a checkpoint");
  const bool all_seen = track->io_known && view.subject.brief->threads <= kMostThreads;
  const bool sure = (view.was_busy || peer_spins) && all_seen;
  grade(scene, finding, held, scene.limits[kR7Hold], Severity::kWarning, sure ? Confidence::kHigh : Confidence::kMedium,
        view.idle_looks);
  finding.limits = {scene.limits.text(kR7Hold), scene.limits.text(kR7Cpu), scene.limits.text(kR7Io)};
  advise_asking(finding, view.subject.job);
  advise_evidence(finding, view.subject.pid, true);
  advise_ending(finding, launcher_of(view), members(view));
  findings.push_back(std::move(finding));
  return true;
}

bool holds_much(const JobView& view) {
  return std::any_of(view.subject.gpus.begin(), view.subject.gpus.end(), [&](const Subject::On& on) {
    const double total = (*on.gpu)[Metric::kMemoryTotal].number().value_or(0);
    return on.row->memory.ok() && static_cast<double>(on.row->memory.value) >=
                                      std::max(view.scene.limits[kR8Vram], view.scene.limits[kR8VramShare] * total);
  });
}

/// The time after which idling deserves a warning; negative: never.
double patience(const Thresholds& limits, Kind kind) {
  switch (kind) {
    case Kind::kServer:
      return -1;  // it waits for requests: that is its work
    case Kind::kNotebook:
    case Kind::kDebugged:
      return limits[kR8Interactive];
    default:
      return limits[kR8Warn];
  }
}

void judge_idle(const JobView& view, std::vector<Finding>& findings) {
  const ProcessTrack* const track = view.subject.track;
  const Scene& scene = view.scene;
  if (!view.holds_idle || !holds_much(view) || track == nullptr || !track->calm.holds()) return;
  Finding finding = about(scene, Rule::kR8, view.subject, "IDLE, HOLDS MEMORY");
  const double held = std::min(view.idle, track->calm.length());
  const double enough = patience(scene.limits, view.subject.kind);
  finding.because.push_back("nothing ran on its GPU for " + duration_text(held) + ", and it used " +
                            percent_text(track->cpu_share) + " of a core");
  finding.because.push_back(std::string("it looks like: ") + to_text(view.subject.kind));
  if (enough < 0) {
    finding.held_s = held;
    finding.confidence = scene.once ? Confidence::kLow : Confidence::kMedium;
    finding.not_because.emplace_back("a fault: a server waits for requests");
  } else {
    grade(scene, finding, held, enough, Severity::kWarning, track->io_known ? Confidence::kHigh : Confidence::kMedium,
          view.idle_looks);
  }
  finding.limits = {scene.limits.text(view.subject.kind == Kind::kNotebook ? kR8Interactive : kR8Warn),
                    scene.limits.text(kR8Vram), scene.limits.text(kR8Cpu)};
  if (finding.severity >= Severity::kWarning) {
    advise_asking(finding, view.subject.job);
    if (view.subject.kind == Kind::kNotebook) finding.action.emplace_back("restarting its kernel frees the memory");
    if (view.subject.kind == Kind::kStopped)
      finding.action.push_back("it is stopped: kill -CONT " + std::to_string(view.subject.pid) + " lets it go on");
    if (held >= scene.limits[kR8Advise] || enough > scene.limits[kR8Advise]) {
      advise_ending(finding, launcher_of(view), {view.subject.pid});
    }
  }
  findings.push_back(std::move(finding));
}

}  // namespace

void judge_jobs(const Scene& scene, const std::vector<Subject>& all, std::vector<Finding>& findings) {
  for (const Subject& subject : all) {
    if (subject.brief == nullptr || subject.brief->state == 'Z' || subject.kind == Kind::kSystem) continue;
    if (subject.age(scene.last.at) < scene.limits[kGrace]) continue;          // it may still be starting
    if (subject.track != nullptr && subject.track->killed.holds()) continue;  // R2's
    const JobView view(scene, subject, all);
    if (judge_orphan(view, findings) || judge_spinning(view, findings) || judge_blocked(view, findings)) continue;
    judge_idle(view, findings);
  }
}

}  // namespace drover::inline v1::health
