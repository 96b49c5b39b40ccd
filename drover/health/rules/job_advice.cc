// SPDX-License-Identifier: Apache-2.0
#include "drover/health/rules/job_advice.h"

#include <algorithm>

namespace drover::inline v1::health {

using enum Limit;

bool is_alone(const JobView& view) {
  const Subject& subject = view.subject;
  const HostSample& host = view.scene.last.host;
  const bool part = is_part(host, subject);
  const auto beside = [&](const Subject& other) {
    return part && other.pid != subject.pid && is_part(host, other) && other.brief->parent == subject.brief->parent;
  };
  return !subject.job.ranked() && subject.gpus.size() == 1 && launcher_of(view) == 0 && dead_beside(view) == nullptr &&
         std::none_of(view.all.begin(), view.all.end(), beside);
}

namespace {

constexpr const char* kLookElsewhere = "look at all nodes at once (inspect --hosts, or merge), and end nobody before";

/// Whether ranks are not here, of which the finding then tells.
bool doubt_other_nodes(const JobView& view, Finding& finding) {
  const int elsewhere = ranks_elsewhere(view);
  if (elsewhere == 0) return false;
  finding.not_because.push_back(
      "a wait for another node, which is not ruled out: " + count_text(elsewhere, "rank", "ranks") + " of " +
      std::to_string(view.subject.job.world_size.value_or(0)) + " are not here, and may still work");
  return true;
}

/// What has to be known before anybody is ended; empty: nothing more.
std::string before_ending(const JobView& view, Rule rule, bool by_lock) {
  if (by_lock) return "end nobody while who has the lock is at work, as a download or a build of another job may be";
  if (rule == Rule::kR6 && is_alone(view))
    return "see by its own log or results whether it goes on, and end it only if not";
  if (rule != Rule::kR5 && ranks_elsewhere(view) > 0) return kLookElsewhere;
  return {};
}

}  // namespace

void advise(const JobView& view, Finding& finding, const std::string& mend) {
  const Subject& subject = view.subject;
  const bool explained = !finding.action.empty();
  const std::string before = before_ending(view, finding.rule, !mend.empty());
  if (explained || !before.empty() || !sign_of_slurm(view).empty()) {
    advise_asking(finding, Job());  // nothing is to be ended, or Slurm has nothing left that it could cancel
  } else {
    advise_asking(view.scene, view.all, subject, finding);
  }
  if (explained) return;
  const bool python = is_python(*subject.brief, subject.detail);
  const bool nvidia = !subject.gpus.empty() && subject.gpus.front().gpu->vendor == "nvidia";
  const bool collective = nvidia && subject.job.ranked() && (python || view.holds_spinning);
  if (subject.detail != nullptr && subject.detail->memory_locked) {
    advise_careful_evidence(finding, subject.pid);
  } else {
    advise_evidence(finding, subject.pid, collective, python);
  }
  if (!mend.empty()) finding.action.push_back(mend);
  if (finding.severity < Severity::kWarning) return;
  if (before.empty()) return advise_ending(finding, launcher_of(view), members(view));
  finding.action.push_back(before);
}

bool name_who_may_work(const JobView& view, Finding& finding) {
  const std::string uses_cpu = peer_at_work(view, 0);
  if (uses_cpu.empty()) return false;
  finding.not_because.push_back("a wait for another rank, which is not ruled out, though it may only poll: " +
                                uses_cpu);
  finding.action.push_back("look at that one first, and end nobody while it is at work: " + uses_cpu);
  return true;
}

bool explain_waiting(const JobView& view, double held, Finding& finding) {
  const std::string at_work = peer_at_work(view, held);
  if (!at_work.empty()) {
    finding.not_because.push_back("a fault, it seems: " + at_work + ", and the others wait for it");
    finding.action.push_back("look at that one first: " + at_work);
    return true;
  }
  name_who_may_work(view, finding);
  doubt_other_nodes(view, finding);
  return false;
}

bool name_other_nodes(const JobView& view, Finding& finding) {
  if (!doubt_other_nodes(view, finding)) return false;
  finding.action.emplace_back(kLookElsewhere);
  return true;
}

}  // namespace drover::inline v1::health
