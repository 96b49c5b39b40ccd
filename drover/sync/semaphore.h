// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <string_view>

#include "drover/base/count.h"
#include "drover/base/duration.h"
#include "drover/sync/lock_word.h"
#include "drover/sync/shared.h"
#include "drover/sync/wait_queue.h"

namespace drover::inline v1 {

struct SemaphoreOptions {
  /// Permits that a process has acquired and not released come back when it ends, however it ends. Off: for signalling,
  /// where one process releases what another acquires.
  bool return_permits = true;
};

namespace sync {

/// With return_permits nothing is counted twice: what is free is `total` less what the records say, so a process that
/// is killed at any instruction leaves permits either taken, and then its record gives them back, or free.
struct SemaphoreState {
  static constexpr std::size_t kRecords = 256;
  static constexpr std::string_view kind_name() { return "Semaphore"; }
  static constexpr std::uint32_t kVersion = 1;
  void join() noexcept { lock.join(); }

  struct Record {
    std::atomic<os::ThreadId> process;  ///< 0: free
    std::atomic<std::uint64_t> held;    ///< permits
  };

  /// False also when a process that is stopped keeps the lock.
  bool take(const os::Deadline& deadline) noexcept;
  void release(std::uint64_t permits) noexcept;
  void return_permits_of_the_dead() noexcept;
  std::uint64_t available() const noexcept;

  LockWord lock;                          ///< whoever dies with it leaves nothing half-done
  std::atomic<std::uint64_t> total;       ///< all permits; those that are free, without return_permits
  std::atomic<std::uint64_t> unrecorded;  ///< taken by processes for which there was no record
  WaitQueue waiters;
  std::atomic<std::uint32_t> records_off;  ///< not 0: without return_permits
  std::atomic<std::uint32_t> used;         ///< records at and beyond this were never used
  std::array<Record, kRecords> records;

 private:
  std::size_t used_records() const noexcept;
  Record* own_record() noexcept;
  Record* new_record() noexcept;
  bool take_recorded() noexcept;
  bool take_unrecorded() noexcept;
  std::uint64_t release_recorded(std::uint64_t permits) noexcept;
  void lock_state() noexcept { static_cast<void>(lock.lock({.manner = LockWord::Manner::kPasses})); }
  bool lock_state_soon(const os::Deadline& deadline) noexcept;
  void unlock_state() noexcept { static_cast<void>(lock.unlock()); }
};

}  // namespace sync

/// A number of permits. By default it guards a resource: what a process has acquired comes back when that process ends,
/// however it ends; who waits sees that within a fifth of a second. (At most 256 processes at a time are watched; of
/// others, permits do not come back.) Releasing more than the calling process holds makes new permits. To signal from
/// one process to another, make it with {.return_permits = false}.
///
/// Thread-safe. Any process that has a handle. Copies refer to the same semaphore.
class Semaphore : public sync::Handle<sync::SemaphoreState> {
 public:
  explicit Semaphore(Count initial, SemaphoreOptions options = {});

  /// Throws InvalidArgument, OutOfMemory, std::system_error, Error when the name is taken.
  static Semaphore create(std::string_view name, Count initial, SemaphoreOptions options = {});
  static Semaphore create(Count initial, SemaphoreOptions options = {}) { return Semaphore(initial, options); }
  /// Throws Error when there is none, Incompatible, naming both, when it is something else.
  static Semaphore open(std::string_view name);
  /// What is there keeps its permits and options.
  static Semaphore open_or_create(std::string_view name, Count initial, SemaphoreOptions options = {});
  /// For codecs.
  static Semaphore adopt(std::shared_ptr<shm::Block> block) { return Semaphore(std::move(block), Adopted{}); }

  /// Waits for a permit. Throws Interrupted when SIGINT or SIGTERM comes.
  void acquire() { static_cast<void>(acquire_until({})); }
  /// False when there is none, or (after 0.1 s) when another process is stopped in the middle of such a call. Permits
  /// of the dead come back first.
  [[nodiscard]] bool try_acquire() noexcept;
  /// False when there was none in time. Throws Interrupted.
  [[nodiscard]] bool try_acquire_for(Duration duration) { return acquire_until(os::deadline_after(duration)); }
  void release(Count permits = 1) noexcept { state().release(permits); }
  /// Free permits at this moment.
  std::size_t available() const noexcept { return static_cast<std::size_t>(state().available()); }

 private:
  struct Adopted {};
  Semaphore(std::shared_ptr<shm::Block> block, Adopted) : Handle(std::move(block)) {}
  bool acquire_until(const os::Deadline& deadline);
};

}  // namespace drover::inline v1
