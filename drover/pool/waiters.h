// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <set>

namespace drover::inline v1::detail {

/// The threads of this process that sleep in a pool, so that news for all of them (a death, a signal, the end of the
/// pool) can interrupt every sleep. Thread-safe.
class Waiters {
 public:
  /// A sleep that can be interrupted, for as long as the object lives.
  class Sleeper {
   public:
    /// `poke(target)` makes the sleep that is going on, or the one that is about to begin, return. Any thread; must not
    /// throw.
    Sleeper(Waiters& waiters, void (*poke)(void*), void* target) : waiters_(waiters), poke_(poke), target_(target) {
      const std::scoped_lock lock(waiters_.mutex_);
      waiters_.sleepers_.insert(this);
    }
    ~Sleeper() {
      const std::scoped_lock lock(waiters_.mutex_);
      waiters_.sleepers_.erase(this);
    }
    Sleeper(const Sleeper&) = delete;
    Sleeper& operator=(const Sleeper&) = delete;

   private:
    friend class Waiters;
    Waiters& waiters_;
    void (*const poke_)(void*);
    void* const target_;
  };

  void poke_all() noexcept {
    const std::scoped_lock lock(mutex_);
    for (const Sleeper* const sleeper : sleepers_) sleeper->poke_(sleeper->target_);
  }

 private:
  std::mutex mutex_;
  std::set<Sleeper*> sleepers_;  // protected by mutex_
};

}  // namespace drover::inline v1::detail
