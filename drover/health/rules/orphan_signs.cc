// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "drover/health/rules/job_view.h"

namespace drover::inline v1::health {
namespace {

/// Whether it belongs to a step that lives, or may belong to an salloc of its user, whatever number the environment
/// has; or came by an ssh that lives, as launchers do that carry the environment of the first node to the others. What
/// salloc starts by itself has no step, and nothing tells of which job an salloc is: what is started in a tmux there is
/// below another process and in another session.
bool is_held_by_slurm(const HostSample& host, const ProcessBrief& process) {
  for (const ProcessBrief& ancestor : Ancestors(host, process)) {
    if (ancestor.name == "slurmstepd" || ancestor.name == "salloc" || ancestor.name.starts_with("sshd")) return true;
  }
  const auto uid_of = [&](int pid) {
    const ProcessDetail* const detail = find_detail(host, pid);
    return detail != nullptr ? detail->uid : std::nullopt;
  };
  const auto own = uid_of(process.pid);
  return std::any_of(host.processes.begin(), host.processes.end(), [&](const ProcessBrief& other) {
    if (other.name != "salloc" || other.state == 'Z') return false;
    const auto uid = uid_of(other.pid);
    return !uid || !own || uid == own;
  });
}

/// "slurmstepd: [77.0]": whether it is a step of this job, or of a part of it.
bool is_step_of(const Job& job, const std::string& command) {
  const auto has = [&](const std::string& id) { return command.find("[" + id + ".") != command.npos; };
  return has(job.id) || std::any_of(job.components.begin(), job.components.end(), has);
}

}  // namespace

std::string sign_of_slurm(const JobView& view) {
  const Job& job = view.subject.job;
  const HostSample& host = view.scene.last.host;
  if (job.scheduler != "slurm" || is_held_by_slurm(host, *view.subject.brief)) return {};
  bool daemon = false;
  for (const ProcessBrief& process : host.processes) {
    if (process.state == 'Z' && process.threads <= 1) continue;  // an ended step; not every pid 1 reaps
    daemon = daemon || process.name == "slurmd";
    if (process.name != "slurmstepd") continue;
    const ProcessDetail* const detail = find_detail(host, process.pid);
    if (detail == nullptr || detail->command.empty()) return {};  // it may be the step of this job
    if (is_step_of(job, detail->command)) return {};
  }
  return daemon ? "Slurm has no step of job " + job.id + " here any more" : std::string();
}

Signs signs_of_orphan(const JobView& view) {
  const Scene& scene = view.scene;
  const HostSample& host = scene.last.host;
  const ProcessBrief& brief = *view.subject.brief;
  const Job& job = view.subject.job;
  const bool rank = job.ranked() && view.subject.kind == Kind::kPlain;
  Signs signs;
  // Who was started by hand never had one; systemd starts the processes of its services itself: there it is no reaper.
  if (rank && job.launched && job.scheduler != "systemd" && is_adopted(host, brief, scene.container))
    signs.texts.push_back("its launcher is gone: its parent is now pid " + std::to_string(brief.parent));
  if (std::string sign = sign_of_slurm(view); !sign.empty()) signs.texts.push_back(std::move(sign));
  signs.sure = !signs.texts.empty();
  if (rank && job.local_world_size) {
    const int live = live_local_ranks(view);
    if (live < *job.local_world_size) {
      signs.texts.push_back("only " + std::to_string(live) + " of " +
                            count_text(*job.local_world_size, "rank", "ranks") + " of this node " +
                            (live == 1 ? "lives" : "live"));
    }
  }
  // A group without its leader is common among daemons: it only strengthens what else there is.
  const ProcessBrief* const leader = find_process(host, brief.group);
  const bool leaderless = brief.group != brief.pid && (leader == nullptr || leader->state == 'Z');
  if (!signs.texts.empty() && leaderless)
    signs.texts.push_back("the leader of its process group, " + std::to_string(brief.group) + ", is gone");
  return signs;
}

}  // namespace drover::inline v1::health
