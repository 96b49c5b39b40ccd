// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstring>
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

int index_of(Device device) { return static_cast<int>(static_cast<int*>(device) - handles); }
GpuSample gpu(Device device) { return Driver::instance().gpu(index_of(device)); }

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

int give_rows(Device device, unsigned* count, void* rows, std::size_t row, std::uint32_t use) {
  const GpuSample sample = gpu(device);
  if (!sample.processes.ok()) return sample.processes.code;
  std::vector<GpuProcessRow> wanted;
  for (const GpuProcessRow& one : sample.rows) {
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
    if (i < wanted.size()) {
      entry.pid = static_cast<std::uint32_t>(wanted[i].pid);
      entry.memory = wanted[i].memory.ok() ? wanted[i].memory.value : kNone64;
    } else {
      entry.pid = i % 2 == 0 ? 0 : 0xDEADBEEF;
      entry.memory = kNone64 - i;
    }
    entry.gpu_instance = entry.compute_instance = kNone32;
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
  return give_text(gpu(device).name, text, size);
}
FAKE nvmlDeviceGetUUID(Device device, char* text, unsigned size) {
  ENTER(index_of(device));
  return give_text(gpu(device).uuid, text, size);
}
FAKE nvmlDeviceGetMinorNumber(Device device, unsigned* value) {
  ENTER(index_of(device));
  return give(gpu(device)[Metric::kMinor], value);
}
FAKE nvmlDeviceGetMemoryInfo(Device device, Memory1* memory) {
  ENTER(index_of(device));
  const GpuSample sample = gpu(device);
  give(sample[Metric::kMemoryUsed], &memory->used);
  memory->free = 0;
  return give(sample[Metric::kMemoryTotal], &memory->total);
}
FAKE nvmlDeviceGetUtilizationRates(Device device, Utilization* busy) {
  ENTER(index_of(device));
  const GpuSample sample = gpu(device);
  give(sample[Metric::kUtilMemory], &busy->memory);
  return give(sample[Metric::kUtilCores], &busy->cores);
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
  if (sample[Metric::kMemoryReserved].code == kFunctionNotFound) return kFunctionNotFound;
  give(sample[Metric::kMemoryUsed], &memory->used);
  give(sample[Metric::kMemoryReserved], &memory->reserved);
  return give(sample[Metric::kMemoryTotal], &memory->total);
}
FAKE nvmlDeviceGetTotalEnergyConsumption(Device device, std::uint64_t* value) {
  ENTER(index_of(device));
  return give(gpu(device)[Metric::kEnergyMillijoules], value);
}
FAKE nvmlDeviceGetCurrentClocksEventReasons(Device device, std::uint64_t* value) {
  ENTER(index_of(device));
  return give(gpu(device)[Metric::kClockReasons], value);
}
FAKE nvmlDeviceGetPcieReplayCounter(Device device, unsigned* value) {
  ENTER(index_of(device));
  return give(gpu(device)[Metric::kPcieReplays], value);
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
