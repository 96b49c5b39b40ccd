// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>

#include "drover/os/self.h"

namespace drover::inline v1::sync {

/// One object for each key in this process, shared by all handles and gone with the last of them: what a process enters
/// once into a table in shared memory, however many handles it has. A fork begins with none. Thread-safe.
template <class Key, class T>
class InProcess {
 public:
  /// What is there, or what make() gives: std::shared_ptr<T>. Throws what it throws.
  template <class Make>
  std::shared_ptr<T> get(const Key& key, const Make& make) {
    std::shared_ptr<T> other;  // a fork's: let go without the mutex
    const std::scoped_lock lock(mutex_);
    const int me = os::current_pid();
    Entry& entry = entries_[key];
    other = entry.object.lock();
    if (other && entry.process == me) return other;
    auto made = make();
    entry = {made, me};
    if (entries_.size() >= limit_) forget_the_gone();
    return made;
  }

 private:
  struct Entry {
    std::weak_ptr<T> object;
    int process = 0;
  };

  void forget_the_gone() {
    std::erase_if(entries_, [](const auto& entry) { return entry.second.object.expired(); });
    limit_ = std::max<std::size_t>(2 * entries_.size(), 32);
  }

  std::mutex mutex_;
  std::map<Key, Entry> entries_;
  std::size_t limit_ = 32;
};

}  // namespace drover::inline v1::sync
