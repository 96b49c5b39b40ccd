// SPDX-License-Identifier: Apache-2.0
#include "drover/cli/watch_looker.h"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>

#include "drover/health/watch.h"

namespace drover::inline v1::cli {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

/// What both threads have; kept by a thread that never comes back.
struct Looker::State {
  explicit State(const health::InspectOptions& options) : watch(options) {}

  const os::EventFd event;
  health::Watch watch;  // of the thread alone

  std::mutex mutex;  // for all below
  std::condition_variable changed;
  bool stop = false, ended = false;
  std::optional<Clock::time_point> look_begun;
  std::shared_ptr<const health::Report> report;
  std::exception_ptr failure;
};

Looker::Looker(const health::InspectOptions& options) : state_(std::make_shared<State>(options)) {}

Looker::~Looker() {
  if (!thread_.joinable()) return;
  bool ended = false;
  {
    const std::lock_guard lock(state_->mutex);
    state_->stop = true;
    state_->changed.notify_all();
    ended = state_->ended;
  }
  if (ended) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

void Looker::start() {
  thread_ = std::thread([state = state_] { run(state); });
}

const os::EventFd& Looker::event() const noexcept { return state_->event; }

std::shared_ptr<const health::Report> Looker::report() const {
  const std::lock_guard lock(state_->mutex);
  if (state_->failure) std::rethrow_exception(state_->failure);
  return state_->report;
}

double Looker::looking_s() const {
  const std::lock_guard lock(state_->mutex);
  return state_->look_begun ? std::chrono::duration<double>(Clock::now() - *state_->look_begun).count() : 0;
}

bool Looker::stop(Duration limit) {
  std::unique_lock lock(state_->mutex);
  state_->stop = true;
  state_->changed.notify_all();
  if (!thread_.joinable()) return true;
  return state_->changed.wait_for(lock, limit, [this] { return state_->ended; });
}

void Looker::run(const std::shared_ptr<State>& state) {
  const auto interval = std::chrono::duration_cast<Clock::duration>(Duration(state->watch.interval()));
  std::unique_lock lock(state->mutex);
  try {
    while (!state->stop) {
      const Clock::time_point begin = Clock::now();
      state->look_begun = begin;
      lock.unlock();
      auto report = std::make_shared<const health::Report>(state->watch.look());
      lock.lock();
      state->look_begun.reset();
      state->report = std::move(report);
      state->event.signal();
      state->changed.wait_until(lock, begin + interval, [&] { return state->stop; });
    }
    lock.unlock();
    state->watch.save();
    lock.lock();
  } catch (...) {
    if (!lock.owns_lock()) lock.lock();
    state->failure = std::current_exception();
    state->look_begun.reset();
  }
  state->ended = true;
  state->event.signal();
  state->changed.notify_all();
}

}  // namespace drover::inline v1::cli
