// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drover/health/sample.h"
#include "drover/os/kernel_log.h"

namespace drover::inline v1::health {

/// A record of the kernel's log in which NVIDIA's driver tells an Xid: "6,123,4567890,-;NVRM: Xid (PCI:0000:3b:00): 79,
/// pid=1234, name=python, GPU has fallen off the bus." nullopt for anything else, also for what a program wrote into
/// the log. Pure, takes any bytes.
std::optional<LoggedXid> parse_xid_record(std::string_view line);

/// Whether two addresses of PCI are the same device, however they are written: "0000:3b:00", "00000000:3B:00.0". Pure.
bool same_bus(std::string_view a, std::string_view b);

/// Xids of the kernel's log since boot. One thread at a time.
class XidLog {
 public:
  /// `root` goes before /dev/kmsg. Nothing is read yet.
  explicit XidLog(std::string root) : path_(std::move(root) + "/dev/kmsg") {}

  /// Reads what is new, and gives all that came so far to the GPUs of `driver` by their bus; those of GPUs that the
  /// driver does not list go to `driver.logged_elsewhere`. Why it could not is in `driver.log_problem`. `suspended`: by
  /// how much the log's clock, which stops while the machine is suspended, is behind that of the samples.
  void fill(DriverSample& driver, double suspended = 0);

 private:
  const std::string path_;
  std::optional<os::KernelLog> log_;
  std::string text_;
  std::vector<LoggedXid> seen_;
};

}  // namespace drover::inline v1::health
