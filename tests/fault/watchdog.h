// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>

namespace drover_test {

/// Ends the test program, saying what hangs, when it is not destroyed in time.
class Watchdog {
 public:
  Watchdog(std::string what, std::chrono::seconds limit)
      : thread_([this, what = std::move(what), limit] {
          std::unique_lock lock(mutex_);
          if (done_.wait_for(lock, limit, [this] { return ended_; })) return;
          std::fprintf(stderr, "HANGS: %s, for more than %ld s\n", what.c_str(), static_cast<long>(limit.count()));
          _exit(1);
        }) {}
  ~Watchdog() {
    {
      const std::scoped_lock lock(mutex_);
      ended_ = true;
    }
    done_.notify_all();
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable done_;
  bool ended_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace drover_test
