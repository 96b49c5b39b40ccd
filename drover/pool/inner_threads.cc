// SPDX-License-Identifier: Apache-2.0
#include "drover/pool/inner_threads.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

namespace drover::inline v1::detail {
namespace {

constexpr std::string_view kLimits[] = {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"};
/// A worker's share of the cores, and which limits a pool has set to it: "4 OMP_NUM_THREADS MKL_NUM_THREADS ".
constexpr std::string_view kShare = "DROVER_THREADS";

std::optional<std::string_view> value_of(const std::vector<std::string>& environment, std::string_view name) {
  for (const std::string_view variable : environment) {
    if (variable.starts_with(name) && variable.substr(name.size()).starts_with('=')) {
      return variable.substr(name.size() + 1);
    }
  }
  return std::nullopt;
}

/// What the pool has set that this process is a worker of.
struct Given {
  std::string threads;
  std::string names;  ///< each followed by a blank
};

Given given_in(const std::vector<std::string>& environment) {
  const std::string_view text = value_of(environment, kShare).value_or("");
  const std::size_t blank = text.find(' ');
  if (blank == std::string_view::npos) return {};
  return {std::string(text.substr(0, blank)), std::string(text.substr(blank + 1))};
}

}  // namespace

std::vector<std::string> inner_thread_limits(const std::vector<std::string>& environment, std::size_t cores,
                                             std::size_t workers) {
  const Given given = given_in(environment);
  std::size_t share = cores;
  std::from_chars(given.threads.data(), given.threads.data() + given.threads.size(), share);
  const std::string threads = std::to_string(std::max<std::size_t>(1, std::min(share, cores) / workers));
  std::vector<std::string> result;
  std::string names;
  for (const std::string_view name : kLimits) {
    const auto value = value_of(environment, name);
    const bool ours = given.names.find(std::string(name) + " ") != std::string::npos && value == given.threads;
    if (value && !ours) continue;
    result.push_back(std::string(name) + "=" + threads);
    names += std::string(name) + " ";
  }
  result.push_back(std::string(kShare) + "=" + threads + " " + names);
  return result;
}

}  // namespace drover::inline v1::detail
