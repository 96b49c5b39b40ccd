// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "drover/health/rules/rules.h"

/// What the rules about jobs, R5 to R8, know of a process and of the other ranks of its job. Pure.
namespace drover::inline v1::health {

/// What can be said about the job of one process, over all GPUs it is on. Refers to its parts.
struct JobView {
  const Scene& scene;
  const Subject& subject;
  const std::vector<Subject>& all;

  double idle = std::numeric_limits<double>::max(), spinning = 0;  ///< seconds; idle on all its GPUs
  int idle_looks = std::numeric_limits<int>::max(), spinning_looks = 0;
  bool holds_idle = false, holds_spinning = false;
  const Subject::On* spins_on = nullptr;
  bool was_busy = false;

  JobView(const Scene& scene, const Subject& subject, const std::vector<Subject>& all);
};

bool descends_from(const HostSample& host, const ProcessBrief& process, int ancestor);

/// The other ranks of its job that are on GPUs of this node.
std::vector<const Subject*> peers(const JobView& view);

/// Whether its parent started it as a part of the same program, or a launcher did and nothing more may be read.
bool is_part(const HostSample& host, const Subject& subject);

/// How many different ranks of the job live on this node. A rank's wrapper and its workers have its number too, and
/// what was left behind by one that died counts only when all are left behind. Whose environment
/// was not read, or who wrote over it, is known by the parent, and by the name or user.
int live_local_ranks(const JobView& view);

/// Ranks of the job's world that are not on this node, or have died; 0 when nothing tells, or all are of this node.
int ranks_elsewhere(const JobView& view);

/// Another worker of the same engine of vLLM or SGLang, which has died; nullptr: none.
const ProcessBrief* dead_beside(const JobView& view);

/// The launcher of its job, above wrappers that have the same rank. 0 when there is none, for a TERM for a user's shell
/// would end more than the job, and when it is another user's.
int launcher_of(const JobView& view);

/// The pids of the job on GPUs of this node, ascending; never another user's.
std::vector<int> members(const JobView& view);

/// It used just one core and moved no data, or that cannot be told.
bool may_poll(const ProcessTrack& track);

/// "rank 3 (pid 4003) computes on its GPU": a rank here that the others may be waiting for with good reason, as one
/// that computes, reads or writes, waits for storage or for requests, or is held by a person, as at a terminal; empty
/// when there is none. Any CPU use and a little traffic are taken for work until r6.high, and after that what is more
/// than a heartbeat and does not look like one thread that polls: `held` is for how long the others have waited. Also a
/// process below a rank that waits for storage, for an hour; and of processes without ranks, which one program has
/// started as parts of itself, one of the others, for which one that spins waits for r8.warn at most. "the first rank
/// (pid 4000) works on the CPU" of PyTorch Lightning's, which has no number; nothing else is known of that one, so its
/// CPU use always counts.
std::string peer_at_work(const JobView& view, double held);

/// For how long it has looked again and again for what does not come, as for a lock that somebody left on a file: its
/// first thread sleeps for a time, and neither it nor another rank here does more, for r8.warn at least; else 0. Of one
/// rank alone that is a pause.
double naps_for(const JobView& view);

/// Why it may wait for as long as it likes for what others give it: it is a service of the machine, or the engine of a
/// program that is at work; empty: nothing tells.
std::string reason_to_wait(const JobView& view);

/// "Slurm has no step of job 77 here any more"; empty: it has one, or it is not Slurm's.
std::string sign_of_slurm(const JobView& view);

/// Why the job has lost its head; no sign: it has not.
struct Signs {
  std::vector<std::string> texts;
  bool sure = false;  ///< not only that ranks are missing: those that end well do so one after the other
};
/// What belongs to an ended Slurm job needs no rank for that, and may be anything.
Signs signs_of_orphan(const JobView& view);

/// R8: what rests, on its GPUs or, where nobody tells of those, on the CPU.
void judge_idle(const JobView& view, std::vector<Finding>& findings);

/// "rank 3 (pid 4003)"
std::string rank_text(const Job& job, int pid);

}  // namespace drover::inline v1::health
