// SPDX-License-Identifier: Apache-2.0
#include "drover/health/nvml/helper.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "drover/health/nvml/library.h"
#include "drover/health/nvml/records.h"
#include "drover/os/fd.h"
#include "drover/os/self.h"

namespace drover::inline v1::health::nvml {
namespace {

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
  void start_round();
  void report_stuck(std::chrono::steady_clock::time_point until);
  void send(const std::string& message);

  const os::Fd requests_{0}, answers_{1};
  Library library_;
  std::deque<Worker> workers_;
  std::mutex sending_;
  std::mutex mutex_;
  std::condition_variable changed_;
  unsigned round_ = 0;
};

void Helper::run() {
  os::set_process_name(kHelperName);
  std::byte tenths{};
  initialise();
  for (;;) {
    const auto count = requests_.read_some({&tenths, 1});
    if (!count || *count == 0) os::exit_now(0);
    const auto begin = std::chrono::steady_clock::now();
    start_round();
    report_stuck(begin + std::chrono::milliseconds(100) * std::to_integer<int>(tenths));
  }
}

void Helper::initialise() {
  Ready ready;
  ready.load_error = library_.error();
  if (library_.loaded()) {
    Library::Current current{nullptr};
    ready.code = library_.init(current);
    if (ready.code == kSuccess) ready.code = library_.count(ready.gpus);
    if (ready.code == kSuccess) {
      ready.version = library_.driver_version();
      ready.cuda = library_.cuda_version();
      ready.gpus = std::min(ready.gpus, kMostGpus);
    } else {
      ready.gpus = 0;
    }
  }
  for (unsigned i = 0; i < ready.gpus; ++i) {
    Worker& worker = workers_.emplace_back(i);
    std::thread([this, &worker] { serve(worker); }).detach();
  }
  send(encode(ready));
}

void Helper::serve(Worker& worker) {
  Gpu gpu(library_, worker.index, worker.current);
  for (unsigned done = 0;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return round_ != done; });
      done = round_;  // rounds that passed while it hung are skipped
      worker.busy = true;
    }
    const std::string message = encode(gpu.sample());
    send(message);
    const std::lock_guard lock(mutex_);
    worker.busy = worker.stuck = false;
    changed_.notify_all();
  }
}

void Helper::start_round() {
  const std::lock_guard lock(mutex_);
  ++round_;
  for (Worker& worker : workers_) worker.busy = !worker.stuck;
  changed_.notify_all();
}

/// Waits until all have answered. Shortly before the time is up, tells which calls have not come back.
void Helper::report_stuck(std::chrono::steady_clock::time_point until) {
  const auto none_busy = [this] {
    return std::none_of(workers_.begin(), workers_.end(), [](const Worker& worker) { return worker.busy; });
  };
  std::unique_lock lock(mutex_);
  if (changed_.wait_until(lock, until, none_busy)) return;
  for (Worker& worker : workers_) {
    const char* const call = worker.current.load(std::memory_order_relaxed);
    if (!worker.busy) continue;
    send(encode(Stuck{worker.index, call != nullptr ? call : "an unknown call"}));
    worker.stuck = true;
    worker.busy = false;
  }
}

void Helper::send(const std::string& message) {
  const std::lock_guard lock(sending_);
  std::span<const std::byte> rest = std::as_bytes(std::span(message.data(), message.size()));
  try {
    while (!rest.empty()) rest = rest.subspan(answers_.write_some(rest).value_or(0));
  } catch (...) {
    os::exit_now(0);  // nobody is there to read it
  }
}

/// Runs before main() and before most other code of this program; needs nothing of it.
__attribute__((constructor)) void become_helper_if_told() {
  if (std::getenv(kHelperVariable) == nullptr) return;
  os::take_environment(kHelperVariable);
  try {
    (new Helper)->run();
  } catch (...) {
    os::exit_now(1);
  }
}

}  // namespace

std::vector<std::string> helper_environment() {
  std::vector<std::string> result = os::environment();
  result.push_back(std::string(kHelperVariable) + "=1");
  return result;
}

}  // namespace drover::inline v1::health::nvml
