// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "drover/os/self.h"
#include "drover/pool/options.h"
#include "drover/pool/segment.h"
#include "drover/pool/stats.h"
#include "drover/worker/service.h"

namespace drover::inline v1::detail {

/// A worker process that ended before it was told to.
struct WorkerDeath {
  std::uint32_t slot = 0;
  std::uint32_t incarnation = 0;
  bool timed_out = false;         ///< the pool killed it because its task took too long
  bool worked = false;            ///< it has claimed something
  std::uint64_t progress_at = 0;  ///< WorkerSlot::progress_at and progress as it left them
  std::uint32_t progress = 0;
  worker::ChildEnd end;

  /// What a task fails with that this worker had: WorkerLost or Timeout. `task` names it ("simulate, item 17").
  std::exception_ptr error(const std::string& task) const;
};

/// Which worker processes there are.
struct Roster {
  std::vector<std::uint32_t> alive;  ///< incarnations, unordered
  std::uint32_t newest = 0;          ///< incarnations above are of processes started later

  bool is_alive(std::uint32_t incarnation) const noexcept;
  bool is_dead(std::uint32_t incarnation) const noexcept { return incarnation <= newest && !is_alive(incarnation); }
};

/// Whose a claim is. kNobody: no process ever had that incarnation, so the word was written over.
enum class Claimant { kAlive, kDead, kNobody };

/// The worker processes of one pool: starts them, replaces the dead, wakes the sleeping, stops them.
/// Thread-safe; only the creating process. The listener hears of deaths on the service thread.
class Crew {
 public:
  class Listener {
   public:
    /// A worker is reaped: nothing of it runs any more. Its replacement has not been started.
    virtual void worker_died() noexcept = 0;
    /// There will be no workers any more.
    virtual void crew_failed(std::exception_ptr reason) noexcept = 0;

   protected:
    ~Listener() = default;
  };

  Crew(std::shared_ptr<worker::Service> service, PoolSegment& segment, const PoolOptions& options, Listener& listener);
  ~Crew() { stop(Duration(0)); }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  /// Starts all. Throws, with none left, when a process cannot be started.
  void start();
  /// Lets the workers finish what they run, kills those that have not ended after `grace` (or when a signal comes), and
  /// reaps all. Idempotent.
  void stop(Duration grace) noexcept;
  /// A signal has come: a stop that is going on has no patience any more.
  void interrupt() noexcept;

  std::size_t size() const noexcept { return size_; }
  /// Tells up to `tasks` sleeping workers that something is armed. After the arming.
  void wake(std::size_t tasks) noexcept;
  /// Wakes at most so many, until so many (not 0) are awake: somebody will find what was armed.
  void wake_up_to(std::size_t awake, std::size_t tasks) noexcept;
  /// Whether the calling thread and all workers that are awake have a core each.
  bool may_spin() const noexcept { return size() - header_.parked.count(size()) + 1 <= header_.cores; }

  Roster roster() const;
  /// Of a claim that was read before.
  Claimant claimant(std::uint32_t incarnation) const noexcept;
  /// Ends the pool: what lies in its memory cannot be believed. `what`: a literal. Any thread.
  void end_by_damage(const char* what) noexcept;
  /// Wakes all, whatever the masks say.
  void rouse() noexcept;
  /// Kills the worker in this slot, because it breaks the protocol.
  void kill(std::uint32_t slot) noexcept;
  /// A task with this time limit is about to be armed: looks after the limits often enough. Cheap to repeat.
  void watch_deadlines(Duration limit);
  void fill_stats(std::vector<WorkerStats>& stats) const;
  /// How a worker ended, if it was one of the last to do so.
  std::optional<WorkerDeath> death_of(std::uint32_t incarnation) const;

 private:
  struct Member {
    std::shared_ptr<worker::Child> child;
    std::uint32_t incarnation = 0;
    std::size_t restarts = 0;
    bool timed_out = false;
    std::uint64_t tasks_before = 0;  ///< WorkerSlot::tasks when this incarnation began
    std::chrono::steady_clock::time_point began;
    int failed_starts = 0;  ///< in a row; service thread
    int refusals = 0;       ///< times in a row that the system had no process for it; service thread
    worker::Service::Key retry_timer = 0;
  };
  /// Which time limits there are.
  struct Deadlines {
    std::mutex mutex;
    Duration shortest = kNever;                        ///< of the tasks that may be under way; protected by mutex
    std::chrono::steady_clock::time_point last_armed;  ///< protected by mutex
    static constexpr Duration kNever = Duration::max();
  };

  // Service thread only.
  void start_member(std::uint32_t slot);
  void on_end(std::uint32_t slot, const worker::ChildEnd& end);
  void replace(const WorkerDeath& death);
  bool died_at_start(const WorkerDeath& death, bool was_ready) const;
  void start_replacement(std::uint32_t slot);
  bool retry_later(std::uint32_t slot, const std::system_error& error);
  void fail(std::exception_ptr reason);
  void sample_memory();
  void sample_memory_later();
  void check_deadlines();
  bool kill_the_late();
  void kill_all() noexcept;

  worker::ChildSpec spec_for(std::uint32_t slot, std::uint32_t incarnation);
  void wake_worker(std::size_t worker) noexcept;
  std::size_t living() const;

  const std::shared_ptr<worker::Service> service_;
  PoolSegment& segment_;
  PoolHeader& header_;
  Listener& listener_;
  const std::size_t size_;  ///< of our own: a worker can write over the header
  const Output output_;
  const std::vector<std::string> inherited_ = os::environment();
  const std::vector<std::string> environment_;

  mutable std::mutex mutex_;
  std::condition_variable ended_;
  std::vector<Member> members_;     // protected by mutex_; written on the service thread
  std::deque<WorkerDeath> deaths_;  // protected by mutex_; the last ones, in the order of their ends
  std::uint32_t newest_ = 0;        // protected by mutex_; written on the service thread
  bool stopping_ = false;           // service thread
  worker::Service::Key memory_timer_ = 0;
  worker::Service::Key deadline_timer_ = 0;
  Deadlines deadlines_;
};

}  // namespace drover::inline v1::detail
