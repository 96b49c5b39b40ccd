// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "drover/os/fault_point.h"
#include "drover/os/futex.h"

namespace drover::inline v1::shm {

/// Which workers wait for work: a bit each. Whoever takes a bit away owes that worker a wake-up; the bits of a dead
/// worker are taken away by the parent. Any process that maps it.
class WorkerMask {
 public:
  static constexpr std::size_t kMaxWorkers = 1024;

  void set(std::size_t worker) noexcept { words_[worker / 64].fetch_or(bit(worker), std::memory_order_seq_cst); }
  /// True when the bit was there: the caller has taken it.
  bool take(std::size_t worker) noexcept {
    if ((words_[worker / 64].load(std::memory_order_relaxed) & bit(worker)) == 0) return false;
    return (words_[worker / 64].fetch_and(~bit(worker), std::memory_order_seq_cst) & bit(worker)) != 0;
  }
  /// Takes any bit of the first `workers`; kMaxWorkers when there is none.
  std::size_t take_any(std::size_t workers) noexcept {
    for (std::size_t i = 0; i * 64 < workers; ++i) {
      std::uint64_t seen = words_[i].load(std::memory_order_relaxed);
      while (seen != 0) {
        const auto worker = i * 64 + static_cast<std::size_t>(std::countr_zero(seen));
        if (take(worker)) return worker;
        seen = words_[i].load(std::memory_order_relaxed);
      }
    }
    return kMaxWorkers;
  }
  std::size_t count(std::size_t workers) const noexcept {
    std::size_t n = 0;
    for (std::size_t i = 0; i * 64 < workers; ++i) {
      n += static_cast<std::size_t>(std::popcount(words_[i].load(std::memory_order_relaxed)));
    }
    return n;
  }

 private:
  static constexpr std::uint64_t bit(std::size_t worker) noexcept { return std::uint64_t{1} << worker % 64; }
  std::array<std::atomic<std::uint64_t>, kMaxWorkers / 64> words_;
};

/// What the caller of a map sleeps on. The sleeper says how many unread bytes in one ring are worth a wake-up. One
/// sleeper at a time; any number of processes ring.
class Doorbell {
 public:
  /// Sleeper: announces the intent to sleep; look at the rings after this and before wait.
  std::uint32_t prepare(std::uint32_t worth_bytes) noexcept {
    const std::uint32_t seen = sequence_.load(std::memory_order_acquire);
    threshold_.store(worth_bytes, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with wanted
    return seen;
  }
  os::FutexWait wait(std::uint32_t seen, const os::Deadline& deadline) noexcept {
    return os::futex_wait(sequence_, seen, deadline);
  }
  void cancel() noexcept { threshold_.store(0, std::memory_order_relaxed); }

  /// Worker, after it published: the bytes that are worth a wake-up, 0 when nobody sleeps.
  std::uint32_t wanted() const noexcept {
    std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with prepare
    return threshold_.load(std::memory_order_relaxed);
  }
  /// The same without the fence: it may miss a sleeper who has just come.
  std::uint32_t hint() const noexcept { return threshold_.load(std::memory_order_relaxed); }
  /// Wakes the sleeper, if there is one that nobody else wakes.
  void ring() noexcept {
    if (threshold_.exchange(0, std::memory_order_acq_rel) == 0) return;
    os::fault_point();
    ring_anyway();
  }
  /// Parent: wakes the sleeper, or one about to sleep, even if a worker that has died had promised to.
  void ring_anyway() noexcept {
    sequence_.fetch_add(1, std::memory_order_release);
    os::futex_wake(sequence_);
  }

 private:
  os::FutexWord sequence_;
  std::atomic<std::uint32_t> threshold_;
};

}  // namespace drover::inline v1::shm
