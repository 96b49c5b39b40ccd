// SPDX-License-Identifier: Apache-2.0
#include "drover/pool/pool_facts.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <span>
#include <vector>

#include "drover/os/shared_file.h"
#include "drover/pool/layout.h"

namespace drover::inline v1::detail {
namespace {

template <class T>
T value_at(std::span<const std::byte> bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, &bytes[offset], sizeof value);
  return value;
}

}  // namespace

std::optional<PoolFacts> read_pool_facts(const os::Fd& segment) {
  std::vector<std::byte> header(sizeof(PoolHeader));
  if (os::read_at(segment, 0, header) != header.size()) return std::nullopt;
  const auto launch = value_at<worker::LaunchPage>(header, offsetof(PoolHeader, launch));
  const auto workers = value_at<std::uint32_t>(header, offsetof(PoolHeader, worker_count));
  if (launch.magic != worker::LaunchPage::kMagic || launch.version != worker::LaunchPage::kVersion) return std::nullopt;
  if (workers == 0 || workers > shm::WorkerMask::kMaxWorkers) return std::nullopt;
  PoolFacts facts{.workers = workers};
  for (std::size_t slot = 0; slot < workers; ++slot) {
    const std::size_t offset = offsetof(PoolHeader, workers) + slot * sizeof(WorkerSlot) + offsetof(WorkerSlot, tasks);
    facts.tasks += value_at<std::uint64_t>(header, offset);
  }
  const std::chrono::nanoseconds created(value_at<std::int64_t>(header, offsetof(PoolHeader, created_ns)));
  const std::chrono::nanoseconds now = std::chrono::steady_clock::now().time_since_epoch();
  const auto age = now - std::clamp(created, std::chrono::nanoseconds(0), now);
  facts.age = std::chrono::duration<double>(age).count();
  return facts;
}

}  // namespace drover::inline v1::detail
