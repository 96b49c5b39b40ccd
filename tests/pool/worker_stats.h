// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>

#include "drover/pool/pool.h"

namespace drover_test {

inline std::size_t total_restarts(const drover::Pool& pool) {
  std::size_t sum = 0;
  for (const auto& worker : pool.stats().workers) sum += worker.restarts;
  return sum;
}

inline bool all_ready(const drover::Pool& pool) {
  const auto workers = pool.stats().workers;
  return std::all_of(workers.begin(), workers.end(), [](const auto& worker) { return worker.ready; });
}

}  // namespace drover_test
