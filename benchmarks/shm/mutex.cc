// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/shm/mutex.h"

#include <sys/mman.h>

#include <atomic>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "benchmarks/harness/measure.h"
#include "drover/sync/mutex.h"

namespace bench {
namespace {

/// A thread that does nothing, for as long as this lives: without a second thread std::mutex does not lock at all.
class SecondThread {
 public:
  SecondThread() : thread_([this] { stop_.wait(false); }) {}
  ~SecondThread() {
    stop_ = true;
    stop_.notify_all();
    thread_.join();
  }
  SecondThread(const SecondThread&) = delete;
  SecondThread& operator=(const SecondThread&) = delete;

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

template <class Lockable>
double uncontended_ns(Lockable& mutex, int count) {
  const SecondThread second;
  std::int64_t sum = 0;
  const double time = time_ns([&] {
    for (int i = 0; i < count; ++i) {
      mutex.lock();
      ++sum;
      keep(sum);
      mutex.unlock();
    }
  });
  if (sum != count) throw std::runtime_error("a wrong sum");
  return time / count;
}

/// Critical sections a second of two threads, each on a CPU of its own, that do nothing else.
template <class Lockable>
double contended_per_s(Lockable& mutex, int count) {
  std::int64_t sum = 0;
  const auto work = [&](std::size_t cpu) {
    const Pinned pinned(cpu);
    for (int i = 0; i < count; ++i) {
      mutex.lock();
      ++sum;
      keep(sum);
      mutex.unlock();
    }
  };
  const double time = time_ns([&] {
    std::thread other(work, 1);
    std::thread(work, 0).join();
    other.join();
  });
  if (sum != 2 * std::int64_t{count}) throw std::runtime_error("a wrong sum: two threads were inside at once");
  return 2e9 * count / time;
}

}  // namespace

Figure mutex_uncontended() {
  constexpr int kCount = 2'000'000;
  static drover::Mutex ours;
  static std::mutex theirs;
  return {.name = "mutex_uncontended",
          .unit = "ns",
          .drover = [] { return uncontended_ns(ours, kCount); },
          .peers = {{"std::mutex", [] { return uncontended_ns(theirs, kCount); }, ratio_at_most(1.0)}}};
}

Figure mutex_contended() {
  constexpr int kCount = 500'000;
  static drover::Mutex ours;
  static std::mutex theirs;
  return {.name = "mutex_contended",
          .unit = "1/s",
          .drover = [] { return contended_per_s(ours, kCount); },
          .peers = {{"std::mutex", [] { return contended_per_s(theirs, kCount); }, ratio_at_least(0.8)}}};
}

}  // namespace bench
