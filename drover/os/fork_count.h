// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace drover::inline v1::os {

namespace detail {
extern constinit std::atomic<std::uint32_t> forks;
}

/// How many forks, from the first call of watch_forks on, lie between this process and the one that called it: an
/// object that remembers the number of its creation knows a fork of its creator by a larger one. Costs a load, where
/// asking for the pid is a system call. (Not after a bare clone() or _Fork(), which run no handlers.)
inline std::uint32_t forks() noexcept { return detail::forks.load(std::memory_order_relaxed); }

/// The same, and has forks counted from now on.
std::uint32_t watch_forks() noexcept;

}  // namespace drover::inline v1::os
