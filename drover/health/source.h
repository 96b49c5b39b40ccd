// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "drover/base/duration.h"
#include "drover/health/report.h"
#include "drover/health/sample.h"

namespace drover::inline v1::health {

/// Where samples come from: this machine, or a situation that is played. One thread at a time.
class Source {
 public:
  virtual ~Source() = default;

  /// Seconds since boot, those included in which the machine was suspended.
  virtual double now() = 0;
  /// Comes back at `until` (of now()).
  virtual void wait(double until) = 0;
  /// One look. `watched`: processes to describe beside those on GPUs; `threads`: looks at their threads too.
  virtual Sample sample(const std::set<int>& watched, bool threads) = 0;
  /// Who has GPU device files open, among the processes of `sample`; those are described there too.
  virtual HolderScan holders(Sample& sample) = 0;
  /// Fills in the details of these, where they are missing.
  virtual void describe_processes(Sample& sample, const std::set<int>& pids) = 0;
  /// Whether the process exists, whatever /proc shows.
  virtual bool exists(int pid) = 0;

  /// What the report says about the machine, beside what rules say; `first` and `last` are `seconds` apart.
  virtual void describe(Report& report, const Sample& first, const Sample& last, double seconds) = 0;
  virtual std::string user(std::uint32_t uid) = 0;
  /// Changes with each boot.
  virtual std::string boot() = 0;
  /// Whether pids are not the machine's own.
  virtual bool container() = 0;
};

struct SystemSourceOptions {
  std::string root = {};
  Duration deadline{5};
  bool wake = false;
  // For tests that play time; empty: the machine's.
  std::function<double()> now = {};
  std::function<void(double)> wait = {};
  std::function<bool(int)> exists = {};
};
std::unique_ptr<Source> system_source(const SystemSourceOptions& options);

}  // namespace drover::inline v1::health
