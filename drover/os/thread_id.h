// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace drover::inline v1::os {

/// A thread of this machine, in a word that processes share to say who holds something. 0 is nobody.
///
/// Bits 0-21: the thread's number (at most 2^22, PID_MAX_LIMIT). Bits 22-31: free for the user of the word (the low
/// half is a futex). Bits 32-47: its start time, hashed, so that a later thread of the same number is another. Bits
/// 48-63: its PID namespace (and time namespace), hashed; 0 when that is not known.
using ThreadId = std::uint64_t;

inline constexpr ThreadId kThreadNumberMask = (1U << 22U) - 1;
inline constexpr ThreadId kThreadIdMask = kThreadNumberMask | 0xFFFF'FFFF'0000'0000U;

namespace detail {
extern constinit thread_local ThreadId this_thread;  // 0: not known yet, or forgotten by fork()
ThreadId find_this_thread() noexcept;
}  // namespace detail

/// The calling thread. Fast: read once a thread; right after fork() too (not after a bare clone() or _Fork(), which run
/// no handlers).
inline ThreadId current_thread_id() noexcept {
  const ThreadId id = detail::this_thread;
  return id != 0 ? id : detail::find_this_thread();
}

/// The first thread of this process, which stands for the process. Reads /proc once a process.
ThreadId current_process_id() noexcept;

enum class Liveness {
  kAlive,
  kDead,
  kUnknown,  ///< it lives in another PID or time namespace, or /proc does not show it: treat it as alive
};

/// Whether the thread still exists; bits 22-31 are ignored. A zombie is dead. Some microseconds: it reads /proc.
Liveness liveness(ThreadId id) noexcept;

/// Whether the process of current_process_id() still exists: its first thread may have ended before the others.
Liveness process_liveness(ThreadId id) noexcept;

inline int thread_number(ThreadId id) noexcept { return static_cast<int>(id & kThreadNumberMask); }
inline std::uint32_t namespace_mark(ThreadId id) noexcept { return static_cast<std::uint32_t>(id >> 48U); }

}  // namespace drover::inline v1::os
