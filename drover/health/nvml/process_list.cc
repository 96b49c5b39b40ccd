// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>

#include "drover/health/nvml/library.h"

namespace drover::inline v1::health::nvml {
namespace {

using GetProcesses = int (*)(Device, unsigned*, void*);

constexpr std::size_t kMostRows = 8192;
constexpr std::uint32_t kMostPid = 1U << 22U;  // PID_MAX_LIMIT

bool untouched(const std::vector<unsigned char>& buffer, std::size_t from, std::size_t to) {
  to = std::min(to, buffer.size());
  return std::all_of(buffer.begin() + static_cast<std::ptrdiff_t>(std::min(from, to)),
                     buffer.begin() + static_cast<std::ptrdiff_t>(to), [](unsigned char c) { return c == kSentinel; });
}

/// A function of three generations, the newest first, and the rows that each fills.
constexpr std::array<std::size_t, 3> kRowSizes = {sizeof(Process2), sizeof(Process2), sizeof(Process1)};
constexpr const char* kCompute[] = {"nvmlDeviceGetComputeRunningProcesses_v3",
                                    "nvmlDeviceGetComputeRunningProcesses_v2", "nvmlDeviceGetComputeRunningProcesses"};
constexpr const char* kGraphics[] = {"nvmlDeviceGetGraphicsRunningProcesses_v3",
                                     "nvmlDeviceGetGraphicsRunningProcesses_v2",
                                     "nvmlDeviceGetGraphicsRunningProcesses"};
constexpr const char* kMps[] = {"nvmlDeviceGetMPSComputeRunningProcesses_v3",
                                "nvmlDeviceGetMPSComputeRunningProcesses_v2",
                                "nvmlDeviceGetMPSComputeRunningProcesses"};

std::size_t newest_row_size(const Library& library, const std::vector<unsigned char>& buffer, std::size_t count) {
  if (const std::size_t seen = row_size(buffer, count)) return seen;
  // No sign in the bytes. Only the drivers with 32-byte rows have the first function and not yet the second.
  const bool large =
      library.has("nvmlDeviceGetConfComputeMemSizeInfo") && !library.has("nvmlDeviceGetRunningProcessDetailList");
  return large ? sizeof(Process3) : sizeof(Process2);
}

}  // namespace

std::size_t row_size(const std::vector<unsigned char>& buffer, std::size_t count) noexcept {
  if (count == 0) return 0;
  const std::size_t small = count * sizeof(Process2), large = count * sizeof(Process3);
  if (large + sizeof(Process3) > buffer.size()) return 0;
  if (!untouched(buffer, large, buffer.size())) return 0;  // the driver wrote over everything: it tells nothing
  return untouched(buffer, small, large) ? sizeof(Process2) : sizeof(Process3);
}

void take_rows(GpuSample& sample, const std::vector<unsigned char>& buffer, std::size_t count, std::size_t stride,
               std::uint32_t use) {
  count = std::min(count, buffer.size() / stride);
  const Reading total = sample[Metric::kMemoryTotal];
  for (std::size_t i = 0; i < count; ++i) {
    Process2 row{};
    row.gpu_instance = row.compute_instance = kNone32;
    std::memcpy(&row, buffer.data() + i * stride, std::min(stride, sizeof row));  // all rows begin alike
    if (row.pid == 0 || row.pid > kMostPid) {
      ++sample.junk_rows;
      continue;
    }
    Reading memory{Reading::kOk, row.memory};
    if (row.memory == kNone64) memory = {Reading::kNoValue, 0};
    if (total.ok() && memory.ok() && memory.value > total.value) memory = {Reading::kNoValue, 0};
    const int pid = static_cast<int>(row.pid);
    const auto same = [&](const GpuProcessRow& known) { return known.pid == pid; };
    const auto at = std::find_if(sample.rows.begin(), sample.rows.end(), same);
    if (at == sample.rows.end()) {
      sample.rows.push_back({pid, use, memory, Reading::kOk, row.gpu_instance, row.compute_instance});
    } else {
      at->uses |= use;
      if (memory.ok() && (!at->memory.ok() || memory.value > at->memory.value)) at->memory = memory;
    }
  }
}

int Gpu::read_list(GpuSample& sample, Device device, const char* const (&names)[3], std::uint32_t use) const {
  int code = kFunctionNotFound;
  for (std::size_t i = 0; i < kRowSizes.size() && code == kFunctionNotFound; ++i) {
    code = kInsufficientSize;
    for (std::size_t rows = 128; code == kInsufficientSize && rows <= kMostRows; rows *= 4) {
      // Room for the largest rows there are, whatever the driver believes, and a margin that shows where it stopped.
      std::vector<unsigned char> buffer((rows + 2) * sizeof(Process3), kSentinel);
      auto count = static_cast<unsigned>(rows);
      code = library_->call(*current_, names[i], GetProcesses(), device, &count, static_cast<void*>(buffer.data()));
      if (code != kSuccess || count == 0) continue;
      const std::size_t stride = i == 0 ? newest_row_size(*library_, buffer, count) : kRowSizes[i];
      take_rows(sample, buffer, count, stride, use);
    }
  }
  return code;
}

void Gpu::read_processes(GpuSample& sample) const {
  int compute = read_list(sample, device_, kCompute, kUsesCompute);
  read_list(sample, device_, kGraphics, kUsesGraphics);
  read_list(sample, device_, kMps, kUsesMps);
  for (const auto& [device, instance] : instances_) {  // of some drivers each part tells only its own
    GpuSample part;
    part[Metric::kMemoryTotal] = sample[Metric::kMemoryTotal];
    const int code = read_list(part, device, kCompute, kUsesCompute);
    if (compute != kSuccess) compute = code;
    for (GpuProcessRow& row : part.rows) {
      row.gpu_instance = instance.gpu_instance;
      row.compute_instance = instance.compute_instance;
      const auto same = [&](const GpuProcessRow& known) { return known.pid == row.pid; };
      if (std::none_of(sample.rows.begin(), sample.rows.end(), same)) sample.rows.push_back(row);
    }
    sample.junk_rows += part.junk_rows;
  }
  sample.processes = {compute, 0};
  std::sort(sample.rows.begin(), sample.rows.end(),
            [](const GpuProcessRow& a, const GpuProcessRow& b) { return a.pid < b.pid; });
}

}  // namespace drover::inline v1::health::nvml
