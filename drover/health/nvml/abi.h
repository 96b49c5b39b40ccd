// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

/// The few functions of libnvidia-ml.so.1 that are used, declared by ourselves: names, numbers and layouts of a public
/// binary interface (64-bit Linux). Sizes and offsets were measured once against the vendor's header 13.3 and are
/// asserted here.
namespace drover::inline v1::health::nvml {

using Device = void*;
using EventSet = void*;
using GpmSample = void*;

constexpr unsigned versioned(std::size_t size, unsigned version) {
  return static_cast<unsigned>(size) | version << 24U;
}

struct PciInfo {
  char legacy_bus[16];
  std::uint32_t domain, bus, device, pci_device, pci_subsystem;
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68 && offsetof(PciInfo, domain) == 16 && offsetof(PciInfo, bus_id) == 36);

struct Memory1 {
  std::uint64_t total, free, used;  ///< used includes what the driver keeps for itself
};
static_assert(sizeof(Memory1) == 24);

struct Memory2 {
  std::uint32_t version;
  std::uint64_t total, reserved, free, used;
};
static_assert(sizeof(Memory2) == 40 && offsetof(Memory2, total) == 8 && versioned(sizeof(Memory2), 2) == 0x02000028);

struct Utilization {
  std::uint32_t cores, memory;
};
static_assert(sizeof(Utilization) == 8);

/// Rows of the process lists: the plain functions fill the first, _v2 and _v3 the second, and _v3 of the drivers
/// 535.43 to 535.85 the third.
struct Process1 {
  std::uint32_t pid;
  std::uint64_t memory;
};
struct Process2 {
  std::uint32_t pid;
  std::uint64_t memory;
  std::uint32_t gpu_instance, compute_instance;
};
struct Process3 {
  std::uint32_t pid;
  std::uint64_t memory;
  std::uint32_t gpu_instance, compute_instance;
  std::uint64_t protected_memory;
};
static_assert(sizeof(Process1) == 16 && offsetof(Process1, memory) == 8);
static_assert(sizeof(Process2) == 24 && offsetof(Process2, gpu_instance) == 16);
static_assert(sizeof(Process3) == 32 && offsetof(Process3, protected_memory) == 24);

struct ProcessActivity {
  std::uint32_t pid;
  std::uint64_t time_us;
  std::uint32_t cores, memory, encoder, decoder;
};
static_assert(sizeof(ProcessActivity) == 32 && offsetof(ProcessActivity, time_us) == 8 &&
              offsetof(ProcessActivity, cores) == 16);

struct FieldValue {
  std::uint32_t field, scope;
  std::int64_t time, latency;
  std::int32_t type, code;
  union {
    double as_double;
    std::uint32_t as_u32;
    std::uint64_t as_u64;
    std::int64_t as_i64;
    std::int32_t as_i32;
  } value;
};
static_assert(sizeof(FieldValue) == 40 && offsetof(FieldValue, value) == 32 && offsetof(FieldValue, code) == 28);
enum FieldType : std::int32_t { kDouble = 0, kU32 = 1, kUlong = 2, kU64 = 3, kI64 = 4, kI32 = 5 };

struct Event {
  Device device;
  std::uint64_t type, data;
  std::uint32_t gpu_instance, compute_instance;
};
static_assert(sizeof(Event) == 32 && offsetof(Event, data) == 16);
inline constexpr std::uint64_t kXidEvent = 8;

/// Performance counters of Hopper and later (GPM), as the difference of two samples.
struct GpmSupport {
  std::uint32_t version, supported;
};
static_assert(sizeof(GpmSupport) == 8);
inline constexpr unsigned kGpmVersion = 1;

struct GpmMetric {
  std::uint32_t id;
  std::int32_t code;
  double value;
  const char *short_name, *long_name, *unit;
};
static_assert(sizeof(GpmMetric) == 40 && offsetof(GpmMetric, value) == 8);

/// The array's length differs by version of the header; the driver goes by `count`, and the longest is safe.
struct GpmRequest {
  std::uint32_t version, count;
  GpmSample first, second;
  GpmMetric metrics[333];
};
static_assert(sizeof(GpmRequest) == 13'344 && offsetof(GpmRequest, metrics) == 24);
enum GpmId : std::uint32_t { kGpmGraphics = 1, kGpmOccupancy = 3, kGpmTensor = 5, kGpmMemoryTraffic = 10 };

inline constexpr std::uint32_t kFieldNvlinkSend = 138, kFieldNvlinkReceive = 139;
inline constexpr std::uint32_t kFieldRemapPending = 144, kFieldRemapFailed = 145, kFieldRecoveryAction = 230;
inline constexpr std::uint32_t kAllLinks = 0xFFFF'FFFF;

// What a value holds that means "not available".
inline constexpr std::uint64_t kNone64 = ~std::uint64_t{0};
inline constexpr std::uint32_t kNone32 = ~std::uint32_t{0};

// Answers of the functions that are told apart; all others are shown by their number.
enum Code : int {
  kSuccess = 0,
  kNotSupported = 3,
  kNoPermission = 4,
  kNotFound = 6,
  kInsufficientSize = 7,
  kInsufficientPower = 8,
  kDriverNotLoaded = 9,
  kTimeout = 10,
  kLibraryNotFound = 12,
  kFunctionNotFound = 13,
  kCorruptedInforom = 14,
  kGpuIsLost = 15,
  kResetRequired = 16,
  kOperatingSystem = 17,
  kMismatch = 18,
  kUnknown = 999,
};

}  // namespace drover::inline v1::health::nvml
