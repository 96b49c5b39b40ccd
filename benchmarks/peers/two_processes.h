// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <new>

/// Two processes over one shared mapping: what every floor "between processes" runs on.
namespace bench {

/// Where the two sides run: each on its own CPU, or both on one.
enum class Placement { kTwoCpus, kOneCpu };

/// Both sides wait here for each other, then go.
class StartLine {
 public:
  void wait();

 private:
  std::atomic<int> arrived_ = 0;
};

/// Runs `other` in a forked process and `mine` here at the same time, pinned as `placement` says, and returns when both
/// are done. Throws std::runtime_error when the other side failed or there are too few CPUs. Only from a process
/// without threads.
void in_two_processes(Placement placement, const std::function<void()>& mine, const std::function<void()>& other);

/// The shared mapping: `bytes` of zeros, the same memory at every call (so it stays warm) and in both processes.
void* shared_memory(std::size_t bytes);

/// Faults the mapping into the calling process. A forked one starts without page tables for shared memory.
void fault_in(void* memory, std::size_t bytes);

template <class T>
T* shared(std::size_t bytes = sizeof(T)) {
  return new (shared_memory(bytes)) T();
}

}  // namespace bench
