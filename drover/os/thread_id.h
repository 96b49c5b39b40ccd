// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace drover::inline v1::os {

/// A thread of this machine, in a word that processes share to say who holds something. 0 is nobody.
///
/// Bits 0-21: the thread's number (at most 2^22, PID_MAX_LIMIT). Bits 22-31: free for the user of the word (the low half
/// is a futex). Bits 32-63: start time and PID namespace, hashed, so that a later thread of the same number is another.
using ThreadId = std::uint64_t;

inline constexpr ThreadId kThreadNumberMask = (1U << 22U) - 1;
inline constexpr ThreadId kThreadIdMask = kThreadNumberMask | 0xFFFF'FFFF'0000'0000U;

/// The calling thread. Fast: read once a thread; right after fork() too.
ThreadId current_thread_id() noexcept;

enum class Liveness {
  kAlive,
  kDead,
  kUnknown,  ///< it lives in another PID namespace, or /proc cannot be read: treat it as alive
};

/// Whether the thread still exists; bits 22-31 are ignored. A zombie is dead. Some microseconds: it reads /proc.
Liveness liveness(ThreadId id) noexcept;

inline int thread_number(ThreadId id) noexcept { return static_cast<int>(id & kThreadNumberMask); }

}  // namespace drover::inline v1::os
