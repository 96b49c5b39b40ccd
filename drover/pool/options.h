// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "drover/base/count.h"
#include "drover/base/duration.h"
#include "drover/pool/bound_call.h"
#include "drover/worker/child.h"

namespace drover::inline v1 {

/// How a pool is made. Fields may be added at the end.
struct PoolOptions {
  Count workers = 0;  ///< processes; 0: the cores this program may really use (affinity, cgroup quota, Slurm)
  Output output = Output::kForward;
  BoundCall initializer = {};    ///< runs in each worker before its first task: `.initializer = drover::call<setup>(x)`
  Duration grace = Duration(2);  ///< how long the destructor waits for running tasks before it kills their workers
};

/// How a map runs. Fields may be added at the end.
struct MapOptions {
  bool ordered = true;  ///< results in the order of the inputs; false: each as soon as it is there
  Count chunk = 0;      ///< inputs a worker takes at once; 0: from the measured time of a task
  Count window = 0;     ///< inputs taken from the range and not yet delivered, at most (and at most some thousands, as
                        ///< many as find room in a ring); 0: as many as the workers need
  Duration timeout =
      Duration(0);  ///< the longest one item may take, else its worker is killed and it fails; 0: for ever
  Count retries =
      0;  ///< times an item runs again when its worker died (or it took too long) before it fails; at most kMostRetries
};

/// Options of one submit: `pool.with({.retries = 2}).submit<f>(x)`. Fields may be added at the end.
struct CallOptions {
  Count retries = 0;               ///< as in MapOptions
  Duration timeout = Duration(0);  ///< as in MapOptions
};

/// The largest `retries` of any options.
inline constexpr std::size_t kMostRetries = 10'000;

namespace detail {

/// Throw InvalidArgument, naming the field.
void check_options(const PoolOptions& options);
void check_options(const MapOptions& options);
void check_options(const CallOptions& options);

}  // namespace detail
}  // namespace drover::inline v1
