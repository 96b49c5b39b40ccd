// SPDX-License-Identifier: Apache-2.0
#include "drover/health/rules/job_view.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "drover/health/rules/kernel_place.h"

namespace drover::inline v1::health {
namespace {

using enum Limit;

constexpr double kNearlyOne = 0.11;  // of a core: how far from one core a thread that polls may be

bool lives(const ProcessBrief& process) { return process.state != 'Z' && process.state != 'X'; }

/// Whether one and the same number stands for two processes that have nothing to do with each other: then nothing tells
/// two jobs apart, and the other one is none of its ranks.
bool is_double(const JobView& view, const Job& job, const ProcessBrief& process) {
  const ProcessBrief& own = *view.subject.brief;
  const HostSample& host = view.scene.last.host;
  return job.rank == view.subject.job.rank && !descends_from(host, own, process.pid) &&
         !descends_from(host, process, own.pid);
}

/// Whether a GPU that is in use shows more than a collective that waits. What a process writes meanwhile is no matter.
bool shows_work(const Subject::On& on, const Thresholds& limits) {
  const GpuSample& gpu = *on.gpu;
  const auto over = [&](Metric metric, Limit limit) { return gpu[metric].number(0.01).value_or(0) > limits[limit]; };
  const double watts = std::max(gpu[Metric::kPowerLimitMilliwatts].number(1e-3).value_or(0) * limits[kR6PowerOfLimit],
                                std::max(0.0, on.track->idle_power_w) * limits[kR6PowerOfIdle]);
  const double moved = gpu[Metric::kPcieSendKilobytes].number(1e3).value_or(0) +
                       gpu[Metric::kPcieReceiveKilobytes].number(1e3).value_or(0);
  return !over(Metric::kUtilCores, kR6Cores) || over(Metric::kUtilMemory, kR6Memory) || moved > limits[kR6Pcie] ||
         over(Metric::kTensor, kR6Memory) || (watts > 0 && on.track->power_w >= watts);
}

/// What a rank does that keeps others waiting, without its GPU; empty: nothing.
std::string busy_text(const Scene& scene, Kind kind, const ProcessTrack* track, double held) {
  if (kind == Kind::kStopped) return "is stopped";
  if (kind == Kind::kDebugged) return "is held by a debugger";
  if (track == nullptr || !track->measured) return {};
  const bool in_time = held < scene.limits[kR6High];
  if (track->io_rate > (in_time ? scene.limits[kR7Io] : kMuchTraffic))
    return "reads and writes " + bytes_text(track->io_rate) + " a second";
  if (track->io_below > kMuchTraffic)
    return "has a process below it that reads and writes " + bytes_text(track->io_below) + " a second";
  // Later it counts where it is no heartbeat, and not what one thread uses that polls.
  if (track->cpu_share > (in_time ? scene.limits[kR8Cpu] : kMuchCpu) && (in_time || !may_poll(*track)))
    return "works on the CPU (" + percent_text(track->cpu_share) + " of a core)";
  return {};
}

/// What it waits for by itself, whatever its job does, with whichever thread; empty: nothing of the kind.
std::string own_wait_text(const Subject& subject) {
  const ProcessTrack* const track = subject.track;
  if (track != nullptr && track->stuck.holds() && (track->in_storage || track->for_memory))
    return (track->in_storage ? "waits for storage (" : "waits for memory (") + track->stuck_in + ")";
  if (subject.detail == nullptr) return {};
  const ThreadSample& first = subject.detail->first;
  if (first.state == 'D' && waits_in_storage(first.waits_in)) return "waits for storage (" + first.waits_in + ")";
  if (first.state == 'S' && subject.detail->reads_terminal) return "waits for a person at its terminal";
  return {};
}

/// What one on a GPU does that keeps others waiting; empty: nothing.
std::string work_text(const JobView& peer, double held) {
  const Subject& subject = peer.subject;
  if (subject.brief == nullptr || !lives(*subject.brief)) return {};
  const bool held_by_person = subject.kind == Kind::kStopped || subject.kind == Kind::kDebugged;
  const bool stands = subject.brief->state == 'T' || subject.brief->state == 't';
  if (!stands && peer.holds_spinning) return {};  // also below a debugger, of which all ranks may be
  bool in_use = false;
  for (const Subject::On& on : subject.gpus) {
    if (held_by_person || !on.hold->was_busy || on.hold->idle.holds() || !on.track->cannot_judge.empty()) continue;
    if (shows_work(on, peer.scene.limits)) return "computes on its GPU";
    in_use = true;
  }
  if (in_use) return {};
  if (subject.kind == Kind::kServer) return "waits for requests";
  const std::string wait = held_by_person ? std::string() : own_wait_text(subject);
  return wait.empty() ? busy_text(peer.scene, subject.kind, subject.track, held) : wait;
}

/// Whether what it does was counted already, or is not the job's: it belongs to the process that waits, or to one that
/// spins, it is above one of them, or it was left behind.
bool counts_not(const JobView& view, const ProcessBrief& process) {
  const HostSample& host = view.scene.last.host;
  for (const Subject& subject : view.all) {
    if (subject.pid == process.pid) return true;
    if (subject.brief == nullptr || subject.job.group != view.subject.job.group) continue;
    if (descends_from(host, *subject.brief, process.pid)) return true;
    const bool waits = &subject == &view.subject || JobView(view.scene, subject, view.all).holds_spinning;
    if (waits && descends_from(host, process, subject.pid)) return true;
  }
  return !lives(process) || is_adopted(host, process, view.scene.container);
}

/// Without what its ranks use: they may wait at 100 %.
ProcessTrack own_use(const JobView& view, const ProcessBrief& first, ProcessTrack track) {
  for (const Subject& subject : view.all) {
    const bool below = subject.brief != nullptr && subject.track != nullptr && subject.brief->parent == first.pid;
    if (below && subject.track->measured) track.cpu_share -= subject.track->cpu_share;
  }
  return track;
}

/// The first rank of PyTorch Lightning, which started the others, and what it does; empty: nothing.
std::string first_at_work(const JobView& view) {
  const HostSample& host = view.scene.last.host;
  const int pid = view.subject.brief->parent;
  const ProcessBrief* const first = find_process(host, pid);
  const ProcessDetail* const detail = find_detail(host, pid);
  if (first == nullptr || detail == nullptr || view.subject.detail == nullptr) return {};
  if (detail->uid != view.subject.detail->uid || is_launcher(*first, detail) ||
      is_reaper(host, pid, view.scene.container))
    return {};
  const ProcessTrack* const track = view.scene.tracker.process(key_of(host, pid));
  const ProcessTrack own = own_use(view, *first, track != nullptr ? *track : ProcessTrack());
  Subject subject;
  const auto on_gpu =
      std::find_if(view.all.begin(), view.all.end(), [&](const Subject& one) { return one.pid == pid; });
  if (on_gpu != view.all.end()) subject = *on_gpu;
  subject.pid = pid;
  subject.brief = first;
  subject.kind = kind_of(host, *first, detail);
  subject.track = &own;
  const std::string work = work_text(JobView(view.scene, subject, view.all), 0);
  return work.empty() ? work : "the first rank (pid " + std::to_string(pid) + ") " + work;
}

/// Whether it computes on another of its GPUs than the one that spins, as one that trains on both in turn.
std::string own_work_text(const JobView& view) {
  for (const Subject::On& on : view.subject.gpus) {
    const bool may = &on != view.spins_on && on.hold->was_busy && !on.hold->idle.holds() && !on.hold->spinning.holds();
    if (may && on.track->cannot_judge.empty() && shows_work(on, view.scene.limits))
      return "it computes on GPU " + std::to_string(on.gpu->index) + " itself";
  }
  return {};
}

/// Whether the same program has started both, as parts of one: torch.multiprocessing.spawn tells its workers their rank
/// after their start, so that no environment has it. Of those that spin also where that is a guess: workers of Ray of
/// one name, and runs of one script, which may have got their ranks as arguments.
bool may_meet(const JobView& view, const Subject& other) {
  const HostSample& host = view.scene.last.host;
  const Subject& own = view.subject;
  if (other.brief == nullptr || other.detail == nullptr || other.job.ranked() ||
      other.brief->parent != own.brief->parent || other.detail->uid != own.detail->uid)
    return false;
  if (is_part(host, own) && is_part(host, other)) return true;
  if (!view.holds_spinning) return false;
  if (is_ray_worker(*own.brief)) return other.brief->name == own.brief->name;
  const ProcessBrief* const parent = find_process(host, own.brief->parent);
  const bool typed = parent == nullptr || is_terminal(*parent, nullptr);  // by its name: a shell starts what it likes
  return !typed && is_same_program(*own.detail, *other.detail);
}

/// What another does that the same program has started. Empty: nothing.
std::string sibling_at_work(const JobView& view, double held) {
  const HostSample& host = view.scene.last.host;
  const Subject& own = view.subject;
  if (own.detail == nullptr || is_adopted(host, *own.brief, view.scene.container)) return {};
  // In a collective they wait for one that saves or validates, but not for longer: parts that need nobody go on alone.
  if (view.holds_spinning && held >= view.scene.limits[kR8Warn]) return {};
  for (const Subject& other : view.all) {
    if (other.pid == own.pid || !may_meet(view, other)) continue;
    const std::string work = work_text(JobView(view.scene, other, view.all), held);
    if (!work.empty()) return "pid " + std::to_string(other.pid) + ", started by the same process, " + work;
  }
  return {};
}

/// A process below it or below another rank, as one that loads data, which waits for storage, and goes on when that
/// does; empty: none.
std::string child_in_storage(const JobView& view) {
  const HostSample& host = view.scene.last.host;
  const Job& job = view.subject.job;
  for (const auto& [pid, detail] : host.details) {
    const ProcessBrief* const process = find_process(host, pid);
    const ProcessTrack* const track = view.scene.tracker.process(key_of(host, pid));
    if (process == nullptr || track == nullptr || !track->stuck.holds() || !track->in_storage) continue;
    const auto is_above = [&](const Subject& one) {
      const bool same = one.pid == view.subject.pid || (job.ranked() && one.job.group == job.group);
      return same && descends_from(host, *process, one.pid);
    };
    const auto above = std::find_if(view.all.begin(), view.all.end(), is_above);
    if (above == view.all.end()) continue;
    const std::string whose = above->pid == view.subject.pid ? "it" : rank_text(above->job, above->pid);
    return "process " + std::to_string(pid) + ", below " + whose + ", waits for storage (" + track->stuck_in + ")";
  }
  return {};
}

}  // namespace

bool may_poll(const ProcessTrack& track) {
  return track.polls.holds() || (!track.io_known && std::abs(track.cpu_share - 1) <= kNearlyOne);
}

bool descends_from(const HostSample& host, const ProcessBrief& process, int ancestor) {
  const auto is_below = [&](const ProcessBrief& at) { return at.parent == ancestor; };
  const Ancestors above(host, process);
  return is_below(process) || std::any_of(above.begin(), above.end(), is_below);
}

JobView::JobView(const Scene& s, const Subject& one, const std::vector<Subject>& others)
    : scene(s), subject(one), all(others) {
  holds_idle = !subject.gpus.empty();
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
  // What it did while it was starting proves nothing.
  spinning = std::min(spinning, std::max(0.0, subject.age(scene.last.at) - scene.limits[kGrace]));
  // Power that is low but goes up and down is work.
  const double flat = scene.limits[kR6Flat];
  holds_spinning = spins_on != nullptr && spins_on->hold->power.relative_variance() <= flat * flat;
}

std::vector<const Subject*> peers(const JobView& view) {
  std::vector<const Subject*> result;
  for (const Subject& other : view.all) {
    if (&other == &view.subject || other.brief == nullptr || !other.job.ranked()) continue;
    if (other.job.group == view.subject.job.group && !is_double(view, other.job, *other.brief))
      result.push_back(&other);
  }
  return result;
}

int live_local_ranks(const JobView& view) {
  const HostSample& host = view.scene.last.host;
  const ProcessBrief& own = *view.subject.brief;
  const bool left_behind = is_adopted(host, own, view.scene.container);
  // The same user's may be read: it has written over it, as one that gives itself a title does.
  const auto renamed = [&](const ProcessDetail* detail) {
    return detail != nullptr && !detail->memory_locked && view.subject.detail != nullptr &&
           detail->uid == view.subject.detail->uid;
  };
  std::set<int> ranks;
  int others = 0;
  for (const ProcessBrief& process : host.processes) {
    if (!lives(process)) continue;
    const ProcessDetail* const detail = find_detail(host, process.pid);
    if (detail == nullptr || !detail->environment_known) {
      if (process.parent > 1 && process.parent == own.parent && (process.name == own.name || renamed(detail))) ++others;
      continue;
    }
    const Job job = job_of(host, process, *detail);
    if (!job.ranked() || job.group != view.subject.job.group) continue;
    if (left_behind || !is_adopted(host, process, view.scene.container)) ranks.insert(*job.rank);
  }
  return static_cast<int>(ranks.size()) + others;
}

int ranks_elsewhere(const JobView& view) {
  const Job& job = view.subject.job;
  if (!job.ranked() || !job.world_size || job.one_node || view.subject.brief == nullptr) return 0;
  return std::max(0, *job.world_size - std::max(live_local_ranks(view), job.local_world_size.value_or(0)));
}

bool is_part(const HostSample& host, const Subject& subject) {
  const ProcessDetail* const detail = subject.detail;
  if (subject.brief == nullptr || detail == nullptr || subject.job.ranked()) return false;
  if (!detail->command.empty() && is_worker_of_parent(host, *subject.brief, *detail)) return true;
  const ProcessBrief* const parent = find_process(host, subject.brief->parent);
  const ProcessDetail* const above = find_detail(host, subject.brief->parent);
  return parent != nullptr && above != nullptr && !detail->environment_known && is_launcher(*parent, above);
}

const ProcessBrief* dead_beside(const JobView& view) {
  const ProcessBrief& own = *view.subject.brief;
  const HostSample& host = view.scene.last.host;
  if (user_of_engine(host, own) == nullptr) return nullptr;
  const auto found = std::find_if(host.processes.begin(), host.processes.end(), [&](const ProcessBrief& other) {
    return !lives(other) && other.parent == own.parent && other.name == own.name;
  });
  return found == host.processes.end() ? nullptr : &*found;
}

int launcher_of(const JobView& view) {
  const HostSample& host = view.scene.last.host;
  for (const ProcessBrief& at : Ancestors(host, *view.subject.brief)) {
    if (at.pid == 1) break;
    const ProcessDetail* const detail = find_detail(host, at.pid);
    if (is_launcher(at, detail)) {
      const bool others =
          detail != nullptr && view.subject.detail != nullptr && detail->uid != view.subject.detail->uid;
      return others ? 0 : at.pid;
    }
    const Job job = detail != nullptr ? job_of(host, at, *detail) : Job();
    if (!job.ranked() || job.rank != view.subject.job.rank || job.group != view.subject.job.group) return 0;
  }
  return 0;
}

std::vector<int> members(const JobView& view) {
  const auto uid = [](const Subject& subject) {
    return subject.detail != nullptr ? subject.detail->uid : std::optional<std::uint32_t>();
  };
  std::vector<int> pids = {view.subject.pid};
  for (const Subject* const peer : peers(view)) {
    if (uid(*peer) == uid(view.subject)) pids.push_back(peer->pid);
  }
  std::sort(pids.begin(), pids.end());
  return pids;
}

std::string peer_at_work(const JobView& view, double held) {
  if (held < view.scene.limits[kR8Warn]) {
    if (std::string child = child_in_storage(view); !child.empty()) return child;
    if (std::string own = own_work_text(view); view.holds_spinning && !own.empty()) return own;
  }
  if (!view.subject.job.ranked()) return sibling_at_work(view, held);
  for (const Subject* const peer : peers(view)) {
    const std::string work = work_text(JobView(view.scene, *peer, view.all), held);
    if (!work.empty()) return rank_text(peer->job, peer->pid) + " " + work;
  }
  if (view.subject.job.of_lightning) {
    std::string work = first_at_work(view);
    if (!work.empty()) return work;
  }
  const HostSample& host = view.scene.last.host;  // ranks that are on no GPU, and workers of those that are
  for (const auto& [pid, detail] : host.details) {
    const ProcessBrief* const process = find_process(host, pid);
    if (process == nullptr || !job_of(detail).ranked()) continue;
    const Job job = job_of(host, *process, detail);
    if (job.group != view.subject.job.group || is_double(view, job, *process) || counts_not(view, *process)) continue;
    const std::string work =
        busy_text(view.scene, kind_of(host, *process, &detail), view.scene.tracker.process(key_of(host, pid)), held);
    if (!work.empty()) return rank_text(job, pid) + " " + work;
  }
  return {};
}

std::string rank_text(const Job& job, int pid) {
  return "rank " + std::to_string(job.rank.value_or(-1)) + " (pid " + std::to_string(pid) + ")";
}

}  // namespace drover::inline v1::health
