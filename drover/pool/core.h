// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "drover/os/fork_count.h"
#include "drover/pool/crew.h"
#include "drover/pool/submit_queue.h"
#include "drover/pool/waiters.h"

namespace drover::inline v1::detail {

class MapJob;

/// Where a job slot's memory lies. The parent's own copy: workers can write over the header's.
struct JobMemory {
  std::uint64_t index_lanes = 0;  ///< file offsets; 0: none yet
  std::uint64_t input_lanes = 0;
  std::uint64_t rings = 0;
};

/// What the workers need to know of a map.
struct JobParameters {
  std::uint32_t function = 0;
  std::uint32_t value_size = 0;  ///< as fixed_result_size
  bool indexed = false;          ///< inputs are base, base + 1, ...; else they are encoded
  bool measured = false;
  std::int64_t base = 0;
  std::uint64_t timeout_ns = 0;
};

/// All that a pool is, without types: its segment, its crew, its jobs, and the news that sleepers must hear. Shared by
/// the Pool and everything it gave out. Thread-safe; only the creating process.
class PoolCore final : public Crew::Listener {
 public:
  static constexpr std::uint32_t kRingCapacity = 512 * 1024;
  // A wake-up across cores was measured at 24-30 µs (docs/design/002); spinning pays only when it outlasts one.
  static constexpr std::chrono::nanoseconds kSpin{30'000};
  static constexpr std::uint32_t kIndexCapacity = 8192;  ///< entries in all lanes of a map over an index range
  static constexpr std::uint32_t kInputCapacity = 1024;  ///< of any other map

  /// A pool, shared by whoever must still find it. In a fork of the process it is never freed: its parts are the other
  /// process's, and a thread of that may have been changing them.
  static std::shared_ptr<PoolCore> make(const PoolOptions& options);

  explicit PoolCore(const PoolOptions& options);
  ~PoolCore();
  PoolCore(const PoolCore&) = delete;
  PoolCore& operator=(const PoolCore&) = delete;

  /// Ends the pool: what no worker has begun is cancelled, the rest is waited for as long as the options say.
  /// Idempotent.
  void close() noexcept;

  PoolSegment& segment() noexcept { return segment_; }
  PoolHeader& header() noexcept { return segment_.header(); }
  Crew& crew() noexcept { return crew_; }
  Waiters& waiters() noexcept { return waiters_; }
  SubmitQueue& submits() noexcept { return submits_; }
  std::chrono::nanoseconds spin_budget() noexcept { return crew_.may_spin() ? kSpin : std::chrono::nanoseconds(0); }

  /// False in a fork of the creating process. Whatever can be called there asks this first: nothing of a pool, which
  /// goes on in the other process, may be written or waited for, and any of its mutexes may be locked for ever.
  bool belongs_to_this_process() const noexcept { return os::forks() == forks_; }
  /// Throws Error in a fork.
  void require_owner() const {
    if (!belongs_to_this_process()) worker::Service::refuse_fork();
  }
  /// Grows with each death of a worker.
  std::uint64_t deaths() const noexcept { return deaths_.load(std::memory_order_acquire); }
  /// Throws Error in a fork, Interrupted when a signal came, or why there are no workers any more.
  void check_usable() const;
  /// Whether check_usable would return.
  bool usable() const noexcept;
  /// What a task fails with that a dead worker had.
  std::exception_ptr death_error(std::uint32_t incarnation, const std::string& task) const;

  /// Ends the pool if the header was written over. Callers that have waited for long.
  void check_header() noexcept;
  void end_by_damage(const char* what) noexcept { crew_.end_by_damage(what); }
  bool has_failed() const noexcept { return failed_.load(std::memory_order_acquire); }

  /// Takes a job slot and makes it visible to the workers. Throws InvalidArgument when all are in use.
  std::size_t open_job(const JobParameters& parameters);
  void close_job(std::size_t job) noexcept;
  /// The lanes of a slot's boards, and the rings of its workers.
  std::size_t lanes() const noexcept { return std::min(crew_.size(), JobSlot::kMaxLanes); }
  shm::Board lane(std::size_t job, bool indexed, std::size_t number);
  shm::RingConsumer ring(std::size_t job, std::size_t worker, std::uint32_t value_size);
  /// Takes over a map that nobody reads any more, until its running items have ended.
  void retire(std::unique_ptr<MapJob> map) noexcept;

  /// Has SubmitQueue::release_kept called soon, and again while it asks for it.
  void release_kept_soon();

  PoolStats stats();

 private:
  void worker_died() noexcept override;
  void crew_failed(std::exception_ptr reason) noexcept override;
  void tell_news() noexcept;
  void interrupted() noexcept;
  void sweep() noexcept;
  std::size_t free_slot() const;
  void give_memory(std::size_t job, bool indexed);
  void count_chunks(PoolStats& stats);

  const std::uint32_t forks_ = os::watch_forks();  ///< before this process
  const std::shared_ptr<worker::Service> service_;
  const Duration grace_;
  const wire::Kept kept_;  ///< what the initializer's arguments refer to
  PoolSegment segment_;
  Crew crew_;
  Waiters waiters_;
  SubmitQueue submits_;
  worker::Service::Key interrupt_key_ = 0;
  worker::Service::Key kept_timer_ = 0;  // service thread
  bool stopped_ = false;                 // service thread

  std::atomic<std::uint64_t> deaths_{0};

  mutable std::mutex mutex_;
  std::array<JobMemory, kMaxJobs> memory_;  // protected by mutex_
  std::uint64_t jobs_in_use_ = 1;           // protected by mutex_; bit 0 is the submit queue's
  std::exception_ptr reason_;               // protected by mutex_; why there are no workers
  std::atomic<bool> failed_{false};         // reason_ is set
  bool closed_ = false;                     // protected by mutex_

  std::mutex retired_mutex_;
  std::vector<std::unique_ptr<MapJob>> retired_;  // protected by retired_mutex_
};

}  // namespace drover::inline v1::detail
