// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>

namespace drover_test {

/// Numbers that a test and its workers see at once: what has begun, and gates that tasks wait behind. The test makes
/// them and hands path() to its tasks; a task calls counters(path).
using Counter = std::atomic<std::int64_t>;

/// The counters behind a path; mapped for as long as this process lives.
inline Counter* counters(const std::string& path) {
  static std::string mapped_path;
  static Counter* mapped = nullptr;
  if (mapped != nullptr && mapped_path == path) return mapped;
  const int fd = open(path.substr(path.find('/')).c_str(), O_RDWR | O_CLOEXEC);
  void* const memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (memory == MAP_FAILED) std::abort();
  mapped_path = path;
  return mapped = static_cast<Counter*>(memory);
}

class SharedCounters {
 public:
  SharedCounters() : fd_(memfd_create("test-counters", MFD_CLOEXEC)) {
    if (ftruncate(fd_, 4096) != 0) std::abort();
    memory_ = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  }
  ~SharedCounters() {
    munmap(memory_, 4096);
    close(fd_);
  }
  SharedCounters(const SharedCounters&) = delete;
  SharedCounters& operator=(const SharedCounters&) = delete;

  /// Different for each object, though descriptor numbers come back: tasks keep what they have mapped.
  std::string path() const {
    return std::to_string(serial_) + "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(fd_);
  }
  Counter& operator[](std::size_t i) const { return static_cast<Counter*>(memory_)[i]; }

 private:
  static inline int next_serial = 0;
  const int serial_ = ++next_serial;
  int fd_;
  void* memory_;
};

/// Task side: waits until the test makes the counter positive; at most 20 s, so that a failed test ends.
inline void pass_gate(Counter& gate) {
  for (int i = 0; i < 20'000 && gate.load() <= 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace drover_test
