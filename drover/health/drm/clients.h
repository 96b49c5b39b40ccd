// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "drover/health/drm/device.h"
#include "drover/health/drm/fdinfo.h"
#include "drover/health/drm/progress.h"
#include "drover/health/sample.h"
#include "drover/os/host_files.h"

namespace drover::inline v1::health::drm {

/// A client, and who has it open.
struct OwnedClient {
  int pid = 0;  ///< of several the one that lives longest, as the others got it from there
  std::uint64_t start_ticks = 0;
  std::size_t device = 0;  ///< index
  Client client;
};

struct ClientList {
  std::vector<OwnedClient> clients;  ///< each once
  int unreadable = 0;                ///< processes whose descriptors may not be looked at
};

/// Finds the clients of GPUs among all descriptors of all processes. Looking at all of them is dear, so a process that
/// had none, and has not run since, is looked at only now and then. One thread at a time.
class ClientScan {
 public:
  explicit ClientScan(const std::string& root) : proc_(root + "/proc") {}

  /// `closed`: devices that must not be asked, by index. `at`: seconds since boot.
  ClientList look(const std::vector<ProcessBrief>& processes, double at, const std::vector<Device>& devices,
                  const std::vector<bool>& closed, Progress& progress);

 private:
  using Key = std::pair<int, std::uint64_t>;  // pid and start time
  struct Known {
    std::uint64_t cpu_ticks = 0;
    double looked = -1;
    bool holds = false, unreadable = false;
    bool there = false;  // in this look
  };
  bool worth_looking(const Known& known, const ProcessBrief& process, double at) const;
  void look_at(const ProcessBrief& process, Known& known, const std::vector<Device>& devices,
               const std::vector<bool>& closed, Progress& progress);
  void take(const ProcessBrief& process, std::size_t device, Client client);

  os::HostFolder proc_;
  std::string text_;  // read buffer
  std::map<Key, Known> known_;
  std::map<std::pair<std::size_t, std::uint64_t>, OwnedClient> found_;  // by device and client
};

}  // namespace drover::inline v1::health::drm
