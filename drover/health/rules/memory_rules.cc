// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "drover/health/rules/rules.h"

namespace drover::inline v1::health {
namespace {

using enum Limit;

/// What can and what cannot be said about the memory, and how sure that is.
void explain_memory(const Scene& scene, const GpuSample& gpu, const GpuTrack& track, Finding& finding) {
  const auto uses_mps = [](const GpuProcessRow& row) { return (row.uses & kUsesMps) != 0; };
  const bool mps = std::any_of(gpu.rows.begin(), gpu.rows.end(), uses_mps);
  const bool often = track.unattributed.hits >= scene.limits[kR9Samples];
  const bool reserved_known = gpu[Metric::kMemoryReserved].ok();
  const bool sure = often && !scene.container && !mps && reserved_known;
  finding.severity = sure ? Severity::kWarning : Severity::kInfo;
  finding.confidence = sure ? Confidence::kMedium : Confidence::kLow;
  finding.held_s = track.unattributed.length();
  const double used = gpu[Metric::kMemoryUsed].number().value_or(0), rest = unattributed_bytes(gpu);
  finding.because.push_back(bytes_text(used) + " are used, of which the listed processes have " +
                            bytes_text(used - rest) + "; the other " + bytes_text(rest) + " are not theirs, in " +
                            count_text(track.unattributed.hits, "look", "looks"));
  if (!reserved_known) {
    finding.not_because.emplace_back("what the driver keeps for itself is not known, and may be part of it");
  }
  if (scene.container) finding.not_because.emplace_back("processes outside this container are not seen");
  if (mps) finding.not_because.emplace_back("clients of MPS share memory in ways that are not listed");
  if (!often) finding.not_because.emplace_back("seen too seldom to say more; run with --window 10s");
  finding.limits = {scene.limits.text(kR9Vram), scene.limits.text(kR9VramShare), scene.limits.text(kR9Samples)};
}

/// The driver leaked it, when it is sure that it is anybody's at all.
void advise_leak(const Scene& scene, const UnlistedHolders& holders, const GpuSample& gpu, Finding& finding) {
  if (scene.holders.unreadable > 0) {
    finding.not_because.push_back(count_text(scene.holders.unreadable, "process", "processes") +
                                  " may not be looked at; root sees who holds the device");
    finding.action.emplace_back("run it as root, to see who has the device open");
  } else if (!scene.container && finding.severity >= Severity::kWarning) {
    note_importers(scene, gpu, finding);
    const bool others = !holders.others.empty() || !listed_and_alive(scene, gpu).empty();
    finding.action.push_back(std::string(others ? "nobody but those listed" : "nobody") +
                             " has the device open: a leak of the driver, it seems; when the GPU is free, reset it (" +
                             how_to_reset(&gpu) + ", as root)");
  }
}

void name_hidden(const Scene& scene, const GpuSample& gpu, Finding& finding) {
  const auto holders = unlisted_holders(scene, gpu);
  if (!holders) {
    explain_unknown_holders(scene, gpu, finding);
    return;
  }
  note_others(scene, *holders, finding);
  if (holders->pids.empty()) {
    advise_leak(scene, *holders, gpu, finding);
    return;
  }
  finding.because.push_back("have the device open, but are not listed: " + names_of(scene.last.host, holders->pids));
  if (finding.severity == Severity::kWarning) finding.confidence = Confidence::kHigh;
  if (scene.container) return;
  finding.action.push_back("ask the owners of pids " + pid_list(holders->pids) +
                           " first; often they are left-over data workers of a job that died");
  advise_ending(finding, 0, holders->pids);
}

}  // namespace

void judge_memory(const Scene& scene, std::vector<Finding>& findings) {
  for (const GpuSample& gpu : scene.last.driver.gpus) {
    const GpuTrack* const track = scene.tracker.gpu(gpu.uuid);
    const double rest = unattributed_bytes(gpu);
    if (track == nullptr || !track->unattributed.holds() || rest < 0 || !gpu.stuck_in.empty()) continue;
    Finding finding = about(Rule::kR9, gpu, "UNATTRIBUTED MEMORY");
    finding.memory_bytes = static_cast<std::uint64_t>(rest);
    explain_memory(scene, gpu, *track, finding);
    name_hidden(scene, gpu, finding);
    findings.push_back(std::move(finding));
  }
}

}  // namespace drover::inline v1::health
