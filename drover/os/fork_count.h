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

/// A word that is 1 in the process that made it and 0 in its forks, also in those that run no handlers: the kernel
/// wipes the page (MADV_WIPEONFORK; where it does not know that, the word stays 1). Never unmapped.
class ForkMark {
 public:
  ForkMark() noexcept;
  const std::uint32_t* word() const noexcept { return word_; }

 private:
  std::uint32_t* word_;
};

/// A static T that each fork has anew: that of the parent may have been locked, or half changed, by a thread that does
/// not exist in the fork. Never destroyed, since other statics may use it. Thread-safe.
template <class T>
class PerProcess {
 public:
  T& get() {
    const std::uint32_t forks = watch_forks();
    Instance* current = current_.load(std::memory_order_acquire);
    if (current != nullptr && current->forks == forks) return current->value;
    auto* const fresh = new Instance{.forks = forks, .value = {}};
    if (current_.compare_exchange_strong(current, fresh, std::memory_order_acq_rel)) return fresh->value;
    delete fresh;  // another thread was first
    return current->value;
  }

 private:
  struct Instance {
    std::uint32_t forks;
    T value;
  };
  std::atomic<Instance*> current_{nullptr};
};

}  // namespace drover::inline v1::os
