// SPDX-License-Identifier: Apache-2.0
#include "drover/sync/lock_word.h"

#include <algorithm>
#include <exception>

#include "drover/os/cpu.h"
#include "drover/os/signals.h"

namespace drover::inline v1::sync {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kManyNamespaces = 0x4D41'4E59;  // no namespace mark: those have 16 bits
constexpr std::uint32_t kUnset = 0;
constexpr std::uint32_t kHome = 0x484F'0000;  // with the mark of the namespace below

/// Spinning helps only when the holder runs at the same time. Asked once: affinity rarely changes.
bool may_spin() noexcept {
  static const bool several = [] {
    try {
      return os::usable_cpus() > 1;
    } catch (const std::exception&) {
      return false;
    }
  }();
  return several;
}

}  // namespace

void Realm::join() noexcept {
  const std::uint32_t mark = os::namespace_mark(os::current_thread_id());
  std::uint32_t home = kUnset;
  if (mark != 0 && home_.compare_exchange_strong(home, kHome | mark, std::memory_order_acq_rel)) return;
  if (mark != 0 && home == (kHome | mark)) return;
  home_.store(kManyNamespaces, std::memory_order_release);
}

bool Realm::is_gone(os::ThreadId holder, os::Liveness liveness) const noexcept {
  switch (liveness) {
    case os::Liveness::kAlive:
      return false;
    case os::Liveness::kDead:
      return true;
    case os::Liveness::kUnknown:
      break;
  }
  const bool judged_here = os::namespace_mark(holder) == os::namespace_mark(os::current_thread_id());
  return !judged_here && home_.load(std::memory_order_acquire) != kManyNamespaces;
}

bool Realm::seems_gone(os::ThreadId holder) const noexcept {
  struct Seen {
    os::ThreadId holder;
    Clock::time_point until;
  };
  constinit static thread_local Seen seen{};
  const auto now = Clock::now();
  const os::ThreadId id = holder & os::kThreadIdMask;
  if (id == seen.holder && now < seen.until) return false;
  if (is_gone(id)) return true;
  seen = {id, now + std::chrono::milliseconds(1)};
  return false;
}

Clock::time_point Slices::next() const noexcept {
  const auto end = Clock::now() + length_;
  return deadline_ ? std::min(end, *deadline_) : end;
}

/// About as long as a wake-up across cores takes (24-30 µs were measured, docs/design/002): then sleeping is no slower.
/// Looks seldom: each look takes the cache line from the holder, and costs more than it finds (two threads on two
/// cores, critical sections a second against std::mutex: 0.93 with these numbers, 0.77 with a look every 64 pauses, and
/// a quarter with one every 4).
bool LockWord::spin(os::ThreadId me) noexcept {
  constexpr int kLooks = 6;
  constexpr int kPausesBetween = 200;
  for (int look = 0; look < kLooks; ++look) {
    const os::ThreadId seen = word_.load(std::memory_order_relaxed);
    if (seen == 0 && take(me)) return true;
    if ((seen & kSleepers) != 0) return false;  // others wait in the kernel: it takes longer
    for (int i = 0; i < kPausesBetween; ++i) os::pause();
  }
  return false;
}

/// Takes a word whose holder is nobody, or gone. False when the word is another by now.
bool LockWord::take_over(os::ThreadId seen, os::ThreadId me, os::ThreadId* dead, Lock& result) noexcept {
  const os::ThreadId holder = seen & os::kThreadIdMask;
  const bool died = holder != 0 && (seen & kPassesFlag) == 0;
  if (died) me &= ~kPassesFlag;  // should the taker die as well, the next one must still hear of it
  os::ThreadId expected = seen;
  if (!word_.compare_exchange_strong(expected, me | (seen & kSleepers), std::memory_order_acquire)) return false;
  os::fault_point();
  if (died && dead != nullptr) *dead = holder;
  result = died ? Lock::kOwnerDied : Lock::kLocked;
  return true;
}

/// Says that somebody sleeps, unless the word says so, and sleeps while the holder is the same.
os::FutexWait LockWord::sleep(os::ThreadId seen, const os::Deadline& until) noexcept {
  os::ThreadId expected = seen;
  if ((seen & kSleepers) == 0 &&
      !word_.compare_exchange_strong(expected, seen | kSleepers, std::memory_order_relaxed)) {
    return os::FutexWait::kWoken;
  }
  os::fault_point();
  return os::futex_wait(low_half_, static_cast<std::uint32_t>(seen | kSleepers), until);
}

Lock LockWord::lock_slowly(const Options& options) noexcept {
  os::ThreadId me = os::current_thread_id() | flags(options.manner);
  if (may_spin() && spin(me)) return Lock::kLocked;
  Slices slices(options.deadline);
  for (;;) {
    const os::ThreadId seen = word_.load(std::memory_order_relaxed);
    const os::ThreadId holder = seen & os::kThreadIdMask;
    if (holder == os::current_thread_id()) return Lock::kRelocked;
    Lock result{};
    if ((seen & os::kThreadNumberMask) == 0 || realm_.seems_gone(holder)) {
      if (take_over(seen, me, options.dead, result)) return result;
    } else {
      if (sleep(seen, slices.next()) == os::FutexWait::kTimedOut) slices.lengthen();
      // Who has slept does not know whether it was the only one: from now on it takes the lock with the sign set.
      me |= kSleepers;
    }
    if (slices.is_over()) return Lock::kTimedOut;
    if (options.interruptible && os::pending_interrupt() != 0) return Lock::kInterrupted;
  }
}

Lock LockWord::try_slowly(os::ThreadId me, os::ThreadId* dead) noexcept {
  const os::ThreadId seen = word_.load(std::memory_order_relaxed);
  if ((seen & os::kThreadNumberMask) != 0) {
    if ((seen & os::kThreadIdMask) == os::current_thread_id()) return Lock::kTimedOut;
    if (!realm_.seems_gone(seen)) return Lock::kTimedOut;
  }
  Lock result{};
  return take_over(seen, me, dead, result) ? result : Lock::kTimedOut;
}

}  // namespace drover::inline v1::sync
