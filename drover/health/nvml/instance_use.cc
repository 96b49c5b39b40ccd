// SPDX-License-Identifier: Apache-2.0
#include "drover/health/nvml/instance_use.h"

#include <algorithm>

namespace drover::inline v1::health::nvml {

void judge_instances(GpuSample& sample) {
  sample.active.clear();
  sample.activity = {Reading::kMig, 0};
  for (GpuProcessRow& row : sample.rows) {
    row.use_code = Reading::kMig;
    const auto part = std::find_if(sample.instances.begin(), sample.instances.end(), [&](const GpuInstance& instance) {
      return instance.gpu_instance == row.gpu_instance;
    });
    if (part == sample.instances.end()) continue;
    row.use_code = part->cores.code;
    if (!part->cores.ok() || part->cores.value == 0) continue;
    const auto inside = [&](const GpuProcessRow& other) { return other.gpu_instance == row.gpu_instance; };
    if (std::count_if(sample.rows.begin(), sample.rows.end(), inside) > 1) {
      row.use_code = Reading::kUntold;
    } else {
      sample.active.push_back({row.pid, static_cast<std::uint32_t>(part->cores.value), 0});
    }
  }
  const auto told = [](const GpuInstance& instance) { return instance.cores.ok(); };
  if (!std::any_of(sample.instances.begin(), sample.instances.end(), told)) {
    if (!sample.instances.empty() && sample.instances.front().cores.code == Reading::kOneLook)
      sample.activity.code = Reading::kOneLook;
    return;
  }
  sample.activity = {sample.active.empty() ? static_cast<int>(Reading::kNotFound) : Reading::kOk, 0};
  const auto known = [](const GpuProcessRow& row) { return row.use_code == Reading::kOk; };
  if (!sample.rows.empty() && std::none_of(sample.rows.begin(), sample.rows.end(), known))
    sample.activity.code = sample.rows.front().use_code;
}

}  // namespace drover::inline v1::health::nvml
