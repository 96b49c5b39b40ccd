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

constexpr auto kReleasesKept = std::chrono::milliseconds(100);

void write_options(PoolSegment& segment, const PoolOptions& options) {
  check_options(options);
  PoolHeader& header = segment.header();
  header.cores = static_cast<std::uint32_t>(os::usable_cpus());
  const std::size_t by_default = std::min<std::size_t>(header.cores, shm::WorkerMask::kMaxWorkers);
  const std::size_t workers = options.workers != 0 ? std::size_t{options.workers} : by_default;
  header.worker_count = static_cast<std::uint32_t>(workers);
  header.spin_ns = static_cast<std::uint32_t>(PoolCore::kSpin.count());
  header.created_ns = std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  if (!options.initializer) return;
  header.initializer = options.initializer.function() + 1;
  header.initializer_length = options.initializer.arguments().size();
  header.initializer_offset = segment.store(options.initializer.arguments());
}

std::uint32_t stride_of(bool indexed) noexcept { return indexed ? sizeof(ChunkEntry) : sizeof(InputEntry); }

std::uint32_t lane_capacity(bool indexed, std::size_t lanes) noexcept {
  const std::uint32_t all = indexed ? PoolCore::kIndexCapacity : PoolCore::kInputCapacity;
  return all / std::bit_ceil(static_cast<std::uint32_t>(lanes));
}

}  // namespace

PoolCore::PoolCore(const PoolOptions& options)
    : service_([] {
        worker::require_init("a Pool");
        return worker::Service::shared();
      }()),
      grace_(options.grace),
      kept_(options.initializer.kept()),
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

std::shared_ptr<PoolCore> PoolCore::make(const PoolOptions& options) {
  return {new PoolCore(options), [](PoolCore* core) {
            if (core->belongs_to_this_process()) delete core;
          }};
}

PoolCore::~PoolCore() { close(); }

void PoolCore::close() noexcept {
  if (!belongs_to_this_process()) return;  // the workers are not ours to stop
  {
    const std::scoped_lock lock(mutex_);
    if (std::exchange(closed_, true)) return;
    if (!reason_) reason_ = std::make_exception_ptr(Cancelled("the pool is gone"));
    failed_ = true;
  }
  tell_news();
  crew_.stop(grace_);
  submits_.cancel_all();
  tell_news();
  service_->call([this] {
    stopped_ = true;
    service_->forget(kept_timer_);
    service_->remove_on_interrupt(interrupt_key_);
  });
  sweep();
}

bool PoolCore::usable() const noexcept {
  return belongs_to_this_process() && os::pending_interrupt() == 0 && !failed_.load(std::memory_order_acquire);
}

void PoolCore::check_usable() const {
  require_owner();
  if (const int signal = os::pending_interrupt()) throw Interrupted(signal);
  if (!failed_.load(std::memory_order_acquire)) return;
  const std::scoped_lock lock(mutex_);
  std::rethrow_exception(reason_);
}

std::exception_ptr PoolCore::death_error(std::uint32_t incarnation, const std::string& task) const {
  if (const auto death = crew_.death_of(incarnation)) return death->error(task);
  return std::make_exception_ptr(
      WorkerLost("a worker was lost with " + task + "; how is no longer known", 0, -1, 0, false));
}

/// Words that nobody but this process changes, and without which workers would not do what is asked of them.
void PoolCore::check_header() noexcept {
  {
    const std::scoped_lock lock(mutex_);
    const bool stops = header().stop.load(std::memory_order_relaxed) != 0;
    const std::uint64_t active = header().active_jobs.load(std::memory_order_relaxed);
    if (closed_ || (!stops && header().worker_count == crew_.size() && active == jobs_in_use_)) return;
  }
  end_by_damage("what the pool tells its workers");
}

std::size_t PoolCore::free_slot() const {
  const auto slot = static_cast<std::size_t>(std::countr_one(jobs_in_use_));
  if (slot < kMaxJobs) return slot;
  throw InvalidArgument("a pool runs at most " + std::to_string(kMaxJobs - 1) +
                        " maps at once; read the results of some, or drop them, before the next");
}

/// A slot keeps its memory, warm, for later jobs: where it lies never changes, so that no worker can mistake it.
void PoolCore::give_memory(std::size_t job, bool indexed) {
  JobSlot& slot = header().jobs[job];
  JobMemory& memory = memory_[job];
  if (memory.rings == 0) {
    memory.rings = segment_.append((sizeof(shm::RingHeader) + kRingCapacity) * crew_.size());
    slot.rings = {.offset = memory.rings, .capacity = kRingCapacity};
    slot.lanes = static_cast<std::uint32_t>(lanes());
  }
  std::uint64_t& offset = indexed ? memory.index_lanes : memory.input_lanes;
  if (offset != 0) return;
  const std::uint32_t capacity = lane_capacity(indexed, lanes());
  const std::uint64_t lane_bytes = std::uint64_t{capacity} * stride_of(indexed);
  offset = segment_.append(lanes() * lane_bytes);
  for (std::size_t i = 0; i < lanes(); ++i) {
    BoardPlace& place = slot.boards[(indexed ? 0 : JobSlot::kMaxLanes) + i];
    place.offset = offset + i * lane_bytes;
    place.capacity = capacity;
    place.stride = stride_of(indexed);
  }
}

shm::Board PoolCore::lane(std::size_t job, bool indexed, std::size_t number) {
  const std::uint32_t capacity = lane_capacity(indexed, lanes());
  const std::uint64_t lane_bytes = std::uint64_t{capacity} * stride_of(indexed);
  const std::scoped_lock lock(mutex_);
  const std::uint64_t lanes_offset = indexed ? memory_[job].index_lanes : memory_[job].input_lanes;
  std::byte* const entries = segment_.map(lanes_offset + number * lane_bytes, lane_bytes);
  BoardPlace& place = header().jobs[job].boards[(indexed ? 0 : JobSlot::kMaxLanes) + number];
  return {entries, stride_of(indexed), capacity, &place.tail};
}

shm::RingConsumer PoolCore::ring(std::size_t job, std::size_t worker, std::uint32_t value_size) {
  constexpr std::size_t kStride = sizeof(shm::RingHeader) + kRingCapacity;
  const std::scoped_lock lock(mutex_);
  std::byte* const rings = segment_.map(memory_[job].rings, os::round_to_page(kStride * crew_.size()));
  std::byte* const mine = rings + kStride * worker;
  auto* const header = reinterpret_cast<shm::RingHeader*>(mine);
  using Kind = shm::RecordHeader::Kind;
  if (value_size == kNoValue) return {header, mine + sizeof *header, kRingCapacity, 0, Kind::kRun};
  return {header, mine + sizeof *header, kRingCapacity, value_size};
}

std::size_t PoolCore::open_job(const JobParameters& parameters) {
  check_usable();
  sweep();
  const std::scoped_lock lock(mutex_);
  const std::size_t job = free_slot();
  give_memory(job, parameters.indexed);
  JobSlot& slot = header().jobs[job];
  slot.function = parameters.function;
  slot.value_size = parameters.value_size;
  slot.indexed = parameters.indexed ? 1 : 0;
  slot.measured = parameters.measured ? 1 : 0;
  slot.base = parameters.base;
  slot.timeout_ns = parameters.timeout_ns;
  slot.task_ns.store(0, std::memory_order_relaxed);
  slot.closed.store(0, std::memory_order_relaxed);
  for (BoardPlace& board : slot.boards) board.tail.store(0, std::memory_order_relaxed);
  slot.generation.fetch_add(1, std::memory_order_release);
  header().active_jobs.fetch_or(std::uint64_t{1} << job, std::memory_order_seq_cst);
  jobs_in_use_ |= std::uint64_t{1} << job;
  return job;
}

void PoolCore::close_job(std::size_t job) noexcept {
  if (!belongs_to_this_process()) return;
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
  std::erase_if(retired_, [](const std::unique_ptr<MapJob>& map) { return map->finished_after_close(); });
}

void PoolCore::release_kept_soon() {
  service_->post([this] {
    if (stopped_) return;
    service_->forget(kept_timer_);
    kept_timer_ = service_->at(std::chrono::steady_clock::now() + kReleasesKept, [this] {
      if (submits_.release_kept()) release_kept_soon();
    });
  });
}

void PoolCore::tell_news() noexcept { waiters_.poke_all(); }

void PoolCore::interrupted() noexcept {
  crew_.interrupt();
  tell_news();
}

void PoolCore::worker_died() noexcept {
  submits_.settle_claims();
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
  require_owner();
  PoolStats stats;
  crew_.fill_stats(stats.workers);
  stats.queued = submits_.queued();
  count_chunks(stats);
  return stats;
}

/// Adds what the boards of all maps hold. Numbers of one moment: the boards change while they are counted.
void PoolCore::count_chunks(PoolStats& stats) {
  const std::uint64_t active = header().active_jobs.load(std::memory_order_acquire);
  for (std::size_t job = 1; job < kMaxJobs; ++job) {
    if ((active >> job & 1) == 0) continue;
    const bool indexed = header().jobs[job].indexed != 0;
    for (std::size_t i = 0; i < lanes(); ++i) {
      const shm::Board board = lane(job, indexed, i);
      for (std::size_t position = 0; position < board.capacity(); ++position) {
        const auto& chunk = *reinterpret_cast<const ChunkEntry*>(board.entry(position));
        const std::uint32_t word = chunk.word.load(std::memory_order_relaxed);
        if (shm::state::phase(word) == shm::state::kArmed) stats.queued += chunk.count;
      }
    }
  }
}

}  // namespace drover::inline v1::detail
