// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace drover::inline v1::detail {

/// Variables (NAME=value) for the workers of a pool, so that the threads that libraries start in them do not outnumber
/// the cores: each worker gets its share of `cores` as OMP_NUM_THREADS and the like. What the user has set stays. In a
/// worker, whose own limits came from here and not from the user, the share that a nested pool divides is the worker's.
std::vector<std::string> inner_thread_limits(const std::vector<std::string>& environment, std::size_t cores,
                                             std::size_t workers);

}  // namespace drover::inline v1::detail
