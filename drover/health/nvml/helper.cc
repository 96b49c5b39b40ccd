// SPDX-License-Identifier: Apache-2.0
#include "drover/health/nvml/helper.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "drover/health/nvml/library.h"

namespace drover::inline v1::health::nvml {
namespace {

using Clock = std::chrono::steady_clock;

/// One thread for each GPU: one that hangs does not hide the others. Never destroyed, as its threads may never end.
class Helper {
 public:
  [[noreturn]] void run();

 private:
  struct Worker {
    explicit Worker(unsigned number) : index(number) {}
    unsigned index;
    Library::Current current{nullptr};
    bool busy = false;   // the rest is under mutex_
    bool stuck = false;  // did not answer in time, and nobody waits for it any more
  };

  void initialise();
  void serve(Worker& worker);
  void start_round(std::uint32_t round);
  void report_stuck(Clock::time_point until);

  helper::Conversation talk_;
  Library library_;
  std::deque<Worker> workers_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint32_t round_ = 0;
};

void Helper::run() {
  initialise();
  for (;;) {
    const helper::Request request = talk_.next();
    const auto begin = Clock::now();
    start_round(request.round);
    report_stuck(begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(request.limit_s)));
  }
}

void Helper::initialise() {
  helper::Ready ready;
  ready.load_error = library_.error();
  if (library_.loaded()) {
    Library::Current current{nullptr};
    ready.code = library_.init(current);
    if (ready.code == kSuccess) ready.code = library_.count(ready.gpus);
    if (ready.code == kSuccess) {
      ready.version = library_.driver_version();
      ready.cuda = library_.cuda_version();
      ready.gpus = std::min(ready.gpus, helper::kMostGpus);
    } else {
      ready.gpus = 0;
    }
  }
  for (unsigned i = 0; i < ready.gpus; ++i) {
    Worker& worker = workers_.emplace_back(i);
    std::thread([this, &worker] { serve(worker); }).detach();
  }
  talk_.send(encode(ready));
}

void Helper::serve(Worker& worker) {
  Gpu gpu(library_, worker.index, worker.current);
  for (std::uint32_t done = 0;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return round_ != done; });
      done = round_;  // rounds that passed while it hung are skipped
      worker.busy = true;
    }
    talk_.send(encode(helper::Answer{done, gpu.sample()}));
    const std::lock_guard lock(mutex_);
    worker.busy = worker.stuck = false;
    changed_.notify_all();
  }
}

void Helper::start_round(std::uint32_t round) {
  const std::lock_guard lock(mutex_);
  round_ = round;
  for (Worker& worker : workers_) worker.busy = !worker.stuck;
  changed_.notify_all();
}

/// Waits until all have answered. Shortly before the time is up, tells which calls have not come back.
void Helper::report_stuck(Clock::time_point until) {
  const auto none_busy = [this] {
    return std::none_of(workers_.begin(), workers_.end(), [](const Worker& worker) { return worker.busy; });
  };
  std::unique_lock lock(mutex_);
  if (changed_.wait_until(lock, until, none_busy)) return;
  for (Worker& worker : workers_) {
    const char* const call = worker.current.load(std::memory_order_relaxed);
    if (!worker.busy) continue;
    talk_.send(encode(helper::Stuck{worker.index, call != nullptr ? call : "an unknown call"}));
    worker.stuck = true;
    worker.busy = false;
  }
}

__attribute__((constructor)) void become_helper_if_told() {
  helper::become_if_told(kRole, [](const std::string&) { (new Helper)->run(); });
}

}  // namespace

constinit const helper::Role kRole{.variable = "DROVER_NVML_HELPER", .name = "drover-nvml"};

}  // namespace drover::inline v1::health::nvml
