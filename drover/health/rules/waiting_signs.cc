// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string_view>

#include "drover/health/rules/job_view.h"
#include "drover/health/rules/kernel_place.h"
#include "drover/health/rules/words.h"

namespace drover::inline v1::health {
namespace {

/// Of a service, and of no person: accounts that packages make, and those that systemd makes for a unit.
bool is_account_of_service(std::uint32_t uid) {
  constexpr std::uint32_t kFirstOfPersons = 1000, kFirstDynamic = 61'184, kLastDynamic = 65'519;
  return (uid > 0 && uid < kFirstOfPersons) || (uid >= kFirstDynamic && uid <= kLastDynamic);
}

/// Whether it is a job that a service was given, and ends by itself.
bool is_job_of_service(const HostSample& host, const Subject& subject) {
  const Ancestors above(host, *subject.brief);
  return std::any_of(above.begin(), above.end(),
                     [&](const ProcessBrief& at) { return is_launcher(at, find_detail(host, at.pid)); });
}

/// Whether systemd started it, or what leads its session, in a unit of the system with an account of its own. Who runs
/// jobs of others gives each of them a session.
bool is_of_unit(const Scene& scene, const Subject& subject) {
  const HostSample& host = scene.last.host;
  const ProcessDetail& detail = *subject.detail;
  if (subject.job.scheduler != "systemd" || subject.job.of_user || !detail.cgroup.starts_with("/system.slice/"))
    return false;
  const ProcessBrief* const leader = find_process(host, subject.brief->session);
  const ProcessDetail* const more = leader != nullptr ? find_detail(host, leader->pid) : nullptr;
  return detail.uid && is_account_of_service(*detail.uid) && more != nullptr && more->cgroup == detail.cgroup &&
         is_reaper(host, leader->parent, scene.container);
}

/// Whether supervisord or the like started it, by a shell's script or without one.
bool is_supervised(const HostSample& host, const Subject& subject) {
  static constexpr auto kNames =
      std::to_array<std::string_view>({"supervisord", "s6-supervise", "runsv", "circusd", "PM2 v"});
  for (const ProcessBrief& ancestor : Ancestors(host, *subject.brief)) {
    const ProcessDetail* const detail = find_detail(host, ancestor.pid);
    if (detail != nullptr && detail->command.find("/supervisord") != detail->command.npos) return true;
    if (starts_with_any(ancestor.name, kNames)) return true;
    const bool shell = is_terminal(ancestor, nullptr);  // by its name
    if (!shell || is_terminal(ancestor, detail)) return false;
  }
  return false;
}

/// Whether the program uses more than a little CPU or its own GPU, which is seen of those above one on a GPU.
bool is_at_work(const JobView& view, const ProcessBrief& program) {
  if (works(view.scene.tracker.process(key_of(view.scene.last.host, program.pid)))) return true;
  return std::any_of(view.all.begin(), view.all.end(), [&](const Subject& other) {
    return other.pid == program.pid && !JobView(view.scene, other, view.all).holds_idle;
  });
}

/// For how long it has done next to nothing, on its GPUs and on the CPU.
double calm_for(const JobView& view) {
  const ProcessTrack* const track = view.subject.track;
  return view.holds_idle && track != nullptr && track->calm.holds() ? std::min(view.idle, track->calm.length()) : 0;
}

}  // namespace

double naps_for(const JobView& view) {
  const ProcessDetail* const detail = view.subject.detail;
  if (detail == nullptr || detail->first.state != 'S' || !sleeps(detail->first.waits_in)) return 0;
  double least = calm_for(view);
  const std::vector<const Subject*> others = peers(view);
  for (const Subject* const peer : others) least = std::min(least, calm_for(JobView(view.scene, *peer, view.all)));
  return others.empty() || least < view.scene.limits[Limit::kR8Warn] ? 0 : least;
}

std::string reason_to_wait(const JobView& view) {
  const Subject& subject = view.subject;
  const HostSample& host = view.scene.last.host;
  if (subject.kind != Kind::kPlain || subject.detail == nullptr || subject.job.ranked()) return {};
  if (!is_job_of_service(host, subject) && (is_of_unit(view.scene, subject) || is_supervised(host, subject)))
    return "a fault: a service of the machine waits for work";
  const ProcessBrief* const user = user_of_engine(host, *subject.brief);
  if (user == nullptr || !is_at_work(view, *user)) return {};
  return "a fault, it seems: pid " + name_of(host, user->pid) + " is at work, and gives it the next task then";
}

}  // namespace drover::inline v1::health
