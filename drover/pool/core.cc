// SPDX-License-Identifier: Apache-2.0
#include "drover/pool/core.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "drover/base/errors.h"
#include "drover/os/cpu.h"
#include "drover/os/signals.h"
#include "drover/pool/map_job.h"
#include "drover/worker/init.h"

namespace drover::inline v1::detail {
namespace {

constexpr std::size_t kDeathsRemembered = 4096;
// A wake-up across cores was measured at 24-30 µs (docs/design/001); spinning pays only when it outlasts one.
constexpr std::uint32_t kSpinNs = 30'000;

void write_options(PoolSegment& segment, const PoolOptions& options) {
  check_options(options);
  PoolHeader& header = segment.header();
  header.cores = static_cast<std::uint32_t>(os::usable_cpus());
  const std::size_t workers = options.workers != 0 ? std::size_t{options.workers} : header.cores;
  header.worker_count = static_cast<std::uint32_t>(workers);
  header.spin_ns = header.cores > 1 ? kSpinNs : 0;
  if (!options.initializer) return;
  header.initializer = options.initializer.function() + 1;
  header.initializer_length = options.initializer.arguments().size();
  header.initializer_offset = segment.store(options.initializer.arguments());
}

std::uint32_t lane_capacity(std::uint32_t stride, std::size_t lanes) noexcept {
  const std::uint32_t all = stride == sizeof(InputEntry) ? PoolCore::kInputCapacity : PoolCore::kIndexCapacity;
  return all / std::bit_ceil(static_cast<std::uint32_t>(lanes));
}

}  // namespace

PoolCore::PoolCore(const PoolOptions& options)
    : service_([] {
        worker::require_init("a Pool");
        return worker::Service::shared();
      }()),
      grace_(options.grace),
      crew_((write_options(segment_, options), service_), segment_, options, *this),
      submits_(*this) {
  submits_.open();
  service_->call([this] { interrupt_key_ = service_->on_interrupt([this] { interrupted(); }); });
  try {
    crew_.start();
  } catch (...) {
    close();
    throw;
  }
}

PoolCore::~PoolCore() { close(); }

void PoolCore::close() noexcept {
  {
    const std::scoped_lock lock(mutex_);
    if (std::exchange(closed_, true)) return;
    if (!reason_) reason_ = std::make_exception_ptr(Cancelled("the pool is gone"));
    failed_ = true;
  }
  tell_news();
  release_producers();
  crew_.stop(grace_);
  submits_.cancel_all();
  tell_news();
  service_->call([this] { service_->remove_on_interrupt(interrupt_key_); });
}

/// Workers that wait for room in a ring must not wait for a caller who is closing the pool.
void PoolCore::release_producers() noexcept {
  for (std::size_t job = 1; job < kMaxJobs; ++job) {
    JobSlot& slot = header().jobs[job];
    slot.closed.store(1, std::memory_order_seq_cst);
    if (slot.generation.load(std::memory_order_acquire) == 0) continue;
    const std::uint64_t stride = sizeof(shm::RingHeader) + slot.rings.capacity;
    std::byte* const rings = segment_.map(slot.rings.offset, os::round_to_page(stride * crew_.size()));
    for (std::size_t i = 0; i < crew_.size(); ++i) {
      auto* const ring = reinterpret_cast<shm::RingHeader*>(rings + stride * i);
      shm::RingConsumer(ring, rings, slot.rings.capacity, 0).nudge();
    }
  }
}

void PoolCore::check_usable() const {
  if (const int signal = os::pending_interrupt()) throw Interrupted(signal);
  if (!failed_.load(std::memory_order_acquire)) return;
  const std::scoped_lock lock(mutex_);
  std::rethrow_exception(reason_);
}

std::exception_ptr PoolCore::death_error(std::uint32_t incarnation, const std::string& task) const {
  const std::scoped_lock lock(mutex_);
  const auto found = std::find_if(dead_.rbegin(), dead_.rend(),
                                  [&](const WorkerDeath& death) { return death.incarnation == incarnation; });
  if (found != dead_.rend()) return found->error(task);
  return std::make_exception_ptr(
      WorkerLost("a worker was lost with " + task + "; how is no longer known", 0, -1, 0, false));
}

std::size_t PoolCore::choose_slot(std::uint32_t stride) const {
  std::size_t unused = kMaxJobs, other = kMaxJobs;
  for (std::size_t job = 1; job < kMaxJobs; ++job) {
    if ((jobs_in_use_ >> job & 1) != 0) continue;
    const std::uint32_t has = segment_.header().jobs[job].boards[0].stride;
    if (has == stride) return job;
    (has == 0 ? unused : other) = std::min(has == 0 ? unused : other, job);
  }
  if (unused == kMaxJobs && other == kMaxJobs) {
    throw InvalidArgument("a pool runs at most " + std::to_string(kMaxJobs - 1) + " maps at once");
  }
  return unused != kMaxJobs ? unused : other;
}

/// A slot keeps its memory, warm, for the next job of the same kind.
void PoolCore::give_regions(JobSlot& slot, std::uint32_t stride) {
  if (slot.boards[0].stride == stride) return;
  const std::size_t lanes = std::min(crew_.size(), kMaxLanes);
  const std::uint32_t capacity = lane_capacity(stride, lanes);
  const std::uint64_t lane_bytes = std::uint64_t{capacity} * stride;
  const std::uint64_t offset = segment_.append(lanes * lane_bytes);
  if (slot.rings.capacity == 0) {
    slot.rings.offset = segment_.append((sizeof(shm::RingHeader) + kRingCapacity) * crew_.size());
    slot.rings.capacity = kRingCapacity;
  }
  for (std::size_t i = 0; i < lanes; ++i) {
    slot.boards[i].offset = offset + i * lane_bytes;
    slot.boards[i].capacity = capacity;
    slot.boards[i].stride = stride;
  }
  slot.board_count.store(static_cast<std::uint32_t>(lanes), std::memory_order_relaxed);
}

std::size_t PoolCore::open_job(const JobParameters& parameters) {
  sweep();
  const std::scoped_lock lock(mutex_);
  const std::uint32_t stride = parameters.indexed ? sizeof(ChunkEntry) : sizeof(InputEntry);
  const std::size_t job = choose_slot(stride);
  JobSlot& slot = header().jobs[job];
  give_regions(slot, stride);
  slot.function = parameters.function;
  slot.value_size = parameters.value_size;
  slot.measured = parameters.measured ? 1 : 0;
  slot.base = parameters.base;
  slot.timeout_ns = parameters.timeout_ns;
  slot.closed.store(closed_ ? 1 : 0, std::memory_order_relaxed);
  for (BoardPlace& board : slot.boards) board.tail.store(0, std::memory_order_relaxed);
  slot.generation.fetch_add(1, std::memory_order_release);
  header().active_jobs.fetch_or(std::uint64_t{1} << job, std::memory_order_seq_cst);
  jobs_in_use_ |= std::uint64_t{1} << job;
  if (parameters.timeout_ns != 0) crew_.watch_deadlines(std::chrono::nanoseconds(parameters.timeout_ns / 8));
  return job;
}

void PoolCore::close_job(std::size_t job) noexcept {
  const std::scoped_lock lock(mutex_);
  header().active_jobs.fetch_and(~(std::uint64_t{1} << job), std::memory_order_seq_cst);
  jobs_in_use_ &= ~(std::uint64_t{1} << job);
}

void PoolCore::retire(std::unique_ptr<MapJob> map) noexcept {
  map->close();
  {
    const std::scoped_lock lock(retired_mutex_);
    retired_.push_back(std::move(map));
  }
  sweep();
}

void PoolCore::sweep() noexcept {
  const std::scoped_lock lock(retired_mutex_);
  std::erase_if(retired_, [this](const std::unique_ptr<MapJob>& map) {
    if (!map->finished_after_close()) return false;
    close_job(map->job());
    return true;
  });
}

void PoolCore::tell_news() noexcept {
  news_.fetch_add(1, std::memory_order_acq_rel);
  waiters_.poke_all();
}

void PoolCore::interrupted() noexcept {
  crew_.interrupt();
  tell_news();
}

void PoolCore::worker_died(const WorkerDeath& death) noexcept {
  {
    const std::scoped_lock lock(mutex_);
    dead_.push_back(death);
    if (dead_.size() > kDeathsRemembered) dead_.pop_front();
  }
  submits_.worker_died(death);
  deaths_.fetch_add(1, std::memory_order_acq_rel);
  tell_news();
}

void PoolCore::crew_failed(std::exception_ptr reason) noexcept {
  {
    const std::scoped_lock lock(mutex_);
    if (!reason_) reason_ = std::move(reason);
    failed_ = true;
  }
  tell_news();
}

PoolStats PoolCore::stats() {
  PoolStats stats;
  crew_.fill_stats(stats.workers);
  stats.queued = submits_.queued();
  const std::vector<std::uint32_t> incarnations = crew_.incarnations();
  std::vector<std::size_t> claimed = submits_.claimed_by(incarnations);
  for (std::size_t i = 0; i < claimed.size(); ++i) stats.workers[i].queue_depth = claimed[i];
  return stats;
}

}  // namespace drover::inline v1::detail
