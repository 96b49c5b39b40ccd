// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "drover/health/history.h"

namespace drover::inline v1::health {
namespace {

GpuPoint point_of(const GpuSample& gpu, double at) {
  GpuPoint point;
  point.at = at;
  point.cores = gpu[Metric::kUtilCores].number(0.01);
  if (gpu[Metric::kMemoryUsed].ok()) point.memory_used = gpu[Metric::kMemoryUsed].value;
  point.power_w = gpu[Metric::kPowerMilliwatts].number(1e-3);
  return point;
}

}  // namespace

void add_points(GpuSeries& series, const Sample& sample, double spacing) {
  constexpr double kOneLook = 0.5;  // a single look takes two samples, and makes one point
  constexpr double kJitter = 0.9;   // looks are never quite on time
  for (const GpuSample& gpu : sample.driver.gpus) {
    std::vector<GpuPoint>& points = series[gpu.uuid];
    if (!points.empty() && points.back().at > sample.at) points.clear();  // of the future
    const std::size_t size = points.size();
    const bool too_near = (size >= 1 && sample.at - points[size - 1].at < kOneLook) ||
                          (size >= 2 && points[size - 1].at - points[size - 2].at < kJitter * spacing);
    if (too_near) points.pop_back();
    points.push_back(point_of(gpu, sample.at));
    if (points.size() > kSeriesPoints) points.erase(points.begin());
  }
}

void describe_series(Report& report, const GpuSeries& series, double now) {
  for (GpuReport& gpu : report.gpus) {
    const auto found = series.find(gpu.uuid);
    if (found == series.end()) continue;
    gpu.series = found->second;
    for (GpuPoint& point : gpu.series) point.at += report.unix_time - now;
  }
}

}  // namespace drover::inline v1::health
