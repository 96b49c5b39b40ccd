// SPDX-License-Identifier: Apache-2.0
#include "drover/pool/worker_loop.h"

#include <bit>
#include <exception>
#include <utility>

#include "drover/base/duration.h"
#include "drover/os/signals.h"
#include "drover/os/throw_trace.h"
#include "drover/pool/bound_call.h"
#include "drover/pool/submit_call.h"
#include "drover/pool/task_error.h"
#include "drover/shm/block.h"
#include "drover/shm/recent_blocks.h"

namespace drover::inline v1::detail {
namespace {

constexpr int kClaimsInTurn = 8;
constexpr Duration kKeepsArrays(1);

void pool_worker(worker::ChildContext& context) { WorkerLoop(std::move(context)).run(); }

void pool_worker_thunk(void* context) { pool_worker(*static_cast<worker::ChildContext*>(context)); }

}  // namespace

std::uint32_t worker_entry() { return wire::Registered<&pool_worker, &pool_worker_thunk>::index(); }

WorkerLoop::WorkerLoop(worker::ChildContext context)
    : segment_(std::move(context.file)),
      header_(segment_.header()),
      slot_(context.order.slot),
      incarnation_(context.order.incarnation),
      self_(header_.workers.at(slot_)) {
  os::leave_termination_to_parent();
  mark_worker();
  set_worker_slot(slot_);
  shm::RecentBlocks::of_this_process().start();
}

void WorkerLoop::run() {
  const os::ThrowTraceScope keep_stacks;
  initialize();
  self_.started_ns.store(now_ns(), std::memory_order_relaxed);
  self_.idle_ns.store(0, std::memory_order_relaxed);
  self_.ready.store(incarnation_, std::memory_order_release);
  while (!stopped()) {
    bool served = false;
    for (std::uint64_t jobs = header_.active_jobs.load(std::memory_order_acquire); jobs != 0; jobs &= jobs - 1) {
      served |= serve(static_cast<std::size_t>(std::countr_zero(jobs)));
    }
    shm::RecentBlocks& recent = shm::RecentBlocks::of_this_process();
    if (!recent.empty()) recent.forget_older(kKeepsArrays);
    if (!served) idle();
  }
}

void WorkerLoop::initialize() {
  if (header_.initializer == 0) return;
  std::vector<std::byte> arguments(header_.initializer_length);
  segment_.file().read_at(header_.initializer_offset, arguments);
  BoundArguments call{arguments};
  set_running_function(header_.initializer - 1);
  wire::program_functions().thunk(header_.initializer - 1)(&call);
  end_if_forked();
}

/// Works for one job for a while, so that jobs are served in turn and the way here is paid for once. False: nothing to
/// do.
bool WorkerLoop::serve(std::size_t job) {
  JobSlot& slot = header_.jobs[job];
  JobView& view = views_[job];
  int claims = 0;
  for (; claims < kClaimsInTurn && !stopped(); ++claims) {
    if (changed(slot, view)) refresh(job, view);
    Claim claim;
    if (!(job == kSubmitJob ? claim_from_chain(view, slot, claim)
                            : claim_from_lane(view, view.lane, claim) || claim_from_other_lanes(view, claim)))
      break;
    if (slot.generation.load(std::memory_order_acquire) != view.generation) refresh(job, view);
    if (job == kSubmitJob) {
      run_task(*reinterpret_cast<SubmitEntry*>(claim.entry));
    } else {
      run_chunk(slot, view, claim);
    }
  }
  if (claims != 0 && job != kSubmitJob) view.call->ring_doorbell();
  return claims != 0;
}

void WorkerLoop::refresh(std::size_t job, JobView& view) {
  JobSlot& slot = header_.jobs[job];
  const std::uint32_t generation = slot.generation.load(std::memory_order_acquire);
  const std::uint32_t rescan = slot.rescan.load(std::memory_order_acquire);
  if (generation != view.generation) {
    view = {};
    map_boards(job, view);
    if (job != kSubmitJob) {
      const std::uint64_t stride = sizeof(shm::RingHeader) + slot.rings.capacity;
      std::byte* const rings = segment_.map(slot.rings.offset, os::round_to_page(stride * header_.worker_count));
      std::byte* const mine = rings + stride * slot_;
      const shm::RingProducer ring(reinterpret_cast<shm::RingHeader*>(mine), mine + sizeof(shm::RingHeader),
                                   slot.rings.capacity);
      view.call = std::make_unique<ChunkCall>(segment_, slot, job, ring, self_);
      view.thunk = wire::program_functions().thunk(slot.function);
    }
    view.rescan = rescan;
    view.generation = generation;
  } else if (rescan != view.rescan) {
    view.rescan = rescan;
    view.board = 0;
    for (shm::BoardCursor& cursor : view.cursors) cursor.rewind();
  }
}

void WorkerLoop::map_boards(std::size_t job, JobView& view) {
  JobSlot& slot = header_.jobs[job];
  const bool chain = job == kSubmitJob;
  const std::size_t count = chain ? slot.board_count.load(std::memory_order_acquire) : slot.lanes;
  const std::size_t first = chain || slot.indexed != 0 ? 0 : JobSlot::kMaxLanes;
  for (std::size_t i = view.boards.size(); i < count && first + i < JobSlot::kMaxBoards; ++i) {
    BoardPlace& place = slot.boards[first + i];
    std::byte* const entries = segment_.map(place.offset, std::uint64_t{place.capacity} * place.stride);
    view.boards.emplace_back(entries, place.stride, place.capacity, &place.tail);
    view.cursors.emplace_back();
  }
  if (!view.boards.empty()) view.lane = slot_ % view.boards.size();
}

bool WorkerLoop::claim_from_lane(JobView& view, std::size_t lane, Claim& claim) const noexcept {
  if (lane >= view.boards.size()) return false;  // no job was ever here: something wrote over the word of active jobs
  const shm::Board& board = view.boards[lane];
  std::uint64_t found = 0;
  if (!view.cursors[lane].claim(board, incarnation_, found)) return false;
  claim.entry = board.entry(found);
  claim.position = static_cast<std::uint32_t>(lane * board.capacity() + found);
  return true;
}

/// A map's boards are lanes: each worker has one that it looks at first, so that workers rarely meet at a cache line.
bool WorkerLoop::claim_from_other_lanes(JobView& view, Claim& claim) const noexcept {
  const std::size_t lanes = view.boards.size();
  for (std::size_t other = 1; other < lanes; ++other) {
    if (claim_from_lane(view, (view.lane + other) % lanes, claim)) return true;
  }
  return false;
}

/// The submit queue's boards follow each other: each was made when the one before was full.
bool WorkerLoop::claim_from_chain(JobView& view, JobSlot& slot, Claim& claim) {
  if (view.boards.empty()) return false;
  for (;;) {
    const shm::Board& board = view.boards[view.board];
    shm::BoardCursor& cursor = view.cursors[view.board];
    std::uint64_t found = 0;
    if (cursor.claim_here(board, incarnation_, found) || cursor.claim(board, incarnation_, found)) {
      claim.entry = board.entry(found);
      return true;
    }
    // Another board exists: nothing is armed in this one any more, but what was armed before may not have been seen
    // yet.
    if (slot.board_count.load(std::memory_order_acquire) <= view.board + 1) return false;
    if (!cursor.at_end(board)) continue;
    map_boards(kSubmitJob, view);
    ++view.board;
  }
}

/// A process that may not map so much (ulimit -v, a limit that its initializer has set) can still run other items.
void WorkerLoop::map_inputs(const InputEntry& entry, ChunkInputs& inputs, ChunkCall& call) const {
  call.skip = entry.skip;
  if (entry.spill == 0) {
    call.inputs = wire::Reader({entry.bytes, entry.length});
    return;
  }
  try {
    inputs.mapped = os::Mapping(segment_.file(), entry.spill, os::round_to_page(entry.length));
    call.inputs = wire::Reader({inputs.mapped.data(), entry.length});
  } catch (...) {
    inputs.error = std::current_exception();
    end_worker_without_memory(inputs.error);
  }
}

void WorkerLoop::run_chunk(JobSlot& slot, JobView& view, const Claim& claim) {
  auto& entry = *reinterpret_cast<ChunkEntry*>(claim.entry);
  ChunkCall& call = *view.call;
  self_.running.store(entry.count, std::memory_order_relaxed);  // first: whatever ends this worker, it has worked
  set_running_function(slot.function);
  call.begin(entry, claim.position);
  std::optional<ChunkInputs> inputs;
  if (slot.indexed == 0) map_inputs(reinterpret_cast<const InputEntry&>(entry), inputs.emplace(), call);
  const std::uint64_t begin = slot.measured != 0 ? now_ns() : 0;
  const bool counting = slot.value_size == kNoValue;
  if (counting) call.begin_counting();
  inputs && inputs->error ? call.put_error_for_all(inputs->error) : view.thunk(&call);
  if (counting) call.end_counting();
  // First the tasks: at every moment one of both says that this worker has worked (WorkerDeath::worked).
  self_.tasks.store(self_.tasks.load(std::memory_order_relaxed) + call.finished(), std::memory_order_relaxed);
  self_.running.store(0, std::memory_order_release);
  if (call.finished() < call.count) {  // the job was closed: the entry says itself that no more will come of it
    entry.word.store(shm::state::kDone, std::memory_order_release);
  }
  if (begin != 0 && call.finished() != 0) note_time(slot, begin, call.finished());
  if (call.count > 1) call.ring_doorbell();
}

void WorkerLoop::note_time(JobSlot& slot, std::uint64_t begin, std::uint32_t items) noexcept {
  const std::uint64_t each = (now_ns() - begin) * 16 / items;
  const std::uint64_t old = slot.task_ns.load(std::memory_order_relaxed);
  slot.task_ns.store(old == 0 ? each : (old * 3 + each) / 4, std::memory_order_relaxed);
}

void WorkerLoop::run_task(SubmitEntry& entry) {
  namespace state = shm::state;
  entry.result_length = 0;
  set_running_function(entry.function);
  const bool timed = entry.timed != 0;
  if (timed) start_task_clock(self_, entry.timeout_ns);
  SubmitCall call(segment_, entry, state::claimed_by(incarnation_));
  self_.running.store(1, std::memory_order_relaxed);
  wire::program_functions().thunk(entry.function)(&call);
  if (timed) stop_task_clock(self_);
  self_.tasks.store(self_.tasks.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  self_.running.store(0, std::memory_order_release);
  os::fault_point();
  std::uint32_t seen = entry.word.load(std::memory_order_relaxed);
  call.check_claim(seen);
  if ((seen & state::kDetached) != 0) call.discard();
  while (!entry.word.compare_exchange_weak(seen, state::kDone | (seen & state::kDetached), std::memory_order_acq_rel)) {
    call.check_claim(seen);
  }
  os::fault_point();
  if ((seen & state::kWaited) != 0) os::futex_wake(entry.word);
}

bool WorkerLoop::has_work() const {
  if (stopped()) return true;
  for (std::uint64_t jobs = header_.active_jobs.load(std::memory_order_acquire); jobs != 0; jobs &= jobs - 1) {
    const auto job = static_cast<std::size_t>(std::countr_zero(jobs));
    const JobSlot& slot = header_.jobs[job];
    const JobView& view = views_[job];
    if (changed(slot, view)) return true;
    const std::size_t first = job == kSubmitJob ? view.board : 0;
    if (job == kSubmitJob && slot.board_count.load(std::memory_order_acquire) != view.boards.size()) return true;
    for (std::size_t i = first; i < view.boards.size(); ++i) {
      if (job == kSubmitJob && view.cursors[i].armed_here(view.boards[i])) return true;
      if (!view.cursors[i].at_end(view.boards[i])) return true;
    }
  }
  return false;
}

void WorkerLoop::idle() {
  ring_doorbells();
  if (has_work() || spin(std::chrono::nanoseconds(1))) return;  // a short spin, which is not worth counting as idle
  const IdleTime idle(self_);
  if (!spin(std::chrono::nanoseconds(header_.spin_ns))) sleep();
}

/// A caller that wanted many results at once gets the few there are: no more are coming from here.
void WorkerLoop::ring_doorbells() {
  for (std::uint64_t jobs = header_.active_jobs.load(std::memory_order_acquire); jobs != 0; jobs &= jobs - 1) {
    const auto job = static_cast<std::size_t>(std::countr_zero(jobs));
    if (job == kSubmitJob || views_[job].generation == 0) continue;
    views_[job].call->ring_doorbell_for_any();
  }
}

/// After a while without work it lets go of arrays, whose owners may want the memory back, and of those it has sent.
void WorkerLoop::wait_for_work(std::uint32_t seen) {
  shm::RecentBlocks& recent = shm::RecentBlocks::of_this_process();
  Duration patience = kKeepsArrays;
  while (!recent.empty() || shm::release_received() != 0) {
    if (os::futex_wait(self_.wake, seen, os::deadline_after(patience)) != os::FutexWait::kTimedOut) return;
    recent.forget_older(kKeepsArrays);
    patience *= 2;  // what nobody has received may stay for ever
  }
  os::futex_wait(self_.wake, seen);
}

/// True when there is something to do. Spins only while everybody awake, the caller included, has a core.
bool WorkerLoop::spin(std::chrono::nanoseconds budget) {
  const std::size_t awake = header_.worker_count - header_.parked.count(header_.worker_count);
  if (awake + 1 > header_.cores) return false;
  const bool alone =
      header_.worker_count == 1;  // then no waker has to choose: the line of the mask can stay where it is
  if (alone) return os::spin_until(budget, [this] { return has_work(); });
  header_.spinning.set(slot_);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (os::spin_until(budget, [this] { return has_work(); })) {
    header_.spinning.take(slot_);
    return true;
  }
  return !header_.spinning.take(slot_);  // somebody took it and counts on this worker: it looks again before it sleeps
}

void WorkerLoop::sleep() {
  const std::uint32_t seen = self_.wake.load(std::memory_order_acquire);
  header_.parked.set(slot_);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with Crew::wake
  os::fault_point();
  if (!has_work()) wait_for_work(seen);
  header_.parked.take(slot_);
}

}  // namespace drover::inline v1::detail
