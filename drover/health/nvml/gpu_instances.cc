// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>

#include "drover/health/nvml/instance_use.h"
#include "drover/health/nvml/library.h"

// What is special about newer data-centre GPUs: parts (MIG), and performance counters (GPM).

namespace drover::inline v1::health::nvml {
namespace {

using GetText = int (*)(Device, char*, unsigned);
using GetUnsigned = int (*)(Device, unsigned*);
using GetPart = int (*)(Device, unsigned, Device*);
using GetMemory2 = int (*)(Device, Memory2*);
using GetMemory1 = int (*)(Device, Memory1*);
using GetSupport = int (*)(Device, GpmSupport*);
using MakeSample = int (*)(GpmSample*);
using FreeSample = int (*)(GpmSample);
using TakeSample = int (*)(Device, GpmSample);
using TakePart = int (*)(Device, unsigned, GpmSample);
using GetMetrics = int (*)(GpmRequest*);

constexpr unsigned kMostInstances = 16;  // seven is the most of any model so far

bool mig_on(const GpuSample& sample) { return sample[Metric::kMig].ok() && sample[Metric::kMig].value == 1; }

Reading bytes(int code, std::uint64_t value) {
  if (code != kSuccess) return {code, 0};
  return value == kNone64 ? Reading{Reading::kNoValue, 0} : Reading{Reading::kOk, value};
}

Reading percent(const GpmMetric& metric, int call_code) {
  const int code = call_code != kSuccess ? call_code : metric.code;
  if (code != kSuccess) return {code, 0};
  if (!(metric.value >= 0 && metric.value <= 100.5)) return {Reading::kNoValue, 0};
  return {Reading::kOk, static_cast<std::uint64_t>(std::ceil(std::min(metric.value, 100.0) - 1e-9))};
}

}  // namespace

bool Gpu::describe_instance(Device device, GpuInstance& instance) const {
  unsigned gpu_instance = 0, compute_instance = 0;
  if (library_->call(*current_, "nvmlDeviceGetGpuInstanceId", GetUnsigned(), device, &gpu_instance) != kSuccess ||
      library_->call(*current_, "nvmlDeviceGetComputeInstanceId", GetUnsigned(), device, &compute_instance) !=
          kSuccess) {
    return false;
  }
  instance.gpu_instance = gpu_instance;
  instance.compute_instance = compute_instance;
  std::array<char, 97> text{};
  if (library_->call(*current_, "nvmlDeviceGetName", GetText(), device, text.data(), 96U) == kSuccess)
    instance.name = text.data();
  text.fill(0);
  if (library_->call(*current_, "nvmlDeviceGetUUID", GetText(), device, text.data(), 96U) == kSuccess)
    instance.uuid = text.data();
  Memory2 memory{};
  memory.version = versioned(sizeof memory, 2);
  int code = library_->call(*current_, "nvmlDeviceGetMemoryInfo_v2", GetMemory2(), device, &memory);
  instance.memory_total = bytes(code, memory.total);
  instance.memory_used = bytes(code, memory.used);
  if (code != kSuccess) {
    Memory1 old{};
    code = library_->call(*current_, "nvmlDeviceGetMemoryInfo", GetMemory1(), device, &old);
    instance.memory_total = bytes(code, old.total);
    instance.memory_used = bytes(code, old.used);
  }
  instance.cores = {Reading::kMig, 0};
  return true;
}

void Gpu::read_instances(GpuSample& sample) {
  instances_.clear();
  if (!mig_on(sample)) return;
  // Drivers have answered 0 here, and numbers beyond all measure: of the divided GPU this is not told.
  sample[Metric::kUtilCores] = sample[Metric::kUtilMemory] = {Reading::kMig, 0};
  unsigned most = 0;
  library_->call(*current_, "nvmlDeviceGetMaxMigDeviceCount", GetUnsigned(), device_, &most);
  for (unsigned i = 0; i < std::min(most, kMostInstances); ++i) {
    Device device = nullptr;
    GpuInstance instance;
    const int code = library_->call(*current_, "nvmlDeviceGetMigDeviceHandleByIndex", GetPart(), device_, i, &device);
    if (code == kSuccess && device != nullptr && describe_instance(device, instance))
      instances_.emplace_back(device, std::move(instance));
  }
}

bool Gpu::has_gpm() {
  if (!gpm_) {
    GpmSupport support{kGpmVersion, 0};
    const int code = library_->call(*current_, "nvmlGpmQueryDeviceSupport", GetSupport(), device_, &support);
    gpm_ = code == kSuccess && support.supported != 0;
  }
  return *gpm_;
}

/// A new sample of a part or of the whole GPU; nullptr when there is none to be had.
GpmSample Gpu::take_gpm(const GpuInstance* instance) {
  GpmSample sample = nullptr;
  if (library_->call(*current_, "nvmlGpmSampleAlloc", MakeSample(), &sample) != kSuccess) return nullptr;
  const int code = instance != nullptr ? library_->call(*current_, "nvmlGpmMigSampleGet", TakePart(), device_,
                                                        instance->gpu_instance, sample)
                                       : library_->call(*current_, "nvmlGpmSampleGet", TakeSample(), device_, sample);
  if (code == kSuccess) return sample;
  library_->call(*current_, "nvmlGpmSampleFree", FreeSample(), sample);
  return nullptr;
}

/// The share of the time in which anything ran; of the whole GPU the other counters are filled in, too.
Reading Gpu::gpm_share(GpuSample& sample, GpmSample first, GpmSample second, bool whole) {
  GpmRequest request{};
  request.version = kGpmVersion;
  request.first = first;
  request.second = second;
  static constexpr std::array kIds = {kGpmGraphics, kGpmOccupancy, kGpmTensor, kGpmMemoryTraffic};
  request.count = static_cast<std::uint32_t>(kIds.size());
  for (std::size_t i = 0; i < kIds.size(); ++i) request.metrics[i].id = kIds[i];
  const int code = library_->call(*current_, "nvmlGpmMetricsGet", GetMetrics(), &request);
  if (whole) {
    sample[Metric::kOccupancy] = percent(request.metrics[1], code);
    sample[Metric::kTensor] = percent(request.metrics[2], code);
    sample[Metric::kMemoryTraffic] = percent(request.metrics[3], code);
  }
  return percent(request.metrics[0], code);
}

/// Two looks are at least a tenth of a second apart, as these counters need it.
void Gpu::read_gpm(GpuSample& sample) {
  const bool parts = mig_on(sample);
  sample[Metric::kOccupancy] = sample[Metric::kTensor] =
      sample[Metric::kMemoryTraffic] = {parts ? static_cast<int>(Reading::kMig) : Reading::kNotSupported, 0};
  std::map<std::uint32_t, GpmSample> taken;
  if (has_gpm()) {
    for (auto& [device, instance] : instances_) {
      if (taken.count(instance.gpu_instance) == 0) taken[instance.gpu_instance] = take_gpm(&instance);
    }
    if (!parts) taken[kNone32] = take_gpm(nullptr);
  }
  for (const auto& [part, now] : taken) {
    const auto before = gpm_last_.find(part);
    const bool both = now != nullptr && before != gpm_last_.end() && before->second != nullptr;
    const Reading share =
        both ? gpm_share(sample, before->second, now, !parts)
             : Reading{now == nullptr ? Reading::kNotSupported : static_cast<int>(Reading::kOneLook), 0};
    if (!parts && share.code == Reading::kOneLook) {
      sample[Metric::kOccupancy] = sample[Metric::kTensor] = sample[Metric::kMemoryTraffic] = share;
    }
    for (auto& [device, instance] : instances_) {
      if (instance.gpu_instance == part) instance.cores = share;
    }
  }
  for (const auto& [part, old] : gpm_last_) {
    if (old != nullptr) library_->call(*current_, "nvmlGpmSampleFree", FreeSample(), old);
  }
  gpm_last_ = std::move(taken);
  if (!parts) return;
  for (const auto& [device, instance] : instances_) sample.instances.push_back(instance);
  judge_instances(sample);
}

}  // namespace drover::inline v1::health::nvml
