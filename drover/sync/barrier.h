// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string_view>

#include "drover/base/count.h"
#include "drover/base/duration.h"
#include "drover/sync/lock_word.h"
#include "drover/sync/shared.h"
#include "drover/sync/wait_queue.h"

namespace drover::inline v1 {

namespace sync {

/// All that changes together is one word, so that nobody who is killed or stopped leaves anything half-done.
///
///     bits 0-23: how many have arrived.   24: broken.   25-31: how the last seven generations began, the current one
///     first; 1: by a reset.   32-63: the generation: how often it opened, or was reset.
struct BarrierState {
  static constexpr std::size_t kMembers = 256;
  static constexpr std::uint32_t kMostParties = (1U << 24U) - 1;
  static constexpr std::string_view kind_name() { return "Barrier"; }
  static constexpr std::uint32_t kVersion = 2;
  void join() noexcept { realm.join(); }

  enum class Arrival : std::uint8_t { kPassed, kTimedOut, kBroken, kReset, kInterrupted };

  Arrival arrive(const os::Deadline& deadline) noexcept;
  void reset() noexcept;
  bool is_broken() const noexcept { return (word.load(std::memory_order_acquire) & kBroken) != 0; }
  /// A place among the members for the calling process; kMembers when there is none.
  std::size_t enlist() noexcept;
  void leave(std::size_t place) noexcept;

  std::atomic<std::uint64_t> word;
  std::atomic<std::uint32_t> parties;
  Realm realm;
  std::atomic<os::ThreadId> dead;  ///< why it is broken, or was before the last reset; for messages
  WaitQueue waiters;
  std::array<std::atomic<os::ThreadId>, kMembers> members;  ///< processes that have a handle

 private:
  static constexpr std::uint64_t kBroken = 1U << 24U;

  bool change(std::uint64_t& seen, std::uint64_t to) noexcept;
  bool enter(std::uint64_t& seen) noexcept;
  void break_by(os::ThreadId process, std::uint64_t seen) noexcept;
  void look_for_dead_members() noexcept;
  static Arrival outcome(std::uint64_t now, std::uint32_t arrived_in) noexcept;
  Arrival withdraw(std::uint32_t arrived_in, Arrival reason) noexcept;
};

/// What makes a process a member, for as long as it lives: one for all handles of a process.
class Membership {
 public:
  /// Throws Error when there are too many members.
  static std::shared_ptr<const Membership> of_this_process(const std::shared_ptr<shm::Block>& block);

  explicit Membership(std::shared_ptr<shm::Block> block);
  ~Membership();
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

 private:
  BarrierState& state() const noexcept;

  const std::shared_ptr<shm::Block> block_;
  const std::size_t place_;
};

}  // namespace sync

/// Where `parties` threads, of any processes, wait for each other, again and again.
///
/// A process is watched from the moment it has a handle until its last handle is gone, 256 processes at most. If it
/// ends in between, in whatever way (killed, or by exit() with a handle that was not destroyed), all who wait, and all
/// who come, get OwnerDied, within a fifth of a second, until somebody calls reset(). Not seen: a process that ended
/// before it got its handle, a thread that ended while its process lives, and one that forgets to come: use wait_for.
///
/// Thread-safe. Any process that has a handle, but not its fork. Copies refer to the same barrier.
class Barrier : public sync::Handle<sync::BarrierState> {
 public:
  /// Throws InvalidArgument for 0 parties.
  explicit Barrier(Count parties);

  /// Throws InvalidArgument, OutOfMemory, std::system_error, Error when the name is taken.
  static Barrier create(std::string_view name, Count parties);
  static Barrier create(Count parties) { return Barrier(parties); }
  /// Throws Error when there is none, or 256 processes have it; Incompatible, naming both, when it is something else.
  static Barrier open(std::string_view name);
  /// What is there keeps its number of parties.
  static Barrier open_or_create(std::string_view name, Count parties);
  /// For codecs.
  static Barrier adopt(std::shared_ptr<shm::Block> block) { return Barrier(std::move(block), Adopted{}); }

  std::size_t parties() const noexcept { return state().parties.load(std::memory_order_relaxed); }
  /// Waits until all have arrived. Throws OwnerDied when a process died that had a handle, Cancelled when another
  /// thread called reset() meanwhile, Interrupted when SIGINT or SIGTERM came: the caller counts as not arrived then.
  void arrive_and_wait() { static_cast<void>(arrive({})); }
  /// False when the others did not arrive in time: the caller counts as not arrived. Throws as arrive_and_wait().
  [[nodiscard]] bool wait_for(Duration duration) { return arrive(os::deadline_after(duration)); }
  /// Whether a process died; then only reset() helps. Only a wait finds the dead.
  bool is_broken() const noexcept { return state().is_broken(); }
  /// Nobody has arrived, nothing is broken, dead processes are forgotten. Who waits at this moment gets OwnerDied or
  /// Cancelled. The number of parties stays: a dead one must be replaced.
  void reset() noexcept { state().reset(); }

 private:
  struct Adopted {};
  Barrier(std::shared_ptr<shm::Block> block, Adopted);
  bool arrive(const os::Deadline& deadline);

  std::shared_ptr<const sync::Membership> membership_;
};

}  // namespace drover::inline v1
