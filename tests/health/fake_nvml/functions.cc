// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <initializer_list>
#include <string>

#include "fake_nvml/fake_nvml.h"

// The names and signatures are those of the driver's library. FAKE_NVML_OLD leaves out what drivers of the 390 series
// do not have.

using namespace drover::health;
using namespace drover::health::nvml;
using fake_nvml::Driver;

#define FAKE extern "C" __attribute__((visibility("default"))) int
#define ENTER(...) \
  if (const int code = Driver::instance().enter(__func__ __VA_OPT__(, ) __VA_ARGS__); code != 0) return code

namespace {

int handles[128];

int parts[128][8];  // handles of MIG's instances
bool is_part(Device device) { return device >= static_cast<void*>(parts) && device < static_cast<void*>(parts + 128); }

int index_of(Device device) {
  const auto* const handle = static_cast<int*>(device);
  return static_cast<int>(is_part(device) ? (handle - parts[0]) / 8 : handle - handles);
}
GpuSample gpu(Device device) { return Driver::instance().gpu(index_of(device)); }

/// The instance behind a handle; nullptr for a whole GPU.
const GpuInstance* part_of(const GpuSample& sample, Device device) {
  const auto number = static_cast<std::size_t>((static_cast<int*>(device) - parts[0]) % 8);
  return is_part(device) && number < sample.instances.size() ? &sample.instances[number] : nullptr;
}

int give_text(const std::string& text, char* to, unsigned size) {
  if (text.size() + 1 > size) return kInsufficientSize;
  std::memcpy(to, text.c_str(), text.size() + 1);
  return kSuccess;
}

/// An answer as the driver gives it: the code, or a value, which may mean "not available".
template <class T>
int give(const Reading& reading, T* to) {
  if (reading.code == Reading::kNoValue) *to = static_cast<T>(~std::uint64_t{0});
  if (reading.code < 0) return kSuccess;
  if (reading.ok()) *to = static_cast<T>(reading.value);
  return reading.code;
}

/// A function that tells several values has one answer for all.
int first_failure(std::initializer_list<int> codes) {
  const auto at = std::find_if(codes.begin(), codes.end(), [](int code) { return code != kSuccess; });
  return at == codes.end() ? static_cast<int>(kSuccess) : *at;
}

int give_rows(Device device, unsigned* count, void* rows, std::size_t row, std::uint32_t use) {
  const GpuSample sample = gpu(device);
  if (!sample.processes.ok()) return sample.processes.code;
  std::vector<GpuProcessRow> wanted;
  const GpuInstance* const part = part_of(sample, device);
  for (const GpuProcessRow& one : sample.rows) {
    if (part != nullptr && part->gpu_instance != one.gpu_instance) continue;
    if (part == nullptr && Driver::instance().host("mig_lists") != 0) continue;  // each part tells only its own
    if ((one.uses & use) != 0) wanted.push_back(one);
  }
  auto total = static_cast<unsigned>(wanted.size());
  if (const auto constant = static_cast<unsigned>(Driver::instance().host("constant")); constant > total)
    total = constant;
  if (total > *count) {
    *count = total;
    return kInsufficientSize;
  }
  if (Driver::instance().host("zeroes") != 0) std::memset(rows, 0, *count * row);
  for (unsigned i = 0; i < total; ++i) {
    Process3 entry{};
    entry.gpu_instance = entry.compute_instance = kNone32;
    if (i < wanted.size()) {
      entry.gpu_instance = wanted[i].gpu_instance;
      entry.compute_instance = wanted[i].compute_instance;
      entry.pid = static_cast<std::uint32_t>(wanted[i].pid);
      entry.memory = wanted[i].memory.ok() ? wanted[i].memory.value : kNone64;
    } else {
      entry.pid = i % 2 == 0 ? 0 : 0xDEADBEEF;
      entry.memory = kNone64 - i;
    }
    std::memcpy(static_cast<char*>(rows) + i * row, &entry, row);
  }
  *count = total;
  return kSuccess;
}

}  // namespace

#ifdef FAKE_NVML_OLD
FAKE nvmlInit() {
  ENTER();
  return static_cast<int>(Driver::instance().host("init"));
}
FAKE nvmlDeviceGetCount(unsigned* count) {
#else
FAKE nvmlInit_v2() {
  ENTER();
  return static_cast<int>(Driver::instance().host("init"));
}
FAKE nvmlDeviceGetCount_v2(unsigned* count) {
#endif
  ENTER();
  *count = static_cast<unsigned>(Driver::instance().count());
  return kSuccess;
}

#ifdef FAKE_NVML_OLD
FAKE nvmlDeviceGetHandleByIndex(unsigned index, Device* device) {
#else
FAKE nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) {
#endif
  ENTER(static_cast<int>(index));
  if (index >= Driver::instance().count()) return 2;
  *device = handles + index;
  return kSuccess;
}

FAKE nvmlSystemGetDriverVersion(char* text, unsigned size) {
  ENTER();
  return give_text("550.90.07", text, size);
}
FAKE nvmlDeviceGetName(Device device, char* text, unsigned size) {
  ENTER(index_of(device));
  const GpuSample sample = gpu(device);
  const GpuInstance* const part = part_of(sample, device);
  return give_text(part != nullptr ? part->name : sample.name, text, size);
}
FAKE nvmlDeviceGetUUID(Device device, char* text, unsigned size) {
  ENTER(index_of(device));
  const GpuSample sample = gpu(device);
  const GpuInstance* const part = part_of(sample, device);
  return give_text(part != nullptr ? part->uuid : sample.uuid, text, size);
}
FAKE nvmlDeviceGetMinorNumber(Device device, unsigned* value) {
  ENTER(index_of(device));
  return give(gpu(device)[Metric::kMinor], value);
}
FAKE nvmlDeviceGetMemoryInfo(Device device, Memory1* memory) {
  ENTER(index_of(device));
  const GpuSample sample = gpu(device);
  memory->free = 0;
  return first_failure(
      {give(sample[Metric::kMemoryUsed], &memory->used), give(sample[Metric::kMemoryTotal], &memory->total)});
}
FAKE nvmlDeviceGetUtilizationRates(Device device, Utilization* busy) {
  ENTER(index_of(device));
  const GpuSample sample = gpu(device);
  return first_failure(
      {give(sample[Metric::kUtilMemory], &busy->memory), give(sample[Metric::kUtilCores], &busy->cores)});
}
FAKE nvmlDeviceGetPowerUsage(Device device, unsigned* value) {
  ENTER(index_of(device));
  return give(gpu(device)[Metric::kPowerMilliwatts], value);
}
FAKE nvmlDeviceGetEnforcedPowerLimit(Device device, unsigned* value) {
  ENTER(index_of(device));
  return give(gpu(device)[Metric::kPowerLimitMilliwatts], value);
}
FAKE nvmlDeviceGetTemperature(Device device, int, unsigned* value) {
  ENTER(index_of(device));
  return give(gpu(device)[Metric::kTemperature], value);
}
FAKE nvmlDeviceGetClockInfo(Device device, int kind, unsigned* value) {
  ENTER(index_of(device));
  return give(gpu(device)[kind == 2 ? Metric::kClockMemoryMhz : Metric::kClockCoresMhz], value);
}
FAKE nvmlDeviceGetPcieThroughput(Device device, int direction, unsigned* value) {
  ENTER(index_of(device));
  return give(gpu(device)[direction == 0 ? Metric::kPcieSendKilobytes : Metric::kPcieReceiveKilobytes], value);
}
FAKE nvmlDeviceGetComputeRunningProcesses(Device device, unsigned* count, void* rows) {
  ENTER(index_of(device));
  return give_rows(device, count, rows, sizeof(Process1), kUsesCompute);
}
FAKE nvmlDeviceGetGraphicsRunningProcesses(Device device, unsigned* count, void* rows) {
  ENTER(index_of(device));
  return give_rows(device, count, rows, sizeof(Process1), kUsesGraphics);
}

#ifndef FAKE_NVML_OLD
namespace {
std::size_t newest_row() { return static_cast<std::size_t>(Driver::instance().host("row", 24)); }
}  // namespace

FAKE nvmlSystemGetCudaDriverVersion_v2(int* version) {
  ENTER();
  *version = 12040;
  return kSuccess;
}
FAKE nvmlDeviceGetPciInfo_v3(Device device, PciInfo* pci) {
  ENTER(index_of(device));
  return give_text(gpu(device).bus, pci->bus_id, sizeof pci->bus_id);
}
FAKE nvmlDeviceGetMemoryInfo_v2(Device device, Memory2* memory) {
  ENTER(index_of(device));
  if (memory->version != versioned(sizeof(Memory2), 2)) return 25;
  const GpuSample sample = gpu(device);
  if (const GpuInstance* const part = part_of(sample, device)) {
    give(part->memory_used, &memory->used);
    return give(part->memory_total, &memory->total);
  }
  if (sample[Metric::kMemoryReserved].code == kFunctionNotFound) return kFunctionNotFound;
  return first_failure({give(sample[Metric::kMemoryUsed], &memory->used),
                        give(sample[Metric::kMemoryReserved], &memory->reserved),
                        give(sample[Metric::kMemoryTotal], &memory->total)});
}
FAKE nvmlDeviceGetTotalEnergyConsumption(Device device, std::uint64_t* value) {
  ENTER(index_of(device));
  return give(gpu(device)[Metric::kEnergyMillijoules], value);
}
FAKE nvmlDeviceGetCurrentClocksEventReasons(Device device, std::uint64_t* value) {
  ENTER(index_of(device));
  return give(gpu(device)[Metric::kClockReasons], value);
}
FAKE nvmlDeviceGetTotalEccErrors(Device device, int, int, std::uint64_t* value) {
  ENTER(index_of(device));
  return give(gpu(device)[Metric::kEccUncorrected], value);
}
FAKE nvmlDeviceGetMigMode(Device device, unsigned* now, unsigned* pending) {
  ENTER(index_of(device));
  *pending = 0;
  return give(gpu(device)[Metric::kMig], now);
}
FAKE nvmlDeviceGetFieldValues(Device device, int count, FieldValue* fields) {
  ENTER(index_of(device));
  const GpuSample sample = gpu(device);
  for (int i = 0; i < count; ++i) {
    const std::uint32_t field = fields[i].field;
    const Metric metric = field == kFieldNvlinkSend      ? Metric::kNvlinkSendKib
                          : field == kFieldNvlinkReceive ? Metric::kNvlinkReceiveKib
                          : field == kFieldRemapPending  ? Metric::kRemapPending
                          : field == kFieldRemapFailed   ? Metric::kRemapFailed
                                                         : Metric::kRecoveryAction;
    fields[i].type = kU64;
    fields[i].code = give(sample[metric], &fields[i].value.as_u64);
  }
  return kSuccess;
}
FAKE nvmlDeviceGetComputeRunningProcesses_v2(Device device, unsigned* count, void* rows) {
  ENTER(index_of(device));
  return give_rows(device, count, rows, sizeof(Process2), kUsesCompute);
}
FAKE nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned* count, void* rows) {
  ENTER(index_of(device));
  return give_rows(device, count, rows, newest_row(), kUsesCompute);
}
FAKE nvmlDeviceGetGraphicsRunningProcesses_v3(Device device, unsigned* count, void* rows) {
  ENTER(index_of(device));
  return give_rows(device, count, rows, newest_row(), kUsesGraphics);
}
FAKE nvmlDeviceGetMPSComputeRunningProcesses_v3(Device device, unsigned* count, void* rows) {
  ENTER(index_of(device));
  return give_rows(device, count, rows, newest_row(), kUsesMps);
}
FAKE nvmlDeviceGetProcessUtilization(Device device, ProcessActivity* rows, unsigned* count, std::uint64_t) {
  ENTER(index_of(device));
  const GpuSample sample = gpu(device);
  if (sample.activity.code != kSuccess) return sample.activity.code;
  if (sample.active.size() > *count) {
    *count = static_cast<unsigned>(sample.active.size());
    return kInsufficientSize;
  }
  const auto now =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch());
  *count = 0;
  for (const GpuActivityRow& row : sample.active) {
    rows[(*count)++] = {
        static_cast<std::uint32_t>(row.pid), static_cast<std::uint64_t>(now.count()), row.cores, row.memory, 0, 0};
  }
  return kSuccess;
}
FAKE nvmlDeviceGetMaxMigDeviceCount(Device device, unsigned* count) {
  ENTER(index_of(device));
  *count = 7;
  return kSuccess;
}
FAKE nvmlDeviceGetMigDeviceHandleByIndex(Device device, unsigned index, Device* part) {
  ENTER(index_of(device));
  if (index >= gpu(device).instances.size()) return kNotFound;
  *part = &parts[index_of(device)][index];
  return kSuccess;
}
namespace {
int tell_part(Device device, std::uint32_t GpuInstance::*member, unsigned* id) {
  const GpuSample sample = gpu(device);
  const GpuInstance* const part = part_of(sample, device);
  if (part == nullptr) return kNotSupported;
  *id = part->*member;
  return kSuccess;
}
}  // namespace
FAKE nvmlDeviceGetGpuInstanceId(Device device, unsigned* id) {
  ENTER(index_of(device));
  return tell_part(device, &GpuInstance::gpu_instance, id);
}
FAKE nvmlDeviceGetComputeInstanceId(Device device, unsigned* id) {
  ENTER(index_of(device));
  return tell_part(device, &GpuInstance::compute_instance, id);
}

namespace {
/// A sample of GPM is what the situation says at the time when two are compared; here it only knows whose it is.
struct FakeGpm {
  Device device = nullptr;
  std::uint32_t gpu_instance = kNone32;
};
std::atomic<int> gpm_samples{0};

bool has_gpm(Device device) { return Driver::instance().gpu_number(index_of(device), "gpm") != 0; }
}  // namespace

/// For tests: samples that were not given back.
extern "C" __attribute__((visibility("default"))) int fake_nvml_gpm_samples() { return gpm_samples; }

FAKE nvmlGpmQueryDeviceSupport(Device device, GpmSupport* support) {
  ENTER(index_of(device));
  if (support->version != 1) return 25;
  support->supported = has_gpm(device) ? 1 : 0;
  return kSuccess;
}
FAKE nvmlGpmSampleAlloc(GpmSample* sample) {
  ENTER();
  *sample = new FakeGpm;
  if (++gpm_samples > 64) return 20;  // nobody needs so many: somebody forgets to free them
  return kSuccess;
}
FAKE nvmlGpmSampleFree(GpmSample sample) {
  ENTER();
  delete static_cast<FakeGpm*>(sample);
  --gpm_samples;
  return kSuccess;
}
FAKE nvmlGpmSampleGet(Device device, GpmSample sample) {
  ENTER(index_of(device));
  if (!has_gpm(device) || !gpu(device).instances.empty()) return kNotSupported;
  *static_cast<FakeGpm*>(sample) = {device, kNone32};
  return kSuccess;
}
FAKE nvmlGpmMigSampleGet(Device device, unsigned gpu_instance, GpmSample sample) {
  ENTER(index_of(device));
  if (!has_gpm(device)) return kNotSupported;
  *static_cast<FakeGpm*>(sample) = {device, gpu_instance};
  return kSuccess;
}
FAKE nvmlGpmMetricsGet(GpmRequest* request) {
  const auto* const first = static_cast<FakeGpm*>(request->first);
  const auto* const second = static_cast<FakeGpm*>(request->second);
  ENTER(index_of(second->device));
  if (request->version != 1 || request->count > 333 || first->device != second->device) return 2;
  const GpuSample sample = gpu(second->device);
  const auto number = [&](const char* key) { return Driver::instance().gpu_number(sample.index, key); };
  for (std::uint32_t i = 0; i < request->count; ++i) {
    GpmMetric& metric = request->metrics[i];
    metric.code = kSuccess;
    metric.value = metric.id == kGpmOccupancy       ? number("occupancy")
                   : metric.id == kGpmTensor        ? number("tensor")
                   : metric.id == kGpmMemoryTraffic ? number("dram")
                                                    : static_cast<double>(sample[Metric::kUtilCores].value);
    for (const GpuInstance& part : sample.instances) {
      if (metric.id == kGpmGraphics && part.gpu_instance == second->gpu_instance)
        metric.value = static_cast<double>(part.cores.value);
    }
  }
  return kSuccess;
}
FAKE nvmlEventSetCreate(EventSet* set) {
  ENTER();
  *set = new int(-1);
  return kSuccess;
}
FAKE nvmlDeviceRegisterEvents(Device device, std::uint64_t, EventSet set) {
  ENTER(index_of(device));
  *static_cast<int*>(set) = index_of(device);
  return kSuccess;
}
FAKE nvmlEventSetWait_v2(EventSet set, Event* event, unsigned) {
  ENTER();
  const int index = *static_cast<int*>(set);
  event->type = kXidEvent;
  event->device = handles + index;
  return Driver::instance().take_xid(index, event->data) ? kSuccess : kTimeout;
}
#endif
