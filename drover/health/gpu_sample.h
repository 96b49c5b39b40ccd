// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// What one look at a GPU gives: facts as the driver and the kernel tell them, no judgement. Values.
namespace drover::inline v1::health {

/// The answer to one question to the driver. The codes are NVML's; negative ones are ours.
struct Reading {
  static constexpr int kOk = 0, kNotSupported = 3, kNoPermission = 4, kNotFound = 6, kTooSmall = 7, kNoPower = 8,
                       kTimeout = 10, kNoFunction = 13, kBadInforom = 14, kGpuLost = 15, kResetRequired = 16,
                       kInternal = 999;
  static constexpr int kNotAsked = -1, kNoValue = -2;  ///< never asked; the driver said "not available" by a value
  static constexpr int kAsleep = -3;                   ///< the GPU is powered down, and was not woken
  static constexpr int kOneLook = -4;                  ///< the difference of two looks, and this is the first
  static constexpr int kUntold = -5;                   ///< the GPU works, and nobody tells for which process
  static constexpr int kMachineMemory = -6;            ///< it has no memory of its own
  static constexpr int kMig = -7;  ///< the GPU is divided (MIG), and this is told of no part or whole

  int code = kNotAsked;
  std::uint64_t value = 0;

  bool ok() const noexcept { return code == kOk; }
  std::optional<double> number(double factor = 1) const {
    return ok() ? std::optional(static_cast<double>(value) * factor) : std::nullopt;
  }
  /// Why there is no value, for people: "not supported by this GPU or driver". Empty when there is one.
  std::string why() const;
};

/// What is asked of each GPU. Percentages are 0 to 100; the other units are in the names.
enum class Metric {
  kMemoryTotal,  ///< bytes
  kMemoryUsed,   ///< without what the driver keeps for itself, when kMemoryReserved is known; else with it
  kMemoryReserved,
  kUtilCores,
  kUtilMemory,
  kPowerMilliwatts,
  kPowerLimitMilliwatts,
  kEnergyMillijoules,
  kTemperature,
  kClockCoresMhz,
  kClockMemoryMhz,
  kClockReasons,
  kPcieSendKilobytes,  ///< a second
  kPcieReceiveKilobytes,
  kNvlinkSendKib,
  kNvlinkReceiveKib,
  kEccUncorrected,
  kRemapPending,
  kRemapFailed,
  kRecoveryAction,
  kMig,
  kOccupancy,      ///< GPM, on Hopper and later, between two looks, percent: of the warps that there could be
  kTensor,         ///< ... of the time in which tensor cores worked
  kMemoryTraffic,  ///< ... of the memory's bandwidth
  kMinor,
  kCount
};
inline constexpr std::size_t kMetrics = static_cast<std::size_t>(Metric::kCount);
const char* metric_name(Metric metric) noexcept;

/// How a process uses a GPU. One process may do several.
enum : std::uint32_t { kUsesCompute = 1, kUsesGraphics = 2, kUsesMps = 4 };

/// A row of the driver's lists.
struct GpuProcessRow {
  int pid = 0;
  std::uint32_t uses = 0;
  Reading memory;               ///< bytes
  int use_code = Reading::kOk;  ///< why it is not known what this process does, though `activity` can be trusted
  /// Of MIG; kNoInstance: the whole GPU.
  std::uint32_t gpu_instance = kNoInstance, compute_instance = kNoInstance;
  static constexpr std::uint32_t kNoInstance = 0xFFFF'FFFF;
};

/// A row of the driver's list of processes that did something lately.
struct GpuActivityRow {
  int pid = 0;
  std::uint32_t cores = 0, memory = 0;  ///< percent, the most of all rows of this process
};

/// An Xid in the kernel's log.
struct LoggedXid {
  std::uint64_t xid = 0;
  double at = 0;    ///< seconds since boot, by the clock of the samples
  std::string bus;  ///< "0000:3b:00"
  int pid = 0;      ///< 0: not told
  std::string name;
};

/// A part of a GPU that is divided (MIG).
struct GpuInstance {
  std::uint32_t gpu_instance = 0, compute_instance = 0;
  std::string name, uuid;
  Reading memory_total, memory_used;  ///< bytes
  Reading cores;                      ///< percent, by GPM: its share of the time, between two looks
};

struct GpuSample {
  int index = 0;
  std::string vendor = "nvidia";  ///< "nvidia", "amd", "intel"
  std::string name, uuid, bus;
  std::array<Reading, kMetrics> readings{};
  Reading processes;  ///< whether `rows` can be trusted
  Reading activity;   ///< whether `active` can be trusted; kNotFound: nobody did anything
  std::vector<GpuProcessRow> rows;
  std::vector<GpuActivityRow> active;
  std::vector<GpuInstance> instances;  ///< of MIG
  std::vector<std::uint64_t> xids;     ///< that arrived since the last look
  std::vector<LoggedXid> logged;       ///< in the kernel's log, all since boot
  std::uint32_t junk_rows = 0;         ///< rows of the driver that made no sense
  int unseen = 0;                      ///< processes that may be on it too, and may not be looked at
  std::string stuck_in;                ///< the call that did not come back; all else is as it was before, or empty
  std::string not_asked;  ///< why nobody asked it, with what to do; empty: it was, or the driver's state says why

  const Reading& operator[](Metric metric) const noexcept { return readings[static_cast<std::size_t>(metric)]; }
  Reading& operator[](Metric metric) noexcept { return readings[static_cast<std::size_t>(metric)]; }
};

}  // namespace drover::inline v1::health
