// SPDX-License-Identifier: Apache-2.0
#include "health/drm_tree.h"

#include "drover/health/scenario/scenario_gpu.h"

namespace drover_test {
using namespace drover::health;

void write_card(Machine& machine, const Card& card) {
  const std::string pci = "/sys/devices/pci0000:00/" + card.slot, number = std::to_string(card.number);
  machine.write(pci + "/vendor", card.vendor + "\n");
  machine.write(pci + "/device", card.device + "\n");
  machine.write(pci + "/uevent", "DRIVER=" + card.driver + "\nPCI_CLASS=30000\nPCI_SLOT_NAME=" + card.slot + "\n");
  machine.write(pci + "/power/runtime_status", card.runtime + "\n");
  for (const auto& [name, content] : card.files) machine.write(pci + "/" + name, content);
  for (const std::string& node : {"card" + number, "renderD" + std::to_string(128 + card.number)}) {
    machine.write("/sys/class/drm/" + node + "/dev", "226:0\n");
    machine.link("/sys/class/drm/" + node + "/device", machine.root() + pci);
  }
  machine.write("/sys/class/drm/card" + number + "-DP-1/status", "connected\n");
  machine.write("/sys/class/drm/version", "drm 1.1.0 20060810\n");
}

void write_kfd_node(Machine& machine, int node, unsigned id, unsigned location, unsigned compute_units) {
  const std::string nodes = "/sys/class/kfd/kfd/topology/nodes/";
  machine.write(nodes + "0/gpu_id", "0\n");
  machine.write(nodes + "0/properties", "cpu_cores_count 64\nsimd_count 0\nlocation_id 0\ndomain 0\n");
  machine.write(nodes + std::to_string(node) + "/gpu_id", std::to_string(id) + "\n");
  machine.write(nodes + std::to_string(node) + "/properties",
                "cpu_cores_count 0\nsimd_count " + std::to_string(4 * compute_units) + "\nsimd_per_cu 4\nlocation_id " +
                    std::to_string(location) + "\ndomain 0\ndrm_render_minor 128\n");
}

void write_kfd_process(Machine& machine, int pid, unsigned id, unsigned long long vram, unsigned long long copy_us,
                       int occupancy) {
  const std::string folder = "/sys/class/kfd/kfd/proc/" + std::to_string(pid) + "/", gpu = std::to_string(id);
  machine.write(folder + "pasid", "0\n");
  machine.write(folder + "vram_" + gpu, std::to_string(vram) + "\n");
  machine.write(folder + "sdma_" + gpu, std::to_string(copy_us) + "\n");
  if (occupancy >= 0) machine.write(folder + "stats_" + gpu + "/cu_occupancy", std::to_string(occupancy) + "\n");
}

void write_descriptor(Machine& machine, int pid, int number, const std::string& path, const std::string& info) {
  const std::string folder = "/proc/" + std::to_string(pid);
  machine.link(folder + "/fd/" + std::to_string(number), path);
  machine.write(folder + "/fdinfo/" + std::to_string(number), info);
}

namespace {

std::string whole(double value) { return std::to_string(static_cast<unsigned long long>(value)); }

constexpr double kGiB = 1024.0 * 1024 * 1024;

void write_amd(Machine& machine, const World& world, const Thing& gpu) {
  const GpuSample sample = gpu_of(world, gpu);
  const auto value = [&](Metric metric) { return sample[metric].value; };
  const std::string hwmon = "hwmon/hwmon" + std::to_string(gpu.id) + "/";
  Card card;
  card.number = gpu.id;
  card.slot = slot_of(gpu);
  card.runtime = gpu.text("runtime", "active");
  card.files = {{"product_name", sample.name + "\n"},
                {"unique_id", sample.uuid.substr(4) + "\n"},
                {"mem_info_vram_total", std::to_string(value(Metric::kMemoryTotal)) + "\n"},
                {"mem_info_vram_used", std::to_string(value(Metric::kMemoryUsed)) + "\n"},
                {"gpu_busy_percent", std::to_string(value(Metric::kUtilCores)) + "\n"},
                {"mem_busy_percent", std::to_string(value(Metric::kUtilMemory)) + "\n"},
                {hwmon + "power1_average", std::to_string(1000 * value(Metric::kPowerMilliwatts)) + "\n"},
                {hwmon + "power1_cap", std::to_string(1000 * value(Metric::kPowerLimitMilliwatts)) + "\n"}};
  write_card(machine, card);
  write_kfd_node(machine, gpu.id + 1, 1000U + static_cast<unsigned>(gpu.id), static_cast<unsigned>(gpu.id + 1) << 8U,
                 100);
}

void write_intel(Machine& machine, const Thing& gpu) {
  Card card;
  card.number = gpu.id;
  card.slot = slot_of(gpu);
  card.vendor = "0x8086";
  card.device = "0x56a0";
  card.driver = gpu.number("integrated") != 0 ? "i915" : "xe";
  card.runtime = gpu.text("runtime", "active");
  if (gpu.number("integrated") == 0)
    card.files["tile0/physical_vram_size_bytes"] = whole(gpu.number("total", 64) * kGiB) + "\n";
  write_card(machine, card);
}

std::string info_of(const World& world, const Thing& gpu, const Thing& on) {
  const auto sum = on.sums.find("sm");
  const double seconds = sum == on.sums.end() || on.number("kfd") != 0 ? 0 : 0.01 * sum->second;
  const bool integrated = gpu.number("integrated") != 0;
  const std::string kib = whole(on.number("vram") * kGiB / 1024) + " KiB\n";
  std::string text =
      "pos:\t0\nflags:\t02100002\ndrm-pdev:\t" + slot_of(gpu) + "\ndrm-client-id:\t" + std::to_string(on.other) + "\n";
  if (gpu.text("vendor") == "amd") {
    text += "drm-driver:\tamdgpu\ndrm-memory-vram:\t" + kib + "drm-memory-gtt:\t8 KiB\ndrm-resident-vram:\t" + kib;
    if (seconds > 0) text += "drm-engine-gfx:\t" + whole(1e9 * seconds) + " ns\n";
  } else if (integrated) {
    text += "drm-driver:\ti915\ndrm-resident-system0:\t" + kib + "drm-engine-render:\t" + whole(1e9 * seconds) +
            " ns\ndrm-engine-video:\t0 ns\ndrm-engine-capacity-video:\t2\n";
  } else {  // a clock of 19.2 MHz
    text += "drm-driver:\txe\ndrm-total-vram0:\t" + kib + "drm-resident-vram0:\t" + kib + "drm-cycles-ccs:\t" +
            whole(19.2e6 * seconds) + "\ndrm-total-cycles-ccs:\t" + whole(19.2e6 * (1000 + world.at)) +
            "\ndrm-cycles-bcs:\t0\ndrm-total-cycles-bcs:\t" + whole(19.2e6 * (1000 + world.at)) + "\n";
  }
  return text;
}

void write_use(Machine& machine, const World& world, const Thing& gpu, const Thing& on) {
  const auto id = 1000U + static_cast<unsigned>(gpu.id);
  const std::string pid = std::to_string(on.other), fd = std::to_string(40 + gpu.id);
  if (on.number("ended") != 0) {
    for (const char* const folder : {"/fd/", "/fdinfo/"}) machine.remove("/proc/" + pid + folder + fd);
    machine.remove("/sys/class/kfd/kfd/proc/" + pid);
    return;
  }
  if (on.number("kfd") != 0) {
    const int units = on.has("occupancy") ? static_cast<int>(on.number("occupancy")) : -1;
    write_kfd_process(machine, on.other, id, static_cast<unsigned long long>(on.number("vram") * kGiB), 0, units);
  }
  const Thing* const process = world.find("proc", on.other);
  const bool open = process != nullptr && process->number("ended") == 0 && process->text("state", "S") != "Z";
  if (!open || on.number("foreign") != 0) return;
  write_descriptor(machine, on.other, 40 + gpu.id, "/dev/dri/renderD" + std::to_string(128 + gpu.id),
                   info_of(world, gpu, on));
}

}  // namespace

void write_drm_world(Machine& machine, const World& world) {
  for (const Thing* const gpu : world.all("gpu")) {
    if (is_nvidia(*gpu)) continue;
    if (gpu->text("vendor") == "amd") {
      write_amd(machine, world, *gpu);
    } else {
      write_intel(machine, *gpu);
    }
    for (const Thing* const on : world.all("on")) {
      if (on->id == gpu->id) write_use(machine, world, *gpu, *on);
    }
  }
}

}  // namespace drover_test
