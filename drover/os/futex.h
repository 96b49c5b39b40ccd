// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <optional>

namespace drover::inline v1::os {

using Deadline = std::optional<std::chrono::steady_clock::time_point>;

/// So long from now, and now for what is negative; durations beyond a hundred years, or infinite, mean no deadline.
inline Deadline deadline_after(std::chrono::duration<double> duration) {
  constexpr std::chrono::duration<double> kForever(100.0 * 365 * 86400);
  if (!(duration < kForever)) return std::nullopt;
  duration = std::max(duration, std::chrono::duration<double>::zero());
  return std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(duration);
}

/// For poll and epoll_wait: at least the time that is left; -1 without a deadline.
inline int milliseconds_until(const Deadline& deadline) {
  if (!deadline) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, INT_MAX));
}

/// A word that processes sleep on. std::atomic::wait cannot be used: it makes futexes that are private to one process.
using FutexWord = std::atomic<std::uint32_t>;
static_assert(FutexWord::is_always_lock_free && sizeof(FutexWord) == 4);

enum class FutexWait {
  kWoken,     ///< woken, or the word had changed already, or a signal arrived: look again
  kTimedOut,  ///< the deadline passed
};

/// Sleeps while `word` holds `expected`. May return early for no reason. Never fails. Any process that maps the word.
FutexWait futex_wait(const FutexWord& word, std::uint32_t expected, const Deadline& deadline = {}) noexcept;

/// Wakes up to `count` sleepers.
void futex_wake(const FutexWord& word, int count = 1) noexcept;

/// Tells the processor that this is a spin loop.
inline void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Fetches a cache line that another core had, to be written soon: without it a store first waits for the line. (The
/// compilers' own prefetch for writing asks for a line to be read unless they are told of the processor.)
inline void prefetch_for_write(const void* address) noexcept {
#if defined(__x86_64__)
  asm volatile("prefetchw (%0)" ::"r"(address));  // by register: the address may lie beyond what the compiler knows of
#else
  __builtin_prefetch(address, 1);
#endif
}

/// Spins until `done()` is true or the budget is used up; returns the last answer of `done`. A budget of 0 asks once.
template <class Done>
bool spin_until(std::chrono::nanoseconds budget, const Done& done) {
  constexpr int kRoundsBetweenClockReads = 16;
  std::optional<std::chrono::steady_clock::time_point>
      end;  // the clock is read only when the first rounds were in vain
  for (;;) {
    for (int i = 0; i < kRoundsBetweenClockReads; ++i) {
      if (done()) return true;
      if (budget.count() == 0) return false;
      pause();
    }
    const auto now = std::chrono::steady_clock::now();
    if (!end) end = now + budget;
    if (now >= *end) return done();
  }
}

}  // namespace drover::inline v1::os
