// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "drover/health/rules/rules.h"

namespace drover::inline v1::health {

using enum Limit;

namespace {
constexpr double kHottest = 200;  // degrees: what is more is no measurement
}  // namespace

void judge_clocks(const Scene& scene, std::vector<Finding>& findings) {
  for (const GpuSample& gpu : scene.last.driver.gpus) {
    const GpuTrack* const track = scene.tracker.gpu(gpu.uuid);
    if (track == nullptr || !track->slowed.holds() || !gpu.stuck_in.empty()) continue;
    if (track->slowed_by == 0) continue;  // the history does not tell it, and no look since then has seen it
    const bool brake = (track->slowed_by & kPowerBrake) != 0;
    Finding finding = about(Rule::kR1, gpu, brake ? "SLOWED BY A POWER BRAKE" : "SLOWED BY HEAT");
    finding.because.push_back("its hardware cuts its clocks, to half or less, while it is at work, for " +
                              duration_text(track->slowed.length()));
    if (const auto celsius = gpu[Metric::kTemperature].number(); celsius && *celsius < kHottest)
      finding.because.push_back("it is " + std::to_string(static_cast<int>(*celsius)) + " degrees Celsius hot");
    finding.not_because.emplace_back(
        "the usual limits of power and heat: software keeps those, before hardware has to");
    finding.not_because.emplace_back("a hang beside, which is not ruled out: one that spins looks like slow work then");
    grade(scene, finding, track->slowed.length(), scene.limits[kR1Slow], Severity::kWarning, Confidence::kHigh,
          track->slowed.hits);
    finding.limits = {scene.limits.text(kR1Slow)};
    finding.action.push_back("look at " +
                             std::string(brake ? "the power supply, its cables and the node's power limit (a laptop: "
                                                 "at its battery)"
                                               : "its fans, the airflow and the room") +
                             "; what runs is slow, and not wrong");
    findings.push_back(std::move(finding));
  }
}

}  // namespace drover::inline v1::health
