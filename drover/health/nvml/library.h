// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "drover/health/nvml/abi.h"
#include "drover/health/sample.h"
#include "drover/os/dynamic_library.h"

namespace drover::inline v1::health::nvml {

/// The driver's library, as far as it has what is asked for: every function is optional, and one that is missing gives
/// kNoFunction. The calls of different devices may run concurrently (the vendor says so); each names itself in the
/// `current` that it is given, so that another thread can say where it hangs. Owns the library, which is never unloaded
/// while threads use it. Calls may block for ever: use it in a process of its own.
class Library {
 public:
  using Current = std::atomic<const char*>;

  /// Loads libnvidia-ml.so.1; the unversioned name may be a stub, so it is only the second choice.
  Library();

  bool loaded() const noexcept { return library_.loaded(); }
  const std::string& error() const noexcept { return library_.error(); }

  /// nvmlInit_v2, or an older one. Slow without persistence mode (seconds).
  int init(Current& current) const;
  std::string driver_version() const;
  int cuda_version() const;
  int count(unsigned& devices) const;
  int handle(unsigned index, Device& device) const;

  /// Calls `symbol` with these arguments, if it is there.
  template <class... Parameters, class... Arguments>
  int call(Current& current, const char* symbol, int (*)(Parameters...), Arguments... arguments) const {
    auto* const function = library_.function<int(Parameters...)>(symbol);
    if (function == nullptr) return kFunctionNotFound;
    current.store(symbol, std::memory_order_relaxed);
    const int code = function(arguments...);
    current.store(nullptr, std::memory_order_relaxed);
    return code;
  }
  bool has(const char* symbol) const noexcept { return library_.address(symbol) != nullptr; }

 private:
  os::DynamicLibrary library_;
};

/// From when on the driver is asked what processes did, in microseconds of the wall clock: since the newest row that
/// was seen (`last_seen_us`; 0: none was), or for the last second when that lies in the future, as the clock was set
/// back (the driver would have nothing newer until the clock has caught up). Pure.
std::uint64_t ask_activity_since(std::uint64_t last_seen_us, std::uint64_t now_us) noexcept;

/// One GPU. One thread at a time; several GPUs may be asked concurrently. `library` must outlive it.
class Gpu {
 public:
  Gpu(const Library& library, unsigned index, Library::Current& current)
      : library_(&library), index_(index), current_(&current) {}

  /// Everything about it. The first call finds the handle; a device that cannot be had gives a sample with the code in
  /// all readings.
  GpuSample sample();

 private:
  bool open(GpuSample& sample);
  void identify();
  void read_memory(GpuSample& sample) const;
  void read_numbers(GpuSample& sample) const;
  void read_counters(GpuSample& sample) const;
  void read_fields(GpuSample& sample) const;
  void read_processes(GpuSample& sample) const;
  int read_list(GpuSample& sample, Device device, const char* const (&names)[3], std::uint32_t use) const;
  void read_activity(GpuSample& sample);
  void read_events(GpuSample& sample);
  void read_instances(GpuSample& sample);
  bool describe_instance(Device device, GpuInstance& instance) const;
  void read_gpm(GpuSample& sample);
  Reading gpm_share(GpuSample& sample, GpmSample first, GpmSample second, bool whole);
  bool has_gpm();
  GpmSample take_gpm(const GpuInstance* instance);

  const Library* library_;
  unsigned index_;
  Library::Current* current_;
  Device device_ = nullptr;
  std::string name_, uuid_, bus_;
  EventSet events_ = nullptr;
  std::vector<std::pair<Device, GpuInstance>> instances_;  ///< of MIG, in this sample
  std::optional<bool> gpm_;                                ///< whether the GPU has such counters
  std::map<std::uint32_t, GpmSample> gpm_last_;            ///< by GPU instance, or of the whole GPU: the last sample
  bool events_asked_ = false;
  std::uint64_t last_seen_us_ = 0;
};

/// How large the rows are that a driver wrote into `buffer`, which was filled with kSentinel before: it gave `count`
/// rows of 24 or 32 bytes. 0 when the bytes do not tell. Pure.
inline constexpr unsigned char kSentinel = 0xA5;
std::size_t row_size(const std::vector<unsigned char>& buffer, std::size_t count) noexcept;

/// Rows of `stride` bytes; those that cannot be of a process are counted as junk. `stride` is 16, 24 or 32. Pure.
void take_rows(GpuSample& sample, const std::vector<unsigned char>& buffer, std::size_t count, std::size_t stride,
               std::uint32_t use);

}  // namespace drover::inline v1::health::nvml
