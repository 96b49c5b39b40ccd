// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "drover/os/thread_id.h"

namespace drover::inline v1::sync {

/// What a process did with a queue so far.
enum class Role : std::uint32_t { kPushes = 1U << 22U, kPops = 1U << 23U, kAny = kPushes | kPops };

/// Which processes hold a queue, or one end of a pipe, so that nobody waits for the dead. In shared memory, zero-filled
/// is its first state. Thread-safe. Any process that maps it. Nothing throws; whatever stands in it, calls return.
///
/// A process stands here from the moment it has the handle until its last handle is gone. Who is killed stands here
/// until its place is needed. When all places are taken, the rest are not listed, and then nobody is told of the dead.
class Parties {
 public:
  static constexpr std::size_t kPlaces = 126;
  static constexpr std::size_t kUnlisted = kPlaces;

  /// Enters the calling process. The place, or kUnlisted.
  std::size_t join() noexcept;
  /// Of several that leave at the same time, one at least finds it empty afterwards.
  void leave(std::size_t place) noexcept;
  void mark(std::size_t place, Role role) noexcept;

  /// A dead process, other than those in `known`, when nobody else who lives might do what is waited for (Role).
  /// Nothing while one might: a process that only did the opposite so far counts as one that will not, one that did
  /// nothing as one that might. Also nothing when all have left, and nobody died.
  std::optional<os::ThreadId> deserted_by(Role role, std::span<const os::ThreadId> known) const noexcept;
  /// Whether somebody stands here, dead or alive.
  bool empty() const noexcept;
  /// Processes that push or pop, dead ones too.
  std::size_t active() const noexcept { return active_.load(std::memory_order_relaxed); }

 private:
  bool take_free(os::ThreadId me, std::size_t& place) noexcept;
  bool take_of_dead(os::ThreadId me, std::size_t& place) noexcept;
  void count_active() noexcept;

  std::array<std::atomic<os::ThreadId>, kPlaces> places_;
  std::atomic<std::uint32_t> active_;
  std::atomic<std::uint32_t> unlisted_;  ///< processes for which there was no place; who is killed stays counted
};
static_assert(sizeof(Parties) == 1016);

}  // namespace drover::inline v1::sync
