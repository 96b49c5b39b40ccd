// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "drover/base/log.h"
#include "drover/pool/map_job.h"

namespace drover::inline v1::detail {
namespace state = shm::state;

void MapJob::bury_the_dead() {
  const std::uint64_t deaths = core_->deaths();
  // First who is alive, then all that was published, then the claims: a record of somebody who is dead now is in its
  // ring.
  const Roster roster = core_->crew().roster();
  drain_rings();
  bool damaged = false;
  for (std::uint32_t position = 0; position < chunks_.size(); ++position) {
    if (chunks_[position].count == 0) continue;
    const std::uint32_t seen = word(position).load(std::memory_order_acquire);
    if (state::phase(seen) == state::kArmed) continue;
    const std::uint32_t owner = state::owner(seen);
    const bool doubtful = state::phase(seen) != state::kClaimed || owner == 0 || owner > roster.newest;
    if (doubtful) {  // a newer one was started since
      damaged = damaged || state::phase(seen) != state::kClaimed || core_->crew().claimant(owner) == Claimant::kNobody;
    } else if (roster.is_dead(owner)) {
      lose_chunk(position, owner);
    }
  }
  if (damaged) core_->end_by_damage(kItemState);  // whoever may run it would answer for others
  deaths_seen_ = deaths;                          // not before: what throws above is done again
}

/// The caller has waited for long: is there something that nobody will change any more?
void MapJob::look_for_damage() {
  core_->check_header();
  if (slot_.closed.load(std::memory_order_relaxed) != 0) core_->end_by_damage("whether a map is still wanted");
  bury_the_dead();
  if (anything_armed()) core_->crew().rouse();
}

/// Takes all records out of all rings.
void MapJob::drain_rings() {
  for (std::size_t i = 0; i < rings_.size(); ++i) {
    for (;;) {
      shm::Record record;
      const auto next = rings_[i].peek(record);
      if (next == shm::RingConsumer::Next::kEmpty) break;
      if (next == shm::RingConsumer::Next::kCorrupt || !keep(record)) {
        distrust(static_cast<std::uint32_t>(i));
        break;
      }
      rings_[i].pop();
    }
    rings_[i].release();
  }
}

/// Counts and stores what a record tells, or only counts it after close. False when it cannot be true.
bool MapJob::keep(const shm::Record& record) {
  Chunk* const chunk = chunk_that_fits(record);
  const bool run = record.kind() == shm::RecordHeader::Kind::kRun;
  if (closed_) discard({.offset = record.spill_offset, .length = record.spill_length});
  if (chunk == nullptr) return closed_;  // after close a chunk may be given up while its last record is on the way
  const std::uint64_t index = chunk->first + chunk->done;
  if (!closed_) run ? store_run(index, record.run_length) : store(record, index);
  finish_items(*chunk, record.header.position, run ? record.run_length : 1);
  return true;
}

/// The item that ran when the worker died fails, or runs again; those behind it in the chunk had not begun and run
/// again.
void MapJob::lose_chunk(std::uint32_t position, std::uint32_t incarnation) {
  Chunk& chunk = chunks_[position];
  deliver_progress(position, incarnation);
  if (chunk.count == 0) return;
  // What may throw comes before what is counted: it is all done again then.
  if (spec_.job.timeout_ns != 0) core_->crew().watch_deadlines(spec_.options.timeout);
  const std::uint64_t index = chunk.first + chunk.done;
  std::size_t& attempts = attempts_[index];
  if (attempts >= spec_.options.retries) {
    Stored lost;
    lost.index = index;
    lost.error = core_->death_error(incarnation, spec_.name + ", item " + std::to_string(index));
    store(std::move(lost));
    attempts_.erase(index);
    ++chunk.done;
  } else {
    ++attempts;
  }
  if (chunk.done < chunk.count) {
    rearm_rest(position, chunk);
  } else {
    free_position(position);
  }
}

/// Items without values that the dead worker had finished and its ring had not heard of.
void MapJob::deliver_progress(std::uint32_t position, std::uint32_t incarnation) {
  const auto death = spec_.job.value_size == kNoValue ? core_->crew().death_of(incarnation) : std::nullopt;
  if (!death || death->progress_at != 1 + (std::uint64_t{job_.number()} << 32) + position) return;
  Chunk& chunk = chunks_[position];
  if (death->progress <= chunk.done || death->progress > chunk.count) return;
  store_run(chunk.first + chunk.done, death->progress - chunk.done);
  chunk.done = death->progress;
  if (chunk.done == chunk.count) free_position(position);
}

void MapJob::rearm_rest(std::uint32_t position, Chunk& chunk) noexcept {
  auto& armed = *reinterpret_cast<ChunkEntry*>(entry(position));
  if (!spec_.job.indexed) reinterpret_cast<InputEntry&>(armed).skip += chunk.done;
  chunk.first += chunk.done;
  chunk.count -= std::exchange(chunk.done, 0);
  armed.first = chunk.first;
  armed.count = chunk.count;
  lane_of(position).board.arm(position);
  slot_.rescan.fetch_add(1, std::memory_order_release);
  core_->crew().wake(1);
}

/// Ends a worker whose ring holds what cannot be: its memory is damaged. Its death then is accounted for like any
/// other.
void MapJob::distrust(std::uint32_t slot) noexcept {
  log(LogLevel::kError, "worker " + std::to_string(slot) + " wrote results that make no sense; it is being killed");
  core_->crew().kill(slot);
  rings_[slot].skip_all();
}

}  // namespace drover::inline v1::detail
