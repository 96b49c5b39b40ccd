// SPDX-License-Identifier: Apache-2.0
#include "drover/health/drm/device.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "drover/health/drm/fdinfo.h"
#include "drover/os/file_system.h"
#include "drover/os/host_files.h"

namespace drover::inline v1::health::drm {
namespace {

std::string first_line(const os::HostFolder& folder, const char* name) {
  const std::string text = folder.text(name, 4096).value_or(std::string());
  return text.substr(0, text.find('\n'));
}

/// KEY=VALUE of a uevent file.
std::string property(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = os::take_line(text);
    if (line.size() > key.size() && line.substr(0, key.size()) == key && line[key.size()] == '=')
      return std::string(line.substr(key.size() + 1));
  }
  return {};
}

/// The marketing name, if the list of PCI's names is installed.
std::string name_in_list(const std::string& root, const std::string& vendor, const std::string& device) {
  std::optional<std::string> text;
  for (const char* const path : {"/usr/share/misc/pci.ids", "/usr/share/hwdata/pci.ids"}) {
    if (!text) text = os::read_small_file(root + path, 8U << 20U);
  }
  std::string_view rest = text ? std::string_view(*text) : std::string_view();
  bool inside = false;
  while (!rest.empty()) {
    const std::string_view line = os::take_line(rest);
    if (line.empty() || line.front() == '#') continue;
    if (line.front() != '\t') {
      if (inside) break;
      inside = line.substr(0, 4) == vendor;
    } else if (inside && line.size() > 7 && line[1] != '\t' && line.substr(1, 4) == device) {
      return std::string(line.substr(7));
    }
  }
  return {};
}

bool is_slot(const std::string& text) {
  return !text.empty() && text.size() <= 32 && text.find_first_not_of("0123456789abcdef:.") == text.npos;
}

/// Firmware without a number of its own gives zeros.
bool is_unique_id(const std::string& text) {
  return text.size() <= 32 && text.find_first_not_of("0123456789abcdef") == text.npos &&
         text.find_first_not_of('0') != text.npos;
}

std::string hwmon_of(const std::string& pci) {
  const std::string folder = pci + "/hwmon";
  for (const std::string& name : os::HostFolder(folder).names(64).value_or(std::vector<std::string>())) {
    if (name.substr(0, 5) == "hwmon") return std::string(folder).append("/").append(name);
  }
  return {};
}

std::optional<std::uint64_t> number_at(const std::string& path) {
  const auto text = os::read_small_file(path, 64);
  return text ? os::parse_number(*text) : std::nullopt;
}

/// xe tells it by tile; i915 of some kernels for the card.
std::optional<std::uint64_t> intel_memory(const Device& device) {
  std::optional<std::uint64_t> sum;
  for (int tile = 0; tile < 8; ++tile) {
    const auto bytes = number_at(device.pci + "/tile" + std::to_string(tile) + "/physical_vram_size_bytes");
    if (!bytes) break;
    sum = sum.value_or(0) + *bytes;
  }
  return sum ? sum : number_at(device.card + "/lmem_total_bytes");
}

void describe(Device& device, const std::string& root, const os::HostFolder& pci) {
  const bool amd = device.vendor == "amd";
  const std::string id = first_line(pci, "device");
  const std::string number = id.size() == 6 ? id.substr(2) : id;
  device.hwmon = hwmon_of(device.pci);
  device.name = first_line(pci, "product_name");
  if (device.name.empty()) device.name = name_in_list(root, amd ? "1002" : "8086", number);
  if (device.name.empty()) device.name = (amd ? "AMD GPU " : "Intel GPU ") + number;
  const std::string unique = amd ? first_line(pci, "unique_id") : std::string();
  device.uuid = is_unique_id(unique) ? "AMD-" + unique : "PCI-" + device.slot;
  device.integrated = !amd && !intel_memory(device) && device.slot.ends_with(":00:02.0");
}

}  // namespace

void Device::identify(GpuSample& gpu) const {
  gpu.vendor = vendor;
  gpu.name = name;
  gpu.uuid = uuid;
  gpu.bus = slot;
}

std::vector<Device> find_devices(const std::string& root) {
  std::map<std::string, Device> found;  // by slot: partitions of one GPU are several cards
  const std::string all = root + "/sys/class/drm/";
  auto names = os::HostFolder(all).names().value_or(std::vector<std::string>());
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    if (node_of("/dev/dri/" + name).empty()) continue;  // connectors: card0-DP-1
    const std::string folder = all + name + "/device";
    const os::HostFolder pci(folder);
    const std::string vendor = first_line(pci, "vendor");
    const std::string text = pci.text("uevent", 4096).value_or(std::string());
    const std::string slot = property(text, "PCI_SLOT_NAME");
    if ((vendor != "0x1002" && vendor != "0x8086") || !is_slot(slot)) continue;
    Device& device = found[slot];
    device.nodes.push_back(name);
    if (name[0] == 'r') device.minor = static_cast<int>(os::parse_number(name.substr(7)).value_or(0));
    if (name[0] != 'c' || !device.card.empty()) continue;
    device.slot = slot;
    device.vendor = vendor == "0x1002" ? "amd" : "intel";
    device.driver = property(text, "DRIVER");
    device.card = all + name;
    device.pci = folder;
    describe(device, root, pci);
  }
  std::vector<Device> devices;
  std::set<std::string> uuids;
  for (auto& [slot, device] : found) {
    if (device.card.empty()) continue;
    if (!uuids.insert(device.uuid).second) device.uuid = "PCI-" + slot;  // what is kept about a GPU is kept by it
    devices.push_back(std::move(device));
  }
  return devices;
}

bool asleep(const Device& device) {
  const std::string status = os::read_small_file(device.pci + "/power/runtime_status", 64).value_or(std::string());
  return status.substr(0, 7) == "suspend";  // suspended, suspending
}

namespace {

/// A number of a file, divided; why there is none is told.
Reading number_of(const os::HostFolder& folder, const char* name, std::uint64_t divisor = 1) {
  std::string text;
  const os::Access access = folder.read(name, text, 64);
  if (access == os::Access::kDenied) return {Reading::kNoPermission, 0};
  if (access != os::Access::kOk) return {Reading::kNotSupported, 0};
  const auto value = os::parse_number(text);
  return value ? Reading{Reading::kOk, *value / divisor} : Reading{Reading::kNoValue, 0};
}

/// The first of several names that there is: they differ by model and kernel.
Reading first_of(const os::HostFolder& folder, std::initializer_list<const char*> names, std::uint64_t divisor = 1) {
  Reading result{Reading::kNotSupported, 0};
  for (const char* const name : names) {
    const Reading one = number_of(folder, name, divisor);
    if (one.ok()) return one;
    if (one.code != Reading::kNotSupported) result = one;
  }
  return result;
}

/// More than can be is what a sensor says that is broken.
Reading up_to(std::uint64_t most, const Reading& value) {
  return value.ok() && value.value > most ? Reading{Reading::kNoValue, 0} : value;
}

/// Uncorrected errors of the memory, from "ue: 0\nce: 12\n".
Reading memory_errors(const os::HostFolder& pci) {
  std::string text;
  const os::Access access = pci.read("ras/umc_err_count", text, 256);
  if (access == os::Access::kDenied) return {Reading::kNoPermission, 0};
  const auto count = os::keyed_number(text, "ue:");
  return count ? Reading{Reading::kOk, *count} : Reading{Reading::kNotSupported, 0};
}

void read_amd(const Device& device, GpuSample& gpu) {
  const os::HostFolder pci(device.pci);
  const Reading total = number_of(pci, "mem_info_vram_total"), used = number_of(pci, "mem_info_vram_used");
  gpu[Metric::kMemoryTotal] = total;
  gpu[Metric::kMemoryUsed] = total.ok() && used.ok() && used.value > total.value ? Reading{Reading::kNoValue, 0} : used;
  gpu[Metric::kUtilCores] = up_to(100, number_of(pci, "gpu_busy_percent"));
  gpu[Metric::kUtilMemory] = up_to(100, number_of(pci, "mem_busy_percent"));
  gpu[Metric::kEccUncorrected] = memory_errors(pci);
}

void read_intel(const Device& device, GpuSample& gpu) {
  const int code = device.integrated ? static_cast<int>(Reading::kMachineMemory) : Reading::kNotSupported;
  gpu[Metric::kMemoryTotal] = gpu[Metric::kMemoryUsed] = {code, 0};
  if (const auto total = intel_memory(device)) gpu[Metric::kMemoryTotal] = {Reading::kOk, *total};
  gpu[Metric::kClockCoresMhz] = first_of(
      os::HostFolder(device.card), {"gt/gt0/rps_act_freq_mhz", "gt_act_freq_mhz", "device/tile0/gt0/freq0/act_freq"});
}

}  // namespace

void read_numbers(const Device& device, GpuSample& gpu) {
  gpu.readings.fill({Reading::kNotSupported, 0});
  if (device.minor >= 0) gpu[Metric::kMinor] = {Reading::kOk, static_cast<std::uint64_t>(device.minor)};
  if (!device.hwmon.empty()) {  // microwatts, microjoules, millidegrees, hertz
    const os::HostFolder hwmon(device.hwmon);
    gpu[Metric::kPowerMilliwatts] = up_to(kMostMilliwatts, first_of(hwmon, {"power1_average", "power1_input"}, 1000));
    gpu[Metric::kPowerLimitMilliwatts] = up_to(kMostMilliwatts, first_of(hwmon, {"power1_cap", "power1_max"}, 1000));
    gpu[Metric::kEnergyMillijoules] = first_of(hwmon, {"energy1_input", "energy2_input"}, 1000);
    gpu[Metric::kTemperature] = up_to(kMostDegrees, first_of(hwmon, {"temp1_input", "temp2_input"}, 1000));
    gpu[Metric::kClockCoresMhz] = number_of(hwmon, "freq1_input", 1'000'000);
    gpu[Metric::kClockMemoryMhz] = number_of(hwmon, "freq2_input", 1'000'000);
  }
  if (device.vendor == "amd") {
    read_amd(device, gpu);
  } else {
    read_intel(device, gpu);
  }
}

}  // namespace drover::inline v1::health::drm
