// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <type_traits>

#include "drover/health/nvml/library.h"

namespace drover::inline v1::health::nvml {
namespace {

using GetText = int (*)(Device, char*, unsigned);
using GetUnsigned = int (*)(Device, unsigned*);
using GetU64 = int (*)(Device, std::uint64_t*);
using GetKind = int (*)(Device, int, unsigned*);
using GetEcc = int (*)(Device, int, int, std::uint64_t*);
using GetPci = int (*)(Device, PciInfo*);
using GetMemory1 = int (*)(Device, Memory1*);
using GetMemory2 = int (*)(Device, Memory2*);
using GetUtilization = int (*)(Device, Utilization*);
using GetPair = int (*)(Device, unsigned*, unsigned*);
using GetFields = int (*)(Device, int, FieldValue*);
using GetActivity = int (*)(Device, ProcessActivity*, unsigned*, std::uint64_t);
using MakeEvents = int (*)(EventSet*);
using RegisterEvents = int (*)(Device, std::uint64_t, EventSet);
using WaitEvents = int (*)(EventSet, Event*, unsigned);

Reading reading(int code, std::uint32_t value) {
  return code == kSuccess && value == kNone32 ? Reading{Reading::kNoValue, 0}
                                              : Reading{code, code == kSuccess ? value : 0};
}
Reading reading(int code, std::uint64_t value) {
  return code == kSuccess && value == kNone64 ? Reading{Reading::kNoValue, 0}
                                              : Reading{code, code == kSuccess ? value : 0};
}

/// Drivers under MIG have answered with huge numbers.
Reading percent(int code, std::uint32_t value) {
  return code == kSuccess && value > 100 ? Reading{Reading::kNoValue, 0} : reading(code, value);
}

Reading field_reading(const FieldValue& field, int call_code) {
  if (call_code != kSuccess) return {call_code, 0};
  if (field.code != kSuccess) return {field.code, 0};
  switch (field.type) {
    case kU32:
      return reading(kSuccess, field.value.as_u32);
    case kUlong:
    case kU64:
      return reading(kSuccess, field.value.as_u64);
    case kI64:
    case kI32: {
      const std::int64_t value = field.type == kI64 ? field.value.as_i64 : field.value.as_i32;
      return value < 0 ? Reading{Reading::kNoValue, 0} : Reading{kSuccess, static_cast<std::uint64_t>(value)};
    }
    case kDouble:
      if (field.value.as_double >= 0 && field.value.as_double < 1e18) {
        return {kSuccess, static_cast<std::uint64_t>(field.value.as_double)};
      }
      break;
    default:
      break;
  }
  return {Reading::kNoValue, 0};
}

std::uint64_t unix_time_us() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}

}  // namespace

std::uint64_t ask_activity_since(std::uint64_t last_seen_us, std::uint64_t now_us) noexcept {
  constexpr std::uint64_t kSecond = 1'000'000;
  if (last_seen_us != 0 && last_seen_us <= now_us) return last_seen_us;
  return now_us - std::min(now_us, kSecond);  // 0 would give a long average
}

GpuSample Gpu::sample() {
  GpuSample sample;
  sample.index = static_cast<int>(index_);
  if (!open(sample)) return sample;
  sample.name = name_;
  sample.uuid = uuid_;
  sample.bus = bus_;
  read_memory(sample);
  read_numbers(sample);
  read_counters(sample);
  read_fields(sample);
  read_instances(sample);
  read_processes(sample);
  read_activity(sample);
  read_gpm(sample);
  read_events(sample);
  return sample;
}

bool Gpu::open(GpuSample& sample) {
  if (device_ == nullptr) {
    current_->store("nvmlDeviceGetHandleByIndex_v2", std::memory_order_relaxed);
    const int code = library_->handle(index_, device_);
    current_->store(nullptr, std::memory_order_relaxed);
    if (code != kSuccess || device_ == nullptr) {
      device_ = nullptr;
      const Reading failed{code == kSuccess ? static_cast<int>(kNotFound) : code, 0};
      sample.readings.fill(failed);
      sample.processes = sample.activity = failed;
      return false;
    }
    identify();
  }
  return true;
}

void Gpu::identify() {
  std::array<char, 97> text{};
  if (library_->call(*current_, "nvmlDeviceGetName", GetText(), device_, text.data(), 96U) == kSuccess)
    name_ = text.data();
  text.fill(0);
  if (library_->call(*current_, "nvmlDeviceGetUUID", GetText(), device_, text.data(), 96U) == kSuccess)
    uuid_ = text.data();
  PciInfo pci{};
  if (library_->call(*current_, "nvmlDeviceGetPciInfo_v3", GetPci(), device_, &pci) == kSuccess) {
    bus_.assign(pci.bus_id, ::strnlen(pci.bus_id, sizeof pci.bus_id));
  }
  if (uuid_.empty()) uuid_ = !bus_.empty() ? "PCI-" + bus_ : "index-" + std::to_string(index_);
}

void Gpu::read_memory(GpuSample& sample) const {
  Memory2 memory{};
  memory.version = versioned(sizeof memory, 2);
  int code = library_->call(*current_, "nvmlDeviceGetMemoryInfo_v2", GetMemory2(), device_, &memory);
  if (code == kSuccess) {
    sample[Metric::kMemoryTotal] = reading(code, memory.total);
    sample[Metric::kMemoryUsed] = reading(code, memory.used);
    sample[Metric::kMemoryReserved] = reading(code, memory.reserved);
    return;
  }
  Memory1 old{};
  code = library_->call(*current_, "nvmlDeviceGetMemoryInfo", GetMemory1(), device_, &old);
  sample[Metric::kMemoryTotal] = reading(code, old.total);
  sample[Metric::kMemoryUsed] = reading(code, old.used);
  sample[Metric::kMemoryReserved] = {Reading::kNoFunction, 0};
}

void Gpu::read_numbers(GpuSample& sample) const {
  struct Wanted {
    Metric metric;
    const char* symbol;
    int kind;  ///< the argument of functions that have one; -1: this one has none
  };
  static constexpr Wanted kNumbers[] = {{Metric::kPowerMilliwatts, "nvmlDeviceGetPowerUsage", -1},
                                        {Metric::kPowerLimitMilliwatts, "nvmlDeviceGetEnforcedPowerLimit", -1},
                                        {Metric::kTemperature, "nvmlDeviceGetTemperature", 0},
                                        {Metric::kClockCoresMhz, "nvmlDeviceGetClockInfo", 1},
                                        {Metric::kClockMemoryMhz, "nvmlDeviceGetClockInfo", 2},
                                        {Metric::kPcieSendKilobytes, "nvmlDeviceGetPcieThroughput", 0},
                                        {Metric::kPcieReceiveKilobytes, "nvmlDeviceGetPcieThroughput", 1},
                                        {Metric::kMinor, "nvmlDeviceGetMinorNumber", -1}};
  for (const Wanted& wanted : kNumbers) {
    unsigned value = 0;
    const int code = wanted.kind < 0
                         ? library_->call(*current_, wanted.symbol, GetUnsigned(), device_, &value)
                         : library_->call(*current_, wanted.symbol, GetKind(), device_, wanted.kind, &value);
    sample[wanted.metric] = reading(code, std::uint32_t{value});
  }
  Utilization busy{};
  const int code = library_->call(*current_, "nvmlDeviceGetUtilizationRates", GetUtilization(), device_, &busy);
  sample[Metric::kUtilCores] = percent(code, busy.cores);
  sample[Metric::kUtilMemory] = percent(code, busy.memory);
  unsigned mig = 0, pending = 0;
  const int mig_code = library_->call(*current_, "nvmlDeviceGetMigMode", GetPair(), device_, &mig, &pending);
  sample[Metric::kMig] = reading(mig_code, std::uint32_t{mig});
}

void Gpu::read_counters(GpuSample& sample) const {
  const auto large = [&](Metric metric, const char* symbol) {
    std::uint64_t value = 0;
    const int code = library_->call(*current_, symbol, GetU64(), device_, &value);
    sample[metric] = reading(code, value);
  };
  large(Metric::kEnergyMillijoules, "nvmlDeviceGetTotalEnergyConsumption");
  large(Metric::kClockReasons, "nvmlDeviceGetCurrentClocksEventReasons");
  if (sample[Metric::kClockReasons].code == kFunctionNotFound) {
    large(Metric::kClockReasons, "nvmlDeviceGetCurrentClocksThrottleReasons");  // its older name
  }
  std::uint64_t errors = 0;
  const int ecc = library_->call(*current_, "nvmlDeviceGetTotalEccErrors", GetEcc(), device_, 1, 0, &errors);
  sample[Metric::kEccUncorrected] = reading(ecc, errors);
}

void Gpu::read_fields(GpuSample& sample) const {
  struct Wanted {
    Metric metric;
    std::uint32_t field, scope;
  };
  static constexpr std::array kWanted = {Wanted{Metric::kNvlinkSendKib, kFieldNvlinkSend, kAllLinks},
                                         Wanted{Metric::kNvlinkReceiveKib, kFieldNvlinkReceive, kAllLinks},
                                         Wanted{Metric::kRemapPending, kFieldRemapPending, 0},
                                         Wanted{Metric::kRemapFailed, kFieldRemapFailed, 0},
                                         Wanted{Metric::kRecoveryAction, kFieldRecoveryAction, 0}};
  std::array<FieldValue, kWanted.size()> fields{};
  for (std::size_t i = 0; i < fields.size(); ++i) {
    fields[i].field = kWanted[i].field;
    fields[i].scope = kWanted[i].scope;
    fields[i].code = kNotSupported;
  }
  const int code = library_->call(*current_, "nvmlDeviceGetFieldValues", GetFields(), device_,
                                  static_cast<int>(fields.size()), fields.data());
  for (std::size_t i = 0; i < fields.size(); ++i) sample[kWanted[i].metric] = field_reading(fields[i], code);
}

void Gpu::read_activity(GpuSample& sample) {
  last_seen_us_ = ask_activity_since(last_seen_us_, unix_time_us());
  std::vector<ProcessActivity> rows(256);
  int code = kInsufficientSize;
  auto count = static_cast<unsigned>(rows.size());
  for (int tries = 0; code == kInsufficientSize && tries < 5; ++tries) {
    if (tries > 0) rows.resize(std::min<std::size_t>(std::max<std::size_t>(2 * rows.size(), count), 16'384));
    count = static_cast<unsigned>(rows.size());
    code = library_->call(*current_, "nvmlDeviceGetProcessUtilization", GetActivity(), device_, rows.data(), &count,
                          last_seen_us_);
  }
  sample.activity = {code, 0};
  if (code != kSuccess) return;
  rows.resize(std::min<std::size_t>(count, rows.size()));
  for (const ProcessActivity& row : rows) {
    if (row.pid == 0 || row.pid > (1U << 22U)) continue;  // PID_MAX_LIMIT
    if (row.cores > 100 || row.memory > 100) {
      ++sample.junk_rows;
      continue;
    }
    last_seen_us_ = std::max(last_seen_us_, row.time_us <= unix_time_us() ? row.time_us : 0);
    const int pid = static_cast<int>(row.pid);
    const auto same = [&](const GpuActivityRow& known) { return known.pid == pid; };
    auto at = std::find_if(sample.active.begin(), sample.active.end(), same);
    if (at == sample.active.end()) at = sample.active.insert(at, GpuActivityRow{pid, 0, 0});
    at->cores = std::max(at->cores, row.cores);
    at->memory = std::max(at->memory, row.memory);
  }
}

void Gpu::read_events(GpuSample& sample) {
  if (!events_asked_) {
    events_asked_ = true;
    if (library_->call(*current_, "nvmlEventSetCreate", MakeEvents(), &events_) != kSuccess) events_ = nullptr;
    if (events_ != nullptr && library_->call(*current_, "nvmlDeviceRegisterEvents", RegisterEvents(), device_,
                                             kXidEvent, events_) != kSuccess) {
      events_ = nullptr;  // not supported here
    }
  }
  for (int i = 0; events_ != nullptr && i < 16; ++i) {
    Event event{};
    if (library_->call(*current_, "nvmlEventSetWait_v2", WaitEvents(), events_, &event, 0U) != kSuccess) break;
    if (event.type == kXidEvent) sample.xids.push_back(event.data);
  }
}

}  // namespace drover::inline v1::health::nvml
