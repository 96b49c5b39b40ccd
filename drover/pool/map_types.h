// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "drover/pool/core.h"
#include "drover/pool/options.h"
#include "drover/wire/writer.h"

namespace drover::inline v1::detail {

/// A job slot, taken for as long as this lives.
class JobLease {
 public:
  JobLease(PoolCore& core, const JobParameters& parameters) : core_(core), job_(core.open_job(parameters)) {}
  ~JobLease() { core_.close_job(job_); }
  JobLease(const JobLease&) = delete;
  JobLease& operator=(const JobLease&) = delete;
  std::size_t number() const noexcept { return job_; }
  JobSlot& slot() const noexcept { return core_.header().jobs[job_]; }

 private:
  PoolCore& core_;
  const std::size_t job_;
};

/// Where a map's inputs come from when they are no index range.
class InputSource {
 public:
  virtual ~InputSource() = default;
  /// Encodes the next input; false when there is none. What the user's range throws comes through.
  virtual bool next(wire::Writer& writer) = 0;
};

struct MapSpec {
  JobParameters job;
  std::uint64_t count = 0;  ///< inputs of an index range
  MapOptions options;
  std::string name;  ///< of the function, for errors
};

/// One result as the consumer gets it.
struct MapItem {
  std::uint64_t index = 0;
  const std::byte* data = nullptr;
  std::size_t size = 0;
  std::uint64_t more = 0;  ///< so many items without a value follow it, with the next indices; the consumer counts down
  bool failed = false;     ///< there are no bytes; MapJob::error() has the reason
};

}  // namespace drover::inline v1::detail
