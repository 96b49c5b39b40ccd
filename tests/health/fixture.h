// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "drover/health/scenario/scenario.h"
#include "drover/health/source.h"

namespace drover_test {

/// A folder with /proc, /sys and /etc of a machine, and the files that drive the false driver; removed at the end.
/// Writes only what has changed. One thread at a time.
class Machine {
 public:
  Machine();
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  const std::string& root() const { return root_; }
  void write(const std::string& path, std::string_view content);
  void link(const std::string& path, const std::string& target);
  void remove(const std::string& path);

  /// A plausible host: 4 cores of 2 threads in 2 sockets, 256 GiB, no pressure; its own pid namespace unless
  /// `container`.
  void write_host(bool container);
  /// Processes and CPU times of a situation at one time.
  void write_world(const drover::health::World& world);
  /// So that programs started from now on find the false driver with this situation. `variant`: "" or "old".
  void use_driver(const std::string& situation, const std::string& variant = {});
  void set_driver_time(double seconds) { write("/driver_clock", std::to_string(seconds)); }

 private:
  void write_log(const drover::health::World& world);
  void write_threads(const std::string& tasks, drover::health::ProcessBrief brief,
                     const std::vector<drover::health::ThreadSample>& threads);
  void write_process(const drover::health::World& world, const drover::health::Thing& process);

  std::string root_;
  std::map<std::string, std::string> written_;
  std::map<int, std::uint64_t> processes_;  ///< and when they began
};

/// What stands in /proc/PID/stat.
std::string stat_text(const drover::health::ProcessBrief& brief);

/// The real probes over a machine on which a situation is played, the driver's side by the false driver.
class PlayedMachine {
 public:
  PlayedMachine(const drover::health::Scenario& scenario, const std::string& text);
  drover::health::Source& source() { return *source_; }
  Machine& machine() { return machine_; }

 private:
  void advance(double seconds);

  const drover::health::Scenario scenario_;
  Machine machine_;
  double time_ = 0;
  std::unique_ptr<drover::health::Source> source_;
};

}  // namespace drover_test
