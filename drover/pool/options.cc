// SPDX-License-Identifier: Apache-2.0
#include "drover/pool/options.h"

#include <cmath>
#include <string>

#include "drover/base/errors.h"
#include "drover/shm/sleepers.h"

namespace drover::inline v1::detail {
namespace {

constexpr double kLongest = 1e9;  // seconds, some 30 years: fits every clock

void check_duration(const char* field, Duration duration) {
  if (std::isfinite(duration.count()) && duration.count() >= 0 && duration.count() <= kLongest) return;
  throw InvalidArgument(std::string("the option ") + field + " must be between 0 and 1e9 seconds, got " +
                        std::to_string(duration.count()));
}

void check_retries(std::size_t retries) {
  if (retries <= kMostRetries) return;
  throw InvalidArgument("the option retries is at most " + std::to_string(kMostRetries) + ", not " +
                        std::to_string(retries));
}

}  // namespace

void check_options(const PoolOptions& options) {
  check_duration("grace", options.grace);
  if (options.workers <= shm::WorkerMask::kMaxWorkers) return;
  throw InvalidArgument("a pool has at most " + std::to_string(shm::WorkerMask::kMaxWorkers) + " workers, not " +
                        std::to_string(options.workers));
}

void check_options(const MapOptions& options) {
  check_duration("timeout", options.timeout);
  check_retries(options.retries);
}

void check_options(const CallOptions& options) {
  check_duration("timeout", options.timeout);
  check_retries(options.retries);
}

}  // namespace drover::inline v1::detail
