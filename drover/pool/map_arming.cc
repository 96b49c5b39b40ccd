// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <utility>

#include "drover/base/errors.h"
#include "drover/pool/map_job.h"

namespace drover::inline v1::detail {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kChunkTimeNs = 20'000;  // long against the cost of a claim, short against what a person notices
constexpr std::uint32_t kLargestChunk = 0xffffff;  // what a record's item number can count
constexpr std::uint32_t kLargestIndexChunk = 1024;
constexpr std::uint32_t kLargestInputChunk = 64;
constexpr std::size_t kStoredBytesLimit = 64 << 20;  // results waiting for their turn
constexpr auto kFastRefill = 2ms;
// The caller runs out of results once in eight refills or more often: too few are awake. Seldom it does so anyway, as
// on a shared machine, where a worker that is awake may just not be running.
constexpr int kVainWeight = 8;
constexpr int kMostVain = 3 * kVainWeight;
constexpr int kRefillsForAll = 64;

}  // namespace

void MapJob::refill() {
  if (closed_) return;
  core_->require_owner();
  if (input_ended_) return publish_watched();  // something may have been thrown before they were
  widen_window();
  const std::uint32_t largest_chunk = chunk_size();
  publish_now_ = false;
  if (!spec_.job.indexed) pace_.begin();
  try {
    while (core_->usable() && has_room() && find_free_position() && arm_next(largest_chunk)) {
      if (!std::exchange(publish_now_, false)) continue;
      publish_watched();
      pace_.begin();  // what this took is not the range's fault
      if (pace_.slow() && something_to_do()) break;
    }
  } catch (const OutOfMemory&) {
    if (in_flight_ == 0) throw;  // else results that are delivered give memory back: it is tried again
  } catch (...) {
    end_inputs(std::current_exception());
  }
  publish_watched();
}

void MapJob::publish_watched() {
  watch_limits();
  publish();
}

/// The range may have taken long since the last time.
void MapJob::watch_limits() {
  if (spec_.job.timeout_ns != 0 && unpublished_chunks_ != 0) core_->crew().watch_deadlines(spec_.options.timeout);
}

/// There are no more inputs because of this, which is thrown when the results of those before are delivered.
void MapJob::end_inputs(std::exception_ptr error) noexcept {
  input_error_ = std::move(error);
  input_ended_ = true;
  has_encoded_ = false;
}

bool MapJob::has_room() const noexcept {
  return in_flight_ < window_ && !input_ended_ && stored_bytes_ < kStoredBytesLimit;
}

/// Shows the workers what is armed.
void MapJob::publish() noexcept {
  if (unpublished_chunks_ == 0) return;
  for (const Lane& lane : lanes_) lane.board.set_tail(lane.tail);
  const std::uint64_t before = std::exchange(published_, next_input_);
  wake_for(std::exchange(unpublished_chunks_, 0), published_ - before);
}

/// Wakes workers for new chunks. For less work than a wake-up takes, one that is awake is enough. A caller who is kept
/// busy by fast results needs its core: who is woken there takes turns with it. Should those awake be busy elsewhere,
/// or the caller no longer be fast, wake_all follows.
void MapJob::wake_for(std::size_t chunks, std::uint64_t items) noexcept {
  const std::uint64_t task = slot_.task_ns.load(std::memory_order_relaxed);  // times 16; 0: not known
  const bool little = task != 0 && task / 16 <= PoolCore::kSpin.count() / std::max<std::uint64_t>(items, 1);
  vain_ = std::exchange(ran_out_, false) ? vain_ + kVainWeight : std::max(0, vain_ - 1);
  if (vain_ >= kMostVain) {
    vain_ = 0;
    refills_for_all_ = kRefillsForAll;
  }
  const bool few = little || (busy_caller_ && refills_for_all_ == 0);
  if (refills_for_all_ != 0) --refills_for_all_;
  if (!few) return core_->crew().wake(chunks);
  few_awake_ = true;  // until all are woken
  const std::size_t cores = core_->header().cores;
  core_->crew().wake_up_to(little || cores < 3 ? 1 : cores - 1, chunks);
}

/// Few were awake for the last inputs, and that may not have been enough.
void MapJob::wake_all() noexcept {
  few_awake_ = false;
  core_->crew().wake(core_->crew().size());
}

bool MapJob::arm_next(std::uint32_t largest_chunk) {
  const auto room = static_cast<std::uint32_t>(std::min<std::uint64_t>(window_ - in_flight_, kLargestChunk));
  std::uint64_t count = std::min(largest_chunk, room);
  if (!spec_.job.indexed) return arm_encoded(static_cast<std::uint32_t>(count));
  const std::uint64_t left = spec_.count - next_input_;
  if (spec_.options.chunk == 0) count = std::clamp<std::uint64_t>(left / (2 * core_->crew().size()), 1, count);
  count = std::min(left, count);
  input_ended_ = left == count;
  if (count != 0) finish_arming(static_cast<std::uint32_t>(count));
  return count != 0;
}

/// Workers that ran through the whole window soon after it was filled need a larger one.
void MapJob::widen_window() noexcept {
  const auto now = std::chrono::steady_clock::now();
  const bool soon = now - std::exchange(last_refill_, now) < kFastRefill;
  busy_caller_ = flow_at_refill_.fast(now, delivered_);
  if (next_input_ != 0 && soon && in_flight_ <= window_ / 2) window_ = std::min(window_ * 2, largest_window_);
}

/// The user's, or so many that a chunk takes about kChunkTimeNs, leaving two chunks for each worker.
std::uint32_t MapJob::chunk_size() const noexcept {
  if (spec_.options.chunk != 0) {
    return static_cast<std::uint32_t>(std::min<std::size_t>(spec_.options.chunk, kLargestChunk));
  }
  const std::uint64_t task = slot_.task_ns.load(std::memory_order_relaxed);  // times 16
  if (task == 0) return 1;
  std::uint64_t count = kChunkTimeNs * 16 / task;
  count = std::min<std::uint64_t>(count, spec_.job.indexed ? kLargestIndexChunk : kLargestInputChunk);
  count = std::min<std::uint64_t>(count, window_ / (2 * core_->crew().size()));
  return static_cast<std::uint32_t>(std::max<std::uint64_t>(count, 1));
}

/// Chooses the lane that is armed next, in turn, and moves its tail to a position whose chunk is finished.
bool MapJob::find_free_position() noexcept {
  for (std::size_t tried = 0; tried < lanes_.size(); ++tried) {
    lane_ = lane_ + 1 == lanes_.size() ? 0 : lane_ + 1;
    Lane& lane = lanes_[lane_];
    if (lane.busy == lane.board.capacity()) continue;
    while (chunks_[lane.position()].count != 0) ++lane.tail;
    return true;
  }
  return false;
}

void MapJob::free_position(std::size_t position) noexcept {
  chunks_[position] = {};  // a record for it, from a damaged worker, fits no longer
  --busy_positions_;
  --lane_of(position).busy;
  if (!input_spills_.empty()) discard(std::exchange(input_spills_[position], {}));
  if (!input_kept_.empty()) input_kept_.erase(position);
}

bool MapJob::arm_encoded(std::uint32_t count) {
  auto& input = *reinterpret_cast<InputEntry*>(entry(lanes_[lane_].position()));
  input.spill = 0;
  input.skip = 0;
  const std::uint32_t encoded = encode_inputs(input, count);
  if (encoded == 0) return false;
  finish_arming(encoded);
  return true;
}

void MapJob::finish_arming(std::uint32_t count) {
  Lane& lane = lanes_[lane_];
  auto& armed = *reinterpret_cast<ChunkEntry*>(lane.board.entry(lane.tail));
  armed.first = next_input_;
  armed.count = count;
  if (!new_kept_.empty()) {
    wire::Kept& kept = input_kept_[lane.position()];  // may throw: nothing is armed yet
    kept = std::exchange(new_kept_, {});
  }
  chunks_[lane.position()] = {.first = next_input_, .count = count, .done = 0};
  if (!input_spills_.empty()) input_spills_[lane.position()] = std::exchange(new_spill_, {});
  lane.board.arm(lane.tail++);
  ++lane.busy;
  ++busy_positions_;
  ++unpublished_chunks_;
  next_input_ += count;
  in_flight_ += count;
}

/// Puts up to `count` inputs into the entry, as many as fit and are there without delay (if the user has not said how
/// many); one that fits no entry goes into the file alone.
std::uint32_t MapJob::encode_inputs(InputEntry& entry, std::uint32_t count) {
  std::size_t length = 0;
  std::uint32_t inputs = 0;
  while (inputs < count && encode_next_input()) {
    publish_now_ = pace_.note() || publish_now_;  // before the input is stored, which is not the range's doing
    const std::span<const std::byte> bytes = encoded_.bytes();  // the input's length and the input
    if (length + bytes.size() > InputEntry::kInlineBytes) {
      if (inputs != 0) break;
      new_spill_ = {.offset = core_->segment().store(bytes), .length = bytes.size()};
      entry.spill = new_spill_.offset;
      length = bytes.size();
    } else if (!bytes.empty()) {
      std::memcpy(entry.bytes + length, bytes.data(), bytes.size());
      length += shm::align8(bytes.size());
    }
    has_encoded_ = false;
    for (auto& owner : encoded_kept_) new_kept_.push_back(std::move(owner));
    encoded_kept_.clear();
    ++inputs;
    if (entry.spill != 0 || (publish_now_ && spec_.options.chunk == 0)) break;
  }
  entry.length = length;
  return inputs;
}

/// The user's range runs here. What it throws ends the inputs, and is thrown on when all before are delivered.
bool MapJob::encode_next_input() noexcept {
  if (has_encoded_) return true;
  if (input_ended_) return false;
  try {
    encoded_.clear();
    encoded_kept_.clear();
    std::byte* const length = encoded_.extend(kInputPrefix);
    std::memset(length, 0, kInputPrefix);
    has_encoded_ = source_->next(encoded_);
    const std::uint64_t size = encoded_.size() - kInputPrefix;
    std::memcpy(const_cast<std::byte*>(encoded_.bytes().data()), &size, sizeof size);
    input_ended_ = !has_encoded_;
  } catch (...) {
    end_inputs(std::current_exception());
  }
  return has_encoded_;
}

}  // namespace drover::inline v1::detail
