// SPDX-License-Identifier: Apache-2.0
#include "drover/pool/submit_queue.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "drover/base/errors.h"
#include "drover/pool/core.h"
#include "drover/pool/submit_call.h"
#include "drover/wire/function_table.h"
#include "drover/wire/remote_error.h"

namespace drover::inline v1::detail {
namespace state = shm::state;
namespace {

constexpr std::uint32_t kFirstCapacity = 256;
constexpr auto kStoppedWorkerPatience = std::chrono::milliseconds(50);
constexpr auto kDamagePatience = std::chrono::milliseconds(1000);
constexpr auto kPollsLook = std::chrono::milliseconds(100);
constexpr const char* kTaskState = "the state of a task";
constexpr std::size_t kEntriesToTry = 16;  // positions looked at before a larger board is made
/// The word of an entry that is free again. One that is zero was never used, or was written over while its task runs.
constexpr std::uint32_t kFreeAgain = 0xf4eeu << 8 | state::kFree;

/// Nothing more will come of it. (A word that nobody can have written counts: it shall not keep a caller waiting.)
bool is_final(std::uint32_t word) noexcept {
  return state::phase(word) != state::kArmed && state::phase(word) != state::kClaimed;
}

/// Puts a task without options into a free entry. `spilled`: where its arguments lie if they do not fit the entry.
void fill(SubmitEntry& entry, std::uint32_t function, std::span<const std::byte> arguments, std::uint64_t spilled) {
  entry.function = function;
  entry.argument_length = arguments.size();
  entry.result_length = 0;
  if (arguments.size() > SubmitEntry::kInlineArguments) {
    set_spill_offset(entry.arguments, spilled);
  } else if (!arguments.empty()) {
    const bool near = arguments.size() <= SubmitEntry::kNear;
    std::memcpy(near ? entry.near_arguments : entry.arguments, arguments.data(), arguments.size());
  }
}

/// Keeps a sleep on an entry's word interruptible.
void poke_word(void* target) {
  auto& word = *static_cast<os::FutexWord*>(target);
  word.fetch_or(state::kPoked, std::memory_order_acq_rel);
  os::futex_wake(word);
}

}  // namespace

void SubmitQueue::open() {
  add_board(kFirstCapacity);
  JobSlot& slot = core_.header().jobs[kSubmitJob];
  slot.generation.store(1, std::memory_order_release);
  core_.header().active_jobs.fetch_or(1, std::memory_order_release);
}

void SubmitQueue::add_board(std::uint32_t capacity) {
  JobSlot& slot = core_.header().jobs[kSubmitJob];
  const std::size_t index = boards_.size();
  if (index == JobSlot::kMaxBoards) throw OutOfMemory("too many submitted tasks whose results nobody has taken");
  BoardPlace& place = slot.boards[index];
  const std::uint64_t bytes = std::uint64_t{capacity} * sizeof(SubmitEntry);
  const std::uint64_t offset = core_.segment().append(bytes);
  place.offset = offset;
  place.capacity = capacity;
  place.stride = sizeof(SubmitEntry);
  boards_.push_back({.board = {core_.segment().map(offset, bytes), sizeof(SubmitEntry), capacity, &place.tail}});
  slot.board_count.store(static_cast<std::uint32_t>(boards_.size()), std::memory_order_release);
}

SubmitEntry* SubmitQueue::find_free(OwnBoard& own) noexcept {
  for (std::size_t i = 0; i < kEntriesToTry; ++i, ++own.tail) {
    auto& entry = *reinterpret_cast<SubmitEntry*>(own.board.entry(own.tail));
    const std::uint32_t word = entry.word.load(std::memory_order_acquire);
    if ((word & state::kDetached) != 0 && is_final(word) && !is_damaged(word)) free(entry);
    const std::uint32_t free_word = own.tail < own.board.capacity() ? state::kFree : kFreeAgain;
    if (entry.word.load(std::memory_order_acquire) == free_word) return &entry;
  }
  return nullptr;
}

SubmitEntry& SubmitQueue::free_entry() {
  SubmitEntry* entry = find_free(boards_.back());
  if (entry == nullptr) {
    add_board(static_cast<std::uint32_t>(boards_.back().board.capacity() * 2));
    entry = find_free(boards_.back());
  }
  if (entry == nullptr) throw Error(std::string(kWrittenOver) + ": a new board is not empty");
  return *entry;
}

/// Holds the mutex. `kept` becomes what the entry's last task has left, if it did, to be let go without the mutex.
void SubmitQueue::keep(const SubmitEntry& entry, wire::Kept& kept) {
  wire::Kept before = take_kept_locked(entry);
  if (!kept.empty()) kept_[&entry] = std::move(kept);
  kept = std::move(before);
  if (kept_count_.exchange(kept_.size(), std::memory_order_relaxed) == 0 && !kept_.empty()) core_.release_kept_soon();
}

wire::Kept SubmitQueue::take_kept(const SubmitEntry& entry) {
  if (kept_count_.load(std::memory_order_relaxed) == 0) return {};
  const std::scoped_lock lock(mutex_);
  return take_kept_locked(entry);
}

wire::Kept SubmitQueue::take_kept_locked(const SubmitEntry& entry) {
  auto node = kept_.extract(&entry);
  kept_count_.store(kept_.size(), std::memory_order_relaxed);
  return node ? std::move(node.mapped()) : wire::Kept{};
}

bool SubmitQueue::release_kept() {
  std::vector<wire::Kept> done;  // let go without the mutex
  const std::scoped_lock lock(mutex_);
  for (auto it = kept_.begin(); it != kept_.end();) {
    if (is_final(it->first->word.load(std::memory_order_acquire))) {
      done.push_back(std::move(it->second));
      it = kept_.erase(it);
    } else {
      ++it;
    }
  }
  kept_count_.store(kept_.size(), std::memory_order_relaxed);
  return !kept_.empty();
}

SubmitEntry& SubmitQueue::submit(std::uint32_t function, std::span<const std::byte> arguments, wire::Kept kept,
                                 const CallOptions& options) {
  core_.check_usable();
  // Large ones are copied before the mutex is taken, which others and the service thread want.
  const bool spilled = arguments.size() > SubmitEntry::kInlineArguments;
  const std::uint64_t offset = spilled ? core_.segment().store(arguments) : 0;
  try {
    if (options.timeout > Duration(0)) core_.crew().watch_deadlines(options.timeout);
    std::unique_lock lock(mutex_);
    SubmitEntry& entry = free_entry();
    // What lies beyond the first line comes first: workers poll that line, and take it away between two writes.
    entry.retries = static_cast<std::uint32_t>(options.retries);
    entry.timeout_ns = static_cast<std::uint64_t>(options.timeout.count() * 1e9);
    entry.timed = entry.timeout_ns != 0 ? 1 : 0;
    fill(entry, function, arguments, offset);
    if (!kept.empty() || kept_count_.load(std::memory_order_relaxed) != 0) keep(entry, kept);
    OwnBoard& own = boards_.back();
    own.board.arm(own.tail);
    own.board.set_tail(++own.tail);
    lock.unlock();
    core_.crew().wake(1);
    return entry;
  } catch (...) {
    if (spilled) core_.segment().discard(offset, os::round_to_page(arguments.size()));
    throw;
  }
}

bool SubmitQueue::finished(const SubmitEntry& entry) noexcept {
  return is_final(entry.word.load(std::memory_order_acquire));
}

bool SubmitQueue::wait(SubmitEntry& entry, const os::Deadline& deadline) {
  core_.require_owner();
  const auto done = [&entry] { return finished(entry); };
  if (done() || os::spin_until(core_.spin_budget(), done)) return true;
  const Waiters::Sleeper sleeper(core_.waiters(), poke_word, &entry.word);
  auto next_look = std::chrono::steady_clock::now() + kDamagePatience;
  for (;;) {
    std::uint32_t word = entry.word.fetch_or(state::kWaited, std::memory_order_acq_rel) | state::kWaited;
    if (is_final(word)) return true;
    if ((word & state::kPoked) != 0) {
      entry.word.fetch_and(~state::kPoked, std::memory_order_acq_rel);
      word &= ~state::kPoked;
    }
    core_.check_usable();  // news that came before is seen here; later news changes the word
    auto until = next_look;
    if (state::phase(word) == state::kArmed)  // the worker that was woken for it may have been stopped
      until = std::min(until, std::chrono::steady_clock::now() + kStoppedWorkerPatience);
    if (deadline) until = std::min(until, *deadline);
    if (os::futex_wait(entry.word, word, until) != os::FutexWait::kTimedOut) continue;
    const bool armed = state::phase(word) == state::kArmed, over = deadline && until == *deadline;
    if (until == next_look) {
      look_for_damage(entry);
      next_look = std::chrono::steady_clock::now() + kDamagePatience;
      if (armed) core_.crew().rouse();
    } else if (over && polls_may_look()) {
      look_for_damage(entry);
    }
    if (over) return finished(entry);
    if (armed) core_.crew().wake(1);
  }
}

bool SubmitQueue::cancel(SubmitEntry& entry) noexcept {
  std::uint32_t word = entry.word.load(std::memory_order_acquire);
  while (state::phase(word) == state::kArmed) {
    if (entry.word.compare_exchange_weak(word, state::kCancelled, std::memory_order_acq_rel)) return true;
  }
  return state::phase(word) == state::kCancelled;
}

/// Whether nobody can have left this word in an entry whose result is awaited. Whoever runs the task may still write
/// into the entry, so that it must not be used again.
bool SubmitQueue::is_damaged(std::uint32_t word) const noexcept {
  switch (state::phase(word)) {
    case state::kDone:
    case state::kCancelled:
      return false;
    case state::kLost:
      return core_.crew().claimant(state::owner(word)) == Claimant::kNobody;
    default:
      return true;
  }
}

void SubmitQueue::take(SubmitEntry& entry, const std::function<void(std::span<const std::byte>)>& read) {
  const std::uint32_t word = entry.word.load(std::memory_order_acquire);
  if (is_damaged(word)) {
    core_.end_by_damage(kTaskState);
    throw WorkerLost(std::string(kWrittenOver) + ": " + kTaskState, 0, -1, 0, false);
  }
  struct Free {
    SubmitQueue& queue;
    SubmitEntry& entry;
    ~Free() {
      const wire::Kept kept = queue.take_kept(entry);
      queue.free(entry);
    }
  } const free_at_end{*this, entry};
  if (state::phase(word) == state::kCancelled)
    throw Cancelled("the task was cancelled, or its pool ended before it was finished");
  if (state::phase(word) != state::kDone) {
    const auto name = wire::function_name(wire::program_functions().text(entry.function));
    std::rethrow_exception(core_.death_error(state::owner(word), std::string(name)));
  }
  const std::uint64_t length = entry.result_length;  // once: the worker's memory is not to be trusted
  if (entry.failed != 0 && length == 0) {
    const auto name = std::string(wire::function_name(wire::program_functions().text(entry.function)));
    throw RemoteError(RemoteTrace("an exception", "its task failed where there was no memory for its text", name, ""));
  }
  os::Mapping mapping;
  std::span<const std::byte> bytes(entry.result);
  if (length <= SubmitEntry::kNear) bytes = entry.near_result;
  if (length > SubmitEntry::kInlineResult) {
    mapping = map_spilled(core_.segment(), spill_offset(entry.result), length);
    bytes = {mapping.data(), length};
  }
  bytes = bytes.first(length);
  if (entry.failed != 0) std::rethrow_exception(wire::decode_exception(bytes));
  read(bytes);
}

void SubmitQueue::free(SubmitEntry& entry) noexcept {
  discard_spilled_arguments(core_.segment(), entry);
  discard_spilled_result(core_.segment(), entry);
  entry.word.store(kFreeAgain, std::memory_order_release);
}

void SubmitQueue::detach(SubmitEntry& entry) noexcept {
  if (!core_.belongs_to_this_process()) return;
  const std::uint32_t before = entry.word.fetch_or(state::kDetached, std::memory_order_acq_rel);
  // A finished one may be freed by a submit at this moment, which has the mutex: take it too and look again.
  if (!is_final(before)) return;
  if (is_damaged(before)) return core_.end_by_damage(kTaskState);  // its task may run: the entry is not used again
  wire::Kept kept;                                                 // let go without the mutex
  const std::scoped_lock lock(mutex_);
  const std::uint32_t now = entry.word.load(std::memory_order_acquire);
  if (!is_final(now) || (now & state::kDetached) == 0) return;
  kept = take_kept_locked(entry);
  free(entry);
}

template <class Visit>
void SubmitQueue::for_each_entry(const Visit& visit) const {
  for (const OwnBoard& own : boards_) {
    for (std::uint64_t i = 0; i < own.board.capacity(); ++i) visit(*reinterpret_cast<SubmitEntry*>(own.board.entry(i)));
  }
}

void SubmitQueue::settle_claims() noexcept {
  bool damaged = false;
  {
    const std::scoped_lock lock(mutex_);
    for_each_entry([&](SubmitEntry& entry) {
      const std::uint32_t word = entry.word.load(std::memory_order_acquire);
      if (state::phase(word) != state::kClaimed) return;
      const Claimant claimant = core_.crew().claimant(state::owner(word));
      if (claimant == Claimant::kDead) retry_or_lose(entry, word);
      damaged = damaged || claimant == Claimant::kNobody;
    });
  }
  if (damaged) core_.end_by_damage(kTaskState);
}

/// Callers that wait for short times, again and again, look as well, but not each time.
bool SubmitQueue::polls_may_look() noexcept {
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  auto next = next_poll_look_.load(std::memory_order_relaxed);
  return now >= next &&
         next_poll_look_.compare_exchange_strong(next, now + std::chrono::steady_clock::duration(kPollsLook).count());
}

/// A caller has waited for long: is there something that nobody will change any more?
void SubmitQueue::look_for_damage(const SubmitEntry& entry) noexcept {
  core_.check_header();
  const std::uint32_t word = entry.word.load(std::memory_order_acquire);
  const bool claimed = state::phase(word) == state::kClaimed;
  if (claimed && core_.crew().claimant(state::owner(word)) != Claimant::kAlive) settle_claims();
}

void SubmitQueue::retry_or_lose(SubmitEntry& entry, std::uint32_t word) noexcept {
  discard_spilled_result(core_.segment(), entry);
  const bool again = entry.retries > 0 && entry.retries <= kMostRetries;  // more: it was written over
  if (again) --entry.retries;
  const std::uint32_t base = again ? state::kArmed : (state::owner(word) << 8 | state::kLost);
  // The owner is dead; only a getter's flags can change now.
  while (!entry.word.compare_exchange_weak(word, base | (word & (state::kDetached | (again ? state::kWaited : 0))),
                                           std::memory_order_acq_rel)) {
  }
  if (again) {
    core_.header().jobs[kSubmitJob].rescan.fetch_add(1, std::memory_order_release);
    core_.crew().wake(1);
  } else {
    os::futex_wake(entry.word);
  }
}

void SubmitQueue::cancel_all() noexcept {
  const std::scoped_lock lock(mutex_);
  for_each_entry([](SubmitEntry& entry) {
    std::uint32_t word = entry.word.load(std::memory_order_acquire);
    while (state::phase(word) == state::kArmed || state::phase(word) == state::kClaimed) {
      if (!entry.word.compare_exchange_weak(word, state::kCancelled | (word & state::kDetached))) continue;
      os::futex_wake(entry.word);
      return;
    }
  });
}

std::size_t SubmitQueue::queued() const {
  const std::scoped_lock lock(mutex_);
  std::size_t count = 0;
  for_each_entry([&](const SubmitEntry& entry) {
    count += state::phase(entry.word.load(std::memory_order_relaxed)) == state::kArmed ? 1 : 0;
  });
  return count;
}

}  // namespace drover::inline v1::detail
