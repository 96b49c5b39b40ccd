// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "drover/health/scenario/scenario_gpu.h"
#include "fake_nvml/fake_nvml.h"

namespace fake_nvml {
namespace {

using drover::health::Thing;

std::string read_file(const char* path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

const char* environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

double seconds_now() {
  static const auto begin = std::chrono::steady_clock::now();
  const char* const clock = environment("DROVER_FAKE_NVML_CLOCK");
  if (*clock != '\0') return std::strtod(read_file(clock).c_str(), nullptr);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

bool in_list(const std::string& list, const std::string& name) {
  return ("," + list + ",").find("," + name + ",") != std::string::npos;
}

}  // namespace

Driver& Driver::instance() {
  static auto* const driver = new Driver;  // threads may still use it when the process ends
  return *driver;
}

Driver::Driver() : scenario_(drover::health::Scenario::parse("fake", read_file(environment("DROVER_FAKE_NVML")))) {
  seconds_now();
}

const drover::health::World& Driver::world() {
  const double now = seconds_now();
  if (world_at_ < 0 || now > world_at_ + 0.02 || now < world_at_) {
    world_ = scenario_.at(now);
    world_at_ = now;
  }
  return world_;
}

int Driver::enter(const char* function, int gpu) {
  const std::string name = function;
  double delay = 0;
  bool hang = false;
  int code = 0;
  {
    const std::lock_guard lock(mutex_);
    const int calls = ++calls_[name];
    const Thing* const host = world().find("host", 0);
    if (host != nullptr) {
      if (in_list(host->text("missing"), name)) return 13;
      delay = host->number("delay." + name);
      hang = host->text("hang") == name;
      if (calls >= host->number("from." + name)) code = static_cast<int>(host->number("error." + name));
    }
    const Thing* const device = gpu >= 0 ? world_.find("gpu", gpu) : nullptr;
    hang = hang || (device != nullptr && device->text("stuck") == name);
  }
  while (hang) pause();
  if (delay > 0) usleep(static_cast<useconds_t>(delay * 1e6));
  return code;
}

drover::health::GpuSample Driver::gpu(int index) {
  const std::lock_guard lock(mutex_);
  Thing thing = *world().find("gpu", index);
  thing.values.erase("stuck");  // the fake itself hangs
  return drover::health::gpu_of(world_, thing);
}

std::size_t Driver::count() {
  const std::lock_guard lock(mutex_);
  const auto gpus = world().all("gpu");  // other vendors' come behind
  return static_cast<std::size_t>(
      std::count_if(gpus.begin(), gpus.end(), [](const Thing* gpu) { return drover::health::is_nvidia(*gpu); }));
}

double Driver::gpu_number(int index, const std::string& key) {
  const std::lock_guard lock(mutex_);
  const Thing* const gpu = world().find("gpu", index);
  return gpu != nullptr ? gpu->number(key) : 0;
}

double Driver::host(const std::string& key, double otherwise) {
  const std::lock_guard lock(mutex_);
  const Thing* const host = world().find("host", 0);
  return host != nullptr ? host->number(key, otherwise) : otherwise;
}

bool Driver::take_xid(int index, std::uint64_t& xid) {
  const std::lock_guard lock(mutex_);
  const Thing* const gpu = world().find("gpu", index);
  if (gpu == nullptr || !gpu->has("xid")) return false;
  xid = static_cast<std::uint64_t>(gpu->number("xid"));
  if (xids_[index] == xid) return false;
  xids_[index] = xid;
  return true;
}

}  // namespace fake_nvml
