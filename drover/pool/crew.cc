// SPDX-License-Identifier: Apache-2.0
#include "drover/pool/crew.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "drover/base/errors.h"
#include "drover/base/log.h"
#include "drover/os/memory.h"
#include "drover/os/self.h"
#include "drover/os/signals.h"
#include "drover/pool/chunk_call.h"
#include "drover/pool/inner_threads.h"
#include "drover/pool/worker_loop.h"

namespace drover::inline v1::detail {
namespace {

constexpr int kFailedStartsAllowed = 3;
constexpr auto kMemorySamplePeriod = std::chrono::seconds(1);
constexpr std::size_t kDeathsRemembered = 4096;
constexpr std::uint32_t kMostIncarnations = 0xffffff;  // what a board's word has room for
constexpr Duration kShortestTick(0.001);
constexpr Duration kLongestTick(1);
constexpr auto kClaimedSoon = std::chrono::seconds(1);  // what was armed so long ago waits for no idle worker
constexpr auto kStartIsOver = std::chrono::seconds(10);
constexpr auto kRetryPeriod = std::chrono::milliseconds(100);
constexpr int kRetriesWithoutWorkers = 100;
constexpr Duration kKillPatience(5);  // a killed process that does not go hangs in the kernel: nothing more can be done

std::string damaged() { return std::string("the pool has ended: ") + kWrittenOver; }

std::string worker_name(const WorkerDeath& death) {
  return "worker " + std::to_string(death.slot) + " (pid " + std::to_string(death.end.pid) + ")";
}

std::chrono::steady_clock::duration steady(Duration duration) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(duration);
}

/// What passes when other programs end or free something.
bool is_transient(const std::error_code& code) {
  return code == std::errc::resource_unavailable_try_again || code == std::errc::not_enough_memory ||
         code == std::errc::too_many_files_open || code == std::errc::too_many_files_open_in_system;
}

}  // namespace

std::exception_ptr WorkerDeath::error(const std::string& task) const {
  if (timed_out) {
    return std::make_exception_ptr(Timeout(task + " took longer than its time limit; " + worker_name(*this) +
                                           ", which ran it, was killed and replaced"));
  }
  const os::ExitStatus& status = end.status;
  return std::make_exception_ptr(WorkerLost(worker_name(*this) + " was lost with " + task + ": it " + end.describe(),
                                            end.pid, status.code, status.signal, end.killed_for_memory));
}

Crew::Crew(std::shared_ptr<worker::Service> service, PoolSegment& segment, const PoolOptions& options,
           Listener& listener)
    : service_(std::move(service)),
      segment_(segment),
      header_(segment.header()),
      listener_(listener),
      size_(header_.worker_count),
      output_(options.output),
      environment_(inner_thread_limits(inherited_, header_.cores, header_.worker_count)),
      members_(header_.worker_count) {}

void Crew::start() {
  service_->call([this] {
    try {
      for (std::uint32_t slot = 0; slot < size(); ++slot) start_member(slot);
    } catch (...) {
      stopping_ = true;
      kill_all();
      throw;
    }
    sample_memory_later();
  });
}

worker::ChildSpec Crew::spec_for(std::uint32_t slot, std::uint32_t incarnation) {
  worker::ChildSpec spec;
  spec.entry = worker_entry();
  spec.slot = slot;
  spec.incarnation = incarnation;
  spec.name = "drover-worker-" + std::to_string(slot);
  spec.file = &segment_.file();
  spec.inherited = inherited_;
  spec.environment = environment_;
  spec.output = output_;
  spec.on_end = [this, slot](const worker::ChildEnd& end) { on_end(slot, end); };
  return spec;
}

void Crew::start_member(std::uint32_t slot) {
  if (newest_ == kMostIncarnations) throw Error("the pool has ended: it has replaced 16 million workers");
  const std::uint32_t incarnation = newest_ + 1;
  header_.workers[slot].idle_since_ns.store(0, std::memory_order_relaxed);  // what the one before has left
  {
    const std::scoped_lock lock(mutex_);  // on the roster before it can claim anything
    newest_ = incarnation;
    Member& member = members_[slot];
    member.incarnation = incarnation;
    member.timed_out = false;
    member.tasks_before = header_.workers[slot].tasks.load(std::memory_order_relaxed);
    member.began = std::chrono::steady_clock::now();
  }
  try {
    auto child = worker::Child::start(*service_, spec_for(slot, incarnation));
    const std::scoped_lock lock(mutex_);
    members_[slot].child = std::move(child);
  } catch (...) {
    const std::scoped_lock lock(mutex_);
    members_[slot].incarnation = 0;
    throw;
  }
}

void Crew::on_end(std::uint32_t slot, const worker::ChildEnd& end) {
  WorkerDeath death;
  death.slot = slot;
  death.progress_at = header_.workers[slot].progress_at.exchange(0, std::memory_order_acquire);
  death.progress = header_.workers[slot].progress.load(std::memory_order_relaxed);
  death.end = end;
  const std::uint64_t tasks = header_.workers[slot].tasks.load(std::memory_order_relaxed);
  death.worked = header_.workers[slot].running.load(std::memory_order_relaxed) != 0;
  std::shared_ptr<worker::Child> gone;
  {
    const std::scoped_lock lock(mutex_);
    Member& member = members_[slot];
    gone = std::move(member.child);
    member.child = nullptr;
    death.incarnation = std::exchange(member.incarnation, 0);
    death.timed_out = member.timed_out;
    death.worked = death.worked || tasks != member.tasks_before;
    deaths_.push_back(death);  // before anybody can see that this incarnation is gone
    if (deaths_.size() > kDeathsRemembered) deaths_.pop_front();
  }
  header_.parked.take(slot);
  header_.spinning.take(slot);
  wake(1);  // it may have died owing this to another worker
  header_.workers[slot].deadline_ns.store(0, std::memory_order_relaxed);
  header_.workers[slot].running.store(0, std::memory_order_relaxed);
  if (!stopping_) {
    listener_.worker_died();
    replace(death);
  }
  ended_.notify_all();
}

void Crew::replace(const WorkerDeath& death) {
  const bool was_ready = header_.workers[death.slot].ready.load(std::memory_order_acquire) == death.incarnation;
  int& failed_starts = members_[death.slot].failed_starts;
  failed_starts = died_at_start(death, was_ready) ? failed_starts + 1 : 0;
  const std::string what = worker_name(death) + " " + death.end.describe();
  if (header_.stop.load(std::memory_order_relaxed) != 0 || header_.worker_count != size_) {
    return fail(std::make_exception_ptr(WorkerLost(damaged() + ". The last to die: " + what, death.end.pid,
                                                   death.end.status.code, death.end.status.signal, false)));
  }
  if (!was_ready && death.end.status.code == worker::kExitIncompatible) {
    return fail(std::make_exception_ptr(Incompatible("the pool's workers cannot start: " + what)));
  }
  if (failed_starts >= kFailedStartsAllowed) {
    return fail(std::make_exception_ptr(
        WorkerLost("the pool has ended: a worker died at its start " + std::to_string(failed_starts) +
                       " times in a row. The last time: " + what,
                   death.end.pid, death.end.status.code, death.end.status.signal, death.end.killed_for_memory)));
  }
  log(LogLevel::kWarning, what + "; it is being replaced");
  start_replacement(death.slot);
}

/// Whether another one in its place is likely to die just so, for nothing that a task did. An idle worker that somebody
/// kills, or that ends after it was well for a while, tells nothing about the next.
bool Crew::died_at_start(const WorkerDeath& death, bool was_ready) const {
  if (death.worked) return false;
  if (!was_ready) return true;
  const bool somebody_killed_it = death.end.status.signal == SIGKILL && !death.end.killed_for_memory;
  return !somebody_killed_it && std::chrono::steady_clock::now() - members_[death.slot].began < kStartIsOver;
}

void Crew::start_replacement(std::uint32_t slot) {
  try {
    start_member(slot);
    members_[slot].refusals = 0;
    const std::scoped_lock lock(mutex_);
    ++members_[slot].restarts;
  } catch (const std::system_error& error) {
    if (!retry_later(slot, error)) fail(std::current_exception());
  } catch (...) {
    fail(std::current_exception());
  }
}

/// A full process table, for example, is no reason to give up a pool while others of its workers work.
bool Crew::retry_later(std::uint32_t slot, const std::system_error& error) {
  Member& member = members_[slot];
  if (!is_transient(error.code())) return false;
  if (living() == 0 && member.refusals >= kRetriesWithoutWorkers) return false;
  if (member.refusals++ == 0) {
    log(LogLevel::kWarning,
        "worker " + std::to_string(slot) + " cannot be started now, and is tried again: " + error.what());
  }
  member.retry_timer = service_->at(std::chrono::steady_clock::now() + kRetryPeriod, [this, slot] {
    if (!stopping_) start_replacement(slot);
  });
  return true;
}

void Crew::fail(std::exception_ptr reason) {
  stopping_ = true;
  kill_all();
  listener_.crew_failed(std::move(reason));
}

void Crew::kill_all() noexcept {
  for (const Member& member : members_) {
    if (member.child) member.child->send(SIGKILL);
  }
}

std::size_t Crew::living() const {
  return static_cast<std::size_t>(
      std::count_if(members_.begin(), members_.end(), [](const Member& m) { return m.child; }));
}

void Crew::stop(Duration grace) noexcept {
  service_->call([this] {
    stopping_ = true;  // first: an end that was asked for is no death
    service_->forget(memory_timer_);
    service_->forget(deadline_timer_);
    for (const Member& member : members_) service_->forget(member.retry_timer);
  });
  header_.stop.store(1, std::memory_order_seq_cst);
  rouse();
  const auto all_gone = [this] { return living() == 0; };
  std::unique_lock lock(mutex_);
  ended_.wait_for(lock, grace, [&] { return all_gone() || os::pending_interrupt() != 0; });
  if (all_gone()) return;
  lock.unlock();
  service_->call([this] { kill_all(); });
  lock.lock();
  if (ended_.wait_for(lock, kKillPatience, all_gone)) return;
  lock.unlock();
  service_->call([this] {
    const std::scoped_lock clear_lock(mutex_);
    members_.clear();
  });
}

void Crew::interrupt() noexcept {
  const std::scoped_lock lock(mutex_);
  ended_.notify_all();
}

void Crew::wake(std::size_t tasks) noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the fence of a worker that is about to sleep
  for (; tasks > 0; --tasks) {
    if (header_.spinning.take_any(size_) != shm::WorkerMask::kMaxWorkers) continue;
    const std::size_t worker = header_.parked.take_any(size_);
    if (worker == shm::WorkerMask::kMaxWorkers) return;
    wake_worker(worker);
  }
}

void Crew::wake_up_to(std::size_t awake, std::size_t tasks) noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // as in wake: who is not yet parked will see the work
  const std::size_t now = size_ - std::min(size_, header_.parked.count(size_));
  if (now < awake) wake(std::min(tasks, awake - now));
}

void Crew::rouse() noexcept {
  for (std::size_t i = 0; i < size(); ++i) wake_worker(i);
}

void Crew::wake_worker(std::size_t worker) noexcept {
  header_.workers[worker].wake.fetch_add(1, std::memory_order_release);
  os::futex_wake(header_.workers[worker].wake);
}

void Crew::end_by_damage(const char* what) noexcept {
  try {
    service_->post([this, what] {
      const std::string text = damaged() + ": " + what;
      if (!stopping_) fail(std::make_exception_ptr(WorkerLost(text, 0, -1, 0, false)));
    });
  } catch (...) {  // no memory: who waits looks again
  }
}

void Crew::kill(std::uint32_t slot) noexcept {
  service_->call([&] {
    if (slot < members_.size() && members_[slot].child) members_[slot].child->send(SIGKILL);
  });
}

void Crew::sample_memory() {
  sample_memory_later();
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const bool idle = header_.workers[i].idle_since_ns.load(std::memory_order_relaxed) != 0;
    if (members_[i].child && !idle) members_[i].child->sample_memory();
  }
}

void Crew::sample_memory_later() {
  memory_timer_ = service_->at(std::chrono::steady_clock::now() + kMemorySamplePeriod, [this] { sample_memory(); });
}

void Crew::watch_deadlines(Duration limit) {
  {
    const std::scoped_lock lock(deadlines_.mutex);
    deadlines_.last_armed = std::chrono::steady_clock::now();
    if (limit >= deadlines_.shortest) return;
    deadlines_.shortest = limit;
  }
  try {
    service_->post([this] {
      service_->forget(deadline_timer_);
      if (!stopping_) check_deadlines();
    });
  } catch (...) {
    const std::scoped_lock lock(deadlines_.mutex);
    deadlines_.shortest = Deadlines::kNever;  // the next one posts again
    throw;
  }
}

/// Looks again after an eighth of the shortest limit. Limits are forgotten once all workers are idle and what was armed
/// with one must have been claimed: who arms the next makes the looks frequent again. Not as soon as all are idle: the
/// worker that is to claim a task may not have got to it.
void Crew::check_deadlines() {
  const bool all_idle = kill_the_late();
  const auto now = std::chrono::steady_clock::now();
  Duration period = kLongestTick;
  {
    const std::scoped_lock lock(deadlines_.mutex);
    if (all_idle && now - deadlines_.last_armed > kClaimedSoon) deadlines_.shortest = Deadlines::kNever;
    period = std::clamp(deadlines_.shortest / 8, kShortestTick, kLongestTick);
  }
  deadline_timer_ = service_->at(now + steady(period), [this] { check_deadlines(); });
}

/// True when all workers are idle.
bool Crew::kill_the_late() {
  const std::uint64_t now = now_ns();
  bool all_idle = true;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    WorkerSlot& slot = header_.workers[i];
    all_idle = all_idle && slot.idle_since_ns.load(std::memory_order_relaxed) != 0;
    std::uint64_t deadline = slot.deadline_ns.load(std::memory_order_relaxed);
    if (deadline == 0 || deadline > now || !members_[i].child) continue;
    if (!slot.deadline_ns.compare_exchange_strong(deadline, kTimeIsOver)) continue;  // it finished just now
    const std::scoped_lock lock(mutex_);
    members_[i].timed_out = true;
    members_[i].child->send(SIGKILL);
  }
  return all_idle;
}

void Crew::fill_stats(std::vector<WorkerStats>& stats) const {
  const std::scoped_lock lock(mutex_);
  stats.resize(members_.size());
  const std::uint64_t now = now_ns();
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const WorkerSlot& slot = header_.workers[i];
    WorkerStats& out = stats[i];
    out.pid = members_[i].child ? members_[i].child->pid() : 0;
    out.ready = out.pid != 0 && slot.ready.load(std::memory_order_acquire) == members_[i].incarnation;
    out.tasks = slot.tasks.load(std::memory_order_relaxed);
    out.restarts = members_[i].restarts;
    out.queue_depth = slot.running.load(std::memory_order_relaxed);
    if (out.ready) {
      const std::uint64_t since = slot.idle_since_ns.load(std::memory_order_relaxed);
      const std::uint64_t idle =
          slot.idle_ns.load(std::memory_order_relaxed) + (since != 0 && since < now ? now - since : 0);
      const std::uint64_t up = now - slot.started_ns.load(std::memory_order_relaxed);
      out.busy = std::chrono::nanoseconds(up > idle ? up - idle : 0);
    }
    const auto memory = out.pid != 0 ? os::process_memory_if_known(out.pid) : std::nullopt;
    if (memory) {
      out.memory_bytes = memory->rss_bytes;
      out.peak_memory_bytes = memory->peak_rss_bytes;
    }
  }
}

}  // namespace drover::inline v1::detail
