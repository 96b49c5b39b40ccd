// SPDX-License-Identifier: Apache-2.0
#include "drover/worker/service.h"

#include <exception>
#include <future>
#include <string>
#include <system_error>
#include <utility>

#include "drover/base/errors.h"
#include "drover/base/log.h"
#include "drover/os/fork_count.h"
#include "drover/os/self.h"

namespace drover::inline v1::worker {
namespace {

constexpr Service::Key kWake = 0;
constexpr Service::Key kInterrupt = 1;
constexpr auto kLingering = std::chrono::seconds(1);
constexpr int kGuardianStarts = 4;                               // one that keeps dying is somebody's wish
constexpr auto kGuardianRetry = std::chrono::milliseconds(500);  // doubled each time
constexpr int kGuardianTries = 8;                                // a minute of shortage

/// Nothing that goes wrong with one child may end this thread, on which all others depend.
void run_guarded(const Service::Callback& callback) noexcept {
  try {
    callback();
  } catch (const std::exception& error) {
    log(LogLevel::kError, error.what());
  } catch (...) {
    log(LogLevel::kError, "an exception that is no std::exception on the service thread");
  }
}

std::thread start_thread(std::function<void()> body) {
  const os::SignalBlock block;  // inherited by the new thread: no handler of the user's ever runs there
  try {
    return std::thread(std::move(body));
  } catch (const std::system_error& error) {
    os::throw_error(error.code().value(), "starting a thread");
  }
}

}  // namespace

std::shared_ptr<Service> Service::shared() {
  struct Running {
    std::mutex mutex;
    std::weak_ptr<Service> service;
  };
  static constinit os::PerProcess<Running> of_process;
  Running& running = of_process.get();
  const std::scoped_lock lock(running.mutex);
  std::shared_ptr<Service> service = running.service.lock();
  if (service && service->belongs_to_this_process()) return service;
  service = std::make_shared<Service>();
  running.service = service;
  return service;
}

Service::Service() {
  epoll_.add(wake_.fd(), kWake);
  epoll_.add(interrupt_.fd(), kInterrupt);
  thread_ = start_thread([this] { run(); });
}

Service::~Service() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  wake_.signal();
  thread_.join();
  // The guardian goes on for blocks with names.
  if (guardian_) {
    for (const int leader : guarded_groups_) guardian_->forget_group(leader);
  }
}

void Service::post(Callback callback) {
  {
    const std::scoped_lock lock(mutex_);
    posted_.push_back(std::move(callback));
  }
  wake_.signal();
}

void Service::refuse_fork() {
  throw Error("pools and processes belong to the process that made them; this is a fork of it");
}

void Service::call(const Callback& callback) {
  require_owner();
  if (std::this_thread::get_id() == thread_.get_id()) return callback();
  std::promise<void> done;
  post([&] {
    try {
      callback();
      done.set_value();
    } catch (...) {
      done.set_exception(std::current_exception());
    }
  });
  done.get_future().get();
}

Service::Key Service::watch(const os::Fd& fd, Callback callback) {
  const Key key = next_key_++;
  watched_[key] = std::move(callback);
  try {
    epoll_.add(fd, key);
  } catch (...) {
    watched_.erase(key);
    throw;
  }
  return key;
}

void Service::unwatch(const os::Fd& fd, Key key) {
  if (watched_.erase(key) != 0) epoll_.remove(fd);
}

Service::Key Service::at(std::chrono::steady_clock::time_point when, Callback callback) {
  const Key key = next_key_++;
  timers_[key] = {when, std::move(callback)};
  return key;
}

Service::Key Service::on_interrupt(Callback callback) {
  const Key key = next_key_++;
  interrupt_callbacks_[key] = std::move(callback);
  return key;
}

void Service::guard_group(int leader) {
  guarded_groups_.insert(leader);
  if (guardian_) return guardian_->watch_group(leader);
  if (guarded_groups_.size() != 1) return;
  post([this] {  // after the workers, which somebody waits for
    if (!guardian_) start_guardian();
  });
}

void Service::unguard_group(int leader) noexcept {
  if (guarded_groups_.erase(leader) != 0 && guardian_) guardian_->forget_group(leader);
}

void Service::start_guardian() {
  if (guardian_starts_ == kGuardianStarts || guardian_failures_ == kGuardianTries) return;
  std::string problem = "it cannot be started";
  try {
    if (guardian_) guardian_->ensure_running();
    if (!guardian_) guardian_ = os::Guardian::shared();
    for (const int leader : guarded_groups_) guardian_->watch_group(leader);
    guardian_pidfd_ = guardian_->pidfd();
    if (guardian_pidfd_.valid()) {
      guardian_key_ = watch(guardian_pidfd_, [this] { on_guardian_end(); });
      ++guardian_starts_;
      guardian_failures_ = 0;
      return;
    }
  } catch (const std::system_error& error) {  // out of descriptors or memory for the moment
    problem = error.what();
  }
  if (guardian_failures_ == 0)
    log(LogLevel::kWarning, "the guardian is not watched, and is looked after later: " + problem);
  at(std::chrono::steady_clock::now() + kGuardianRetry * (1 << guardian_failures_++), [this] { start_guardian(); });
}

void Service::on_guardian_end() {
  unwatch(guardian_pidfd_, guardian_key_);
  start_guardian();
}

void Service::run() {
  os::set_process_name("drover-service");
  for (;;) {
    if (may_end()) return;
    for (const Key key : epoll_.wait(next_deadline())) dispatch(key);
    run_timers();
    run_posted();
  }
}

void Service::linger(std::chrono::steady_clock::time_point when, Callback callback) {
  forget_past_lingering();
  lingering_.push_back(at(when, std::move(callback)));
}

void Service::forget_past_lingering() {
  std::erase_if(lingering_, [this](Key timer) { return !timers_.contains(timer); });
}

bool Service::may_end() {
  {
    const std::scoped_lock lock(mutex_);
    if (!stopping_ || !posted_.empty()) return false;
  }
  forget_past_lingering();
  const auto now = std::chrono::steady_clock::now();
  if (!patience_) patience_ = now + kLingering;
  return lingering_.empty() || now >= *patience_;
}

void Service::dispatch(Key key) {
  if (key == kWake) return wake_.clear();
  if (key == kInterrupt) {
    interrupt_.clear();
    for (const auto& [_, callback] : std::map(interrupt_callbacks_)) run_guarded(callback);
    return;
  }
  const auto found = watched_.find(key);  // gone when an earlier callback of this round removed it
  if (found == watched_.end()) return;
  run_guarded(Callback(found->second));
}

void Service::run_posted() {
  std::vector<Callback> callbacks;
  {
    const std::scoped_lock lock(mutex_);
    callbacks.swap(posted_);
  }
  for (const Callback& callback : callbacks) run_guarded(callback);
}

void Service::run_timers() {
  const auto now = std::chrono::steady_clock::now();
  std::vector<Callback> due;
  for (auto it = timers_.begin(); it != timers_.end();) {
    if (it->second.when > now) {
      ++it;
    } else {
      due.push_back(std::move(it->second.callback));
      it = timers_.erase(it);
    }
  }
  for (const Callback& callback : due) run_guarded(callback);
}

os::Deadline Service::next_deadline() const {
  os::Deadline next;
  for (const auto& [_, timer] : timers_) {
    if (!next || timer.when < *next) next = timer.when;
  }
  return next;
}

}  // namespace drover::inline v1::worker
