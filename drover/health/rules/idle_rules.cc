// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <string_view>

#include "drover/health/rules/job_advice.h"
#include "drover/health/rules/job_view.h"
#include "drover/health/rules/rules.h"
#include "drover/health/rules/words.h"

namespace drover::inline v1::health {

using enum Limit;

namespace {

bool holds_much(const JobView& view) {
  return std::any_of(view.subject.gpus.begin(), view.subject.gpus.end(), [&](const Subject::On& on) {
    const double total = (*on.gpu)[Metric::kMemoryTotal].number().value_or(0);
    return on.row->memory.ok() && static_cast<double>(on.row->memory.value) >=
                                      std::max(view.scene.limits[kR8Vram], view.scene.limits[kR8VramShare] * total);
  });
}

/// Whether a scheduler stopped it, with all that lies between and all else of the same step or job: of what a person
/// stopped, a shell is the parent, or another process goes on.
bool is_suspended(const JobView& view) {
  static constexpr auto kNames =
      std::to_array<std::string_view>({"slurmstepd", "res", "sbatchd", "pbs_mom", "sge_shepherd", "condor_starter"});
  const HostSample& host = view.scene.last.host;
  if (view.subject.brief == nullptr || view.subject.brief->state != 'T') return false;
  for (const ProcessBrief& at : Ancestors(host, *view.subject.brief)) {
    if (is_one_of(at.name, kNames)) {
      return std::all_of(host.processes.begin(), host.processes.end(), [&](const ProcessBrief& process) {
        // One that was in the kernel then stops when it comes out of it.
        return std::string_view("TDZ").find(process.state) != std::string_view::npos ||
               !descends_from(host, process, at.pid);
      });
    }
    if (at.state != 'T') break;
  }
  return false;
}

/// Why its idling is no fault, however long it is; empty: it may be one.
std::string reason_to_idle(const JobView& view, double held) {
  const Kind kind = view.subject.kind;
  if (is_suspended(view))
    return "a fault: its scheduler suspended it, it seems, and lets it go on (scontrol resume, bresume, qsig -s "
           "resume)";
  if (kind == Kind::kStopped) return {};  // whatever the others do meanwhile, it waits for nobody
  if (kind == Kind::kServer) return "a fault: a server waits for requests";  // that is its work
  const ProcessTrack& track = *view.subject.track;
  const bool stuck = track.stuck.holds() && track.stuck.length() >= view.scene.limits[kR2State];
  if (stuck && (track.in_storage || track.for_memory))
    return "a fault of its own: it waits for storage or memory, of which R2 tells";
  const ProcessBrief& brief = *view.subject.brief;
  const bool actor = kind == Kind::kPlain && is_ray_worker(brief) && !view.subject.job.ranked();
  if (actor && !has_lost_its_server(view.scene.last.host, brief)) return "a fault: an actor of Ray waits for calls";
  if (std::string reason = reason_to_wait(view); !reason.empty()) return reason;
  const std::string at_work = peer_at_work(view, held);
  return at_work.empty() ? at_work : "a fault, it seems: " + at_work + ", and the others wait for it";
}

/// How long the processes below it have rested on their GPUs: who waits for one that works is not idle.
double idle_below(const JobView& view) {
  double idle = std::numeric_limits<double>::max();
  for (const Subject& other : view.all) {
    if (other.brief == nullptr || other.kind == Kind::kSystem ||
        !descends_from(view.scene.last.host, *other.brief, view.subject.pid))
      continue;
    const JobView below(view.scene, other, view.all);
    idle = std::min(idle, below.holds_idle ? below.idle : 0);
  }
  return idle;
}

void advise_idle(const JobView& view, double held, double enough, Finding& finding) {
  const bool stopped = view.subject.kind == Kind::kStopped;
  if (!stopped && (name_who_may_work(view, finding) || name_other_nodes(view, finding))) {
    finding.confidence = std::min(finding.confidence, Confidence::kMedium);
    return advise_asking(finding, Job());
  }
  advise_asking(view.scene, view.all, view.subject, finding);
  if (view.subject.kind == Kind::kNotebook) finding.action.emplace_back("restarting its kernel frees the memory");
  if (stopped) advise_continuing(finding, view.subject);
  const double advised = view.scene.limits[kR8Advise];
  if (held >= advised || enough > advised) advise_ending(finding, launcher_of(view), {view.subject.pid});
}

/// Where the driver does not tell what runs, as of a part of a GPU (MIG) without counters, there is the CPU: whatever
/// runs for half a day wants something of its process now and then.
void judge_resting(const JobView& view, std::vector<Finding>& findings) {
  const Scene& scene = view.scene;
  const ProcessTrack* const track = view.subject.track;
  const auto may_rest = [](const Subject::On& on) { return !on.track->cannot_judge.empty() || on.hold->idle.holds(); };
  const auto& gpus = view.subject.gpus;
  if (scene.container || track == nullptr || !track->io_known || !holds_much(view) ||
      !std::all_of(gpus.begin(), gpus.end(), may_rest))
    return;
  const bool stopped = view.subject.kind == Kind::kStopped;
  const Streak& rest = stopped ? track->calm : track->blocked;
  if (!rest.holds() || !reason_to_idle(view, rest.length()).empty()) return;
  const double held = std::min(rest.length(), idle_below(view));
  if (held <= 0) return;
  Finding finding = about(scene, Rule::kR8, view.subject, "RESTS, HOLDS MEMORY");
  finding.because.push_back(
      (stopped ? "it is stopped"
               : "it never used more than " + percent_text(scene.limits[kR7Cpu]) + " of a core between two looks") +
      ", and read and wrote next to nothing, for " + duration_text(held));
  finding.not_because.emplace_back("a kernel that runs for as long without its process: the driver does not tell");
  grade(scene, finding, held, scene.limits[kR8Interactive], Severity::kWarning, Confidence::kMedium, rest.hits);
  finding.limits = {scene.limits.text(kR8Interactive), scene.limits.text(kR7Cpu), scene.limits.text(kR7Io)};
  if (finding.severity >= Severity::kWarning) {
    advise_asking(finding, Job());  // as nobody knows what its GPU does, nothing is to be ended
    if (stopped) advise_continuing(finding, view.subject);
  }
  findings.push_back(std::move(finding));
}

}  // namespace

void judge_idle(const JobView& view, std::vector<Finding>& findings) {
  if (!view.holds_idle) return judge_resting(view, findings);
  const ProcessTrack* const track = view.subject.track;
  const Scene& scene = view.scene;
  const Thresholds& limits = scene.limits;
  const Kind kind = view.subject.kind;
  if (!holds_much(view) || track == nullptr || !track->calm.holds()) return;
  const double below = idle_below(view);
  if (below <= 0) return;
  Finding finding = about(scene, Rule::kR8, view.subject, "IDLE, HOLDS MEMORY");
  const double held = std::min({view.idle, track->calm.length(), below});
  finding.because.push_back("nothing ran on its GPU for " + duration_text(held) + ", and it never used more than " +
                            percent_text(limits[kR8Cpu]) + " of a core between two looks (" +
                            percent_text(track->cpu_share) + " before the last)");
  if (kind != Kind::kPlain) finding.because.push_back(std::string("it looks like: ") + to_text(kind));
  if (std::string reason = reason_to_idle(view, held); !reason.empty()) {
    finding.held_s = held;
    finding.confidence = scene.once ? Confidence::kLow : Confidence::kMedium;
    finding.not_because.push_back(std::move(reason));
  } else {
    const Limit limit = kind == Kind::kNotebook || kind == Kind::kDebugged ? kR8Interactive : kR8Warn;
    grade(scene, finding, held, limits[limit], Severity::kWarning,
          track->io_known ? Confidence::kHigh : Confidence::kMedium, view.idle_looks);
    finding.limits = {limits.text(limit)};
    if (finding.severity >= Severity::kWarning) advise_idle(view, held, limits[limit], finding);
  }
  finding.limits.push_back(limits.text(kR8Vram));
  finding.limits.push_back(limits.text(kR8Cpu));
  findings.push_back(std::move(finding));
}

}  // namespace drover::inline v1::health
