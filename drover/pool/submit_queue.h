// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "drover/pool/options.h"
#include "drover/pool/segment.h"
#include "drover/wire/writer.h"

namespace drover::inline v1::detail {

class PoolCore;

/// The tasks given to submit, and their results, each in an entry that a Future holds until it has read it. Never
/// blocks the caller: a full board is followed by one of twice the size. Thread-safe; only the creating process.
class SubmitQueue {
 public:
  explicit SubmitQueue(PoolCore& core) noexcept : core_(core) {}

  /// Makes the queue visible to the workers. Before anything else.
  void open();

  /// Offers a task, and keeps what its arguments refer to until it is done. Throws OutOfMemory.
  SubmitEntry& submit(std::uint32_t function, std::span<const std::byte> arguments, wire::Kept kept,
                      const CallOptions& options);

  // One thread at a time for each entry.

  static bool finished(const SubmitEntry& entry) noexcept;
  /// Sleeps until it is finished or `deadline` passes; false then. Throws what PoolCore::check_usable does.
  bool wait(SubmitEntry& entry, const os::Deadline& deadline);
  /// True when the task will never run: it had not begun.
  bool cancel(SubmitEntry& entry) noexcept;
  /// Hands the finished entry's result to `read` (not called when the task failed: its error is thrown). The entry is
  /// free afterwards in any case.
  void take(SubmitEntry& entry, const std::function<void(std::span<const std::byte>)>& read);
  /// Nobody will ask for the result. The task runs all the same. Does nothing in a fork.
  void detach(SubmitEntry& entry) noexcept;

  /// Tasks that dead workers had run again or are lost. A claim by nobody ends the pool.
  void settle_claims() noexcept;
  /// No worker is left: all that is unfinished is cancelled.
  void cancel_all() noexcept;

  /// Service thread, from time to time: lets go of what finished tasks referred to whose results nobody has taken yet.
  /// True when there is more to come.
  bool release_kept();

  std::size_t queued() const;

 private:
  struct OwnBoard {
    shm::Board board;
    std::uint64_t tail = 0;
  };

  SubmitEntry& free_entry();
  SubmitEntry* find_free(OwnBoard& own) noexcept;
  void add_board(std::uint32_t capacity);
  void free(SubmitEntry& entry) noexcept;
  void keep(const SubmitEntry& entry, wire::Kept& kept);
  wire::Kept take_kept(const SubmitEntry& entry);
  wire::Kept take_kept_locked(const SubmitEntry& entry);
  void retry_or_lose(SubmitEntry& entry, std::uint32_t word) noexcept;
  void look_for_damage(const SubmitEntry& entry) noexcept;
  bool polls_may_look() noexcept;
  bool is_damaged(std::uint32_t word) const noexcept;
  template <class Visit>
  void for_each_entry(const Visit& visit) const;

  PoolCore& core_;
  mutable std::mutex mutex_;
  std::vector<OwnBoard> boards_;                             // protected by mutex_
  std::unordered_map<const SubmitEntry*, wire::Kept> kept_;  // protected by mutex_
  std::atomic<std::chrono::steady_clock::rep> next_poll_look_{0};
  std::atomic<std::size_t> kept_count_{0};  // entries in kept_, which most programs never use
};

}  // namespace drover::inline v1::detail
