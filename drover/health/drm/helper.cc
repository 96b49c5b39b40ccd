// SPDX-License-Identifier: Apache-2.0
#include "drover/health/drm/helper.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "drover/health/drm/probe.h"

namespace drover::inline v1::health::drm {
namespace {

/// One thread looks, the other one tells when that hangs. Never destroyed, as the first may never end.
class Helper {
 public:
  Helper(std::string root, bool container, bool wake) : probe_(std::move(root), container, wake) {}
  [[noreturn]] void run();

 private:
  void look_for_ever();
  void tell_where_it_hangs();

  helper::Conversation talk_;
  Probe probe_;
  std::mutex mutex_;
  std::condition_variable changed_;
  helper::Request request_;  // this and the next are under mutex_
  bool busy_ = false;
};

void Helper::run() {
  std::thread([this] { look_for_ever(); }).detach();
  for (;;) {
    helper::Request request = talk_.next();
    const auto limit = std::chrono::duration<double>(request.limit_s);
    std::unique_lock lock(mutex_);
    request_ = std::move(request);
    busy_ = true;
    changed_.notify_all();
    if (changed_.wait_for(lock, limit, [this] { return !busy_; })) continue;
    tell_where_it_hangs();
    changed_.wait(lock, [this] { return !busy_; });  // meanwhile nobody asks anything, or this process is to end
  }
}

void Helper::look_for_ever() {
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return busy_; });
    const helper::Request request = std::move(request_);
    lock.unlock();
    for (const GpuSample& gpu : probe_.look(request.processes, request.at, request.leave_alone)) {
      talk_.send(encode(helper::Answer{request.round, gpu}));
    }
    talk_.send(helper::encode_done());
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

void Helper::tell_where_it_hangs() {
  const std::size_t device = probe_.progress().device();
  if (device < helper::kMostGpus) {
    talk_.send(helper::encode(helper::Stuck{static_cast<unsigned>(device), probe_.progress().what()}));
  }
}

__attribute__((constructor)) void become_helper_if_told() {
  helper::become_if_told(kRole, [](const std::string& argument) {
    const int bits = argument.empty() ? 0 : argument[0] - '0';
    const std::string root = argument.empty() ? std::string() : argument.substr(1);
    (new Helper(root, (bits & kContainer) != 0, (bits & kWake) != 0))->run();
  });
}

}  // namespace

constinit const helper::Role kRole{.variable = "DROVER_DRM_HELPER", .name = "drover-drm"};

}  // namespace drover::inline v1::health::drm
