// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "drover/health/nvml/abi.h"
#include "drover/health/sample.h"
#include "drover/health/scenario/scenario.h"

/// A driver library that plays a situation (drover/health/scenario), loaded by the unchanged program as
/// libnvidia-ml.so.1. Environment: DROVER_FAKE_NVML names the file with the situation, DROVER_FAKE_NVML_CLOCK a file
/// with the time in seconds; without it the time since the library was loaded.
///
/// How it misbehaves is written in the situation, on the line "host":
///   init=CODE               what nvmlInit_v2 answers
///   missing=NAME,NAME       functions that answer "no such function"
///   error.NAME=CODE         what a function answers from now on; with from.NAME=N only from its N-th call on
///   delay.NAME=SECONDS      a function takes so long
///   hang=NAME               a function never comes back (`stuck=NAME` on a gpu line: for that GPU only)
///   row=16|24|32            bytes of a row of the newest process lists
///   zeroes=1                the driver clears the whole list before it writes rows
///   constant=N              lists always have N rows, the rest is junk
///   mig_lists=1             a divided GPU lists nobody, its parts list their own
namespace fake_nvml {

class Driver {
 public:
  static Driver& instance();

  /// What happens before a function answers: counts, waits, hangs. The code to answer with, 0: go on.
  int enter(const char* function, int gpu = -1);

  /// The GPU as the situation has it now; `index` is known to exist.
  drover::health::GpuSample gpu(int index);
  std::size_t count();
  double gpu_number(int index, const std::string& key);
  double host(const std::string& key, double otherwise = 0);
  /// Whether the Xid that the situation shows now was not given out before.
  bool take_xid(int index, std::uint64_t& xid);

 private:
  Driver();
  const drover::health::World& world();  ///< under mutex_

  std::mutex mutex_;
  drover::health::Scenario scenario_;
  drover::health::World world_;
  double world_at_ = -1;
  std::map<std::string, int> calls_;
  std::map<int, std::uint64_t> xids_;
};

}  // namespace fake_nvml
