// SPDX-License-Identifier: Apache-2.0
#include "drover/pool/map_job.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "drover/base/errors.h"
#include "drover/os/signals.h"
#include "drover/pool/submit_call.h"
#include "drover/wire/remote_error.h"

namespace drover::inline v1::detail {
namespace {

using namespace std::chrono_literals;
using Kind = shm::RecordHeader::Kind;

constexpr auto kFastFlow = 2ms;  // between sleeps; below, many results are worth one wake-up
constexpr std::uint64_t kFastItems = 64;
constexpr auto kLongestBatchWait = 200us;  // a bound on how long a result can wait for company

std::uint64_t first_window(const MapSpec& spec, std::size_t workers) {
  if (spec.options.window != 0) return spec.options.window;
  return 4 * workers * std::max<std::size_t>(1, spec.options.chunk);
}

std::uint64_t largest_window(const MapSpec& spec, std::size_t workers) {
  if (spec.options.window != 0) return spec.options.window;
  const std::uint64_t items = spec.job.indexed ? 32768 : 8192;
  return std::max<std::uint64_t>(items, first_window(spec, workers));
}

void ring_doorbell(void* doorbell) { static_cast<shm::Doorbell*>(doorbell)->ring_anyway(); }

}  // namespace

MapJob::MapJob(std::shared_ptr<PoolCore> core, MapSpec spec, std::unique_ptr<InputSource> source)
    : core_(std::move(core)),
      spec_(std::move(spec)),
      source_(std::move(source)),
      job_(core_->open_job(spec_.job)),
      slot_(core_->header().jobs[job_]),
      deaths_seen_(core_->deaths()),
      window_(first_window(spec_, core_->crew().size())),
      largest_window_(largest_window(spec_, core_->crew().size())) {
  for (std::size_t i = 0; i < slot_.board_count.load(std::memory_order_relaxed); ++i) {
    BoardPlace& place = slot_.boards[i];
    std::byte* const entries = core_->segment().map(place.offset, std::uint64_t{place.capacity} * place.stride);
    lanes_.push_back({.board = {entries, place.stride, place.capacity, &place.tail}, .first = chunks_.size()});
    chunks_.resize(chunks_.size() + place.capacity);
  }
  lane_shift_ = std::countr_zero(lanes_[0].board.capacity());
  const std::size_t workers = core_->crew().size();
  const std::uint64_t stride = sizeof(shm::RingHeader) + slot_.rings.capacity;
  std::byte* const rings = core_->segment().map(slot_.rings.offset, os::round_to_page(stride * workers));
  for (std::size_t i = 0; i < workers; ++i) {
    std::byte* const at = rings + stride * i;
    rings_.emplace_back(reinterpret_cast<shm::RingHeader*>(at), at + sizeof(shm::RingHeader), slot_.rings.capacity,
                        spec_.job.value_size);
  }
}

void RetireMap::operator()(MapJob* map) const noexcept {
  const std::shared_ptr<PoolCore> core = map->core();
  core->retire(std::unique_ptr<MapJob>(map));
}

MapPtr start_map(std::shared_ptr<PoolCore> core, MapSpec spec, std::unique_ptr<InputSource> source) {
  MapPtr map(new MapJob(std::move(core), std::move(spec), std::move(source)));
  map->start();
  return map;
}

MapJob::~MapJob() {
  forget_given();
  for (const Stored& stored : stored_) {
    if (stored.spill_length != 0) core_->segment().discard(stored.spill_offset, os::round_to_page(stored.spill_length));
  }
}

std::span<const MapItem> MapJob::next() {
  if (holds_given_) forget_given();
  batch_size_ = 0;
  if (rings_[ring_].worth_releasing()) rings_[ring_].release();
  for (;;) {
    if (const int signal = os::pending_interrupt()) throw Interrupted(signal);
    top_up();
    if (deliver_stored() || deliver_from_rings()) return std::span(batch_).first(batch_size_);
    if (core_->deaths() != deaths_seen_) {
      bury_the_dead();
      continue;
    }
    refill();
    if (in_flight_ == 0 && !more_inputs()) {
      if (input_error_) std::rethrow_exception(std::exchange(input_error_, nullptr));
      return {};
    }
    wait();
  }
}

void MapJob::forget_given() noexcept {
  holds_given_ = false;
  given_ = {};
  if (given_spill_length_ == 0) return;
  given_spill_ = {};
  core_->segment().discard(given_spill_offset_, os::round_to_page(std::exchange(given_spill_length_, 0)));
}

bool MapJob::deliver_stored() {
  if (stored_.empty()) return false;
  if (spec_.options.ordered && !stored_.front().there) return false;
  given_ = std::move(stored_.front());
  holds_given_ = true;
  stored_.pop_front();
  ++next_index_;
  stored_bytes_ -= given_.bytes.size();
  MapItem& item = batch_[batch_size_++];
  item = {.index = given_.index, .data = given_.bytes.data(), .size = given_.bytes.size(), .failed = false};
  if (given_.spill_length != 0) {
    given_spill_offset_ = given_.spill_offset;
    given_spill_length_ = given_.spill_length;
    try {
      given_spill_ = map_spilled(core_->segment(), given_spill_offset_, given_spill_length_);
      item.data = given_spill_.data();
      item.size = given_spill_length_;
    } catch (...) {
      given_.error = std::current_exception();
    }
  }
  item.failed = given_.error != nullptr;
  return true;
}

bool MapJob::deliver_from_rings() {
  for (std::size_t tried = 0; tried < rings_.size(); ++tried) {
    const auto next = take_batch(rings_[ring_]);
    if (batch_size_ != 0) return true;
    if (next == shm::RingConsumer::Next::kCorrupt) distrust(static_cast<std::uint32_t>(ring_));
    rings_[ring_].release();
    ring_ = ring_ + 1 == rings_.size() ? 0 : ring_ + 1;
  }
  return false;
}

/// Takes results out of a ring: as many as can be read where they lie, else one.
shm::RingConsumer::Next MapJob::take_batch(shm::RingConsumer& ring) {
  take_values(ring);
  while (batch_size_ == 0) {
    shm::Record record;
    const auto next = ring.peek(record);
    if (next != shm::RingConsumer::Next::kRecord) return next;
    Chunk* const chunk = chunk_of(record.header);
    if (chunk == nullptr) return shm::RingConsumer::Next::kCorrupt;
    const std::uint64_t index = chunk->first + chunk->done;
    const bool in_place = record.kind() == Kind::kSized && in_turn(index);
    if (!in_place) store(record, index);
    ring.pop();
    finish_item(*chunk, record.header.position);
    in_place ? add_to_batch(index, record.payload.data(), record.payload.size()) : static_cast<void>(deliver_stored());
  }
  return shm::RingConsumer::Next::kRecord;
}

/// The part of take_batch that runs for every single result of a small type.
void MapJob::take_values(shm::RingConsumer& ring) noexcept {
  shm::RecordHeader header;
  while (batch_size_ != batch_.size()) {
    const std::byte* const value = ring.peek_value(header);
    if (value == nullptr) return;
    Chunk* const chunk = chunk_of(header);
    if (chunk == nullptr) return;
    const std::uint64_t index = chunk->first + chunk->done;
    if (!in_turn(index)) return;
    ring.pop();
    finish_item(*chunk, header.position);
    add_to_batch(index, value, spec_.job.value_size);
  }
}

void MapJob::add_to_batch(std::uint64_t index, const std::byte* data, std::size_t size) noexcept {
  if (spec_.options.ordered) {
    ++next_index_;
    if (!stored_.empty()) stored_.pop_front();  // its place, which nothing was put into
  }
  MapItem& item = batch_[batch_size_++];  // field by field: copying a whole one waits for the stores of its parts
  item.index = index;
  item.data = data;
  item.size = size;
  item.failed = false;
}

void MapJob::store(const shm::Record& record, std::uint64_t index) {
  Stored* place = nullptr;
  if (!spec_.options.ordered) {
    place = &stored_.emplace_back();
  } else {
    if (stored_.size() <= index - next_index_) stored_.resize(index - next_index_ + 1);
    place = &stored_[index - next_index_];
  }
  place->index = index;
  place->there = true;
  place->bytes.assign(record.payload.begin(), record.payload.end());
  place->spill_offset = record.spill_offset;
  place->spill_length = record.spill_length;
  if (record.kind() == Kind::kError) place->error = wire::decode_exception(place->bytes);
  stored_bytes_ += place->bytes.size();
}

void MapJob::store_error(std::uint64_t index, std::exception_ptr error) {
  shm::Record nothing{};
  store(nothing, index);
  (spec_.options.ordered ? stored_[index - next_index_] : stored_.back()).error = std::move(error);
}

/// The chunk whose next unfinished item the record is the result of; nullptr when the record cannot be true.
MapJob::Chunk* MapJob::chunk_of(const shm::RecordHeader& header) noexcept {
  if (header.position >= chunks_.size()) return nullptr;
  Chunk& chunk = chunks_[header.position];
  return chunk.done < chunk.count && chunk.done == header.item ? &chunk : nullptr;
}

void MapJob::finish_item(Chunk& chunk, std::size_t position) noexcept {
  chunk.attempts = 0;
  if (++chunk.done == chunk.count) free_position(position);
}

void MapJob::release_rings() noexcept {
  for (shm::RingConsumer& ring : rings_) ring.release();
}

bool MapJob::something_to_do() noexcept {
  const auto filled = [](const shm::RingConsumer& ring) { return !ring.empty(); };
  return std::any_of(rings_.begin(), rings_.end(), filled) || core_->deaths() != deaths_seen_;
}

bool MapJob::fast_flow() noexcept {
  const auto now = std::chrono::steady_clock::now();
  const bool fast = now - std::exchange(last_wait_, now) < kFastFlow && delivered_ - delivered_at_wait_ >= kFastItems;
  delivered_at_wait_ = delivered_;
  return fast;
}

void MapJob::wait() {
  release_rings();
  if (os::spin_until(core_->spin_budget(), [this] { return something_to_do(); })) return;
  const bool batch = fast_flow();
  const Waiters::Sleeper sleeper(core_->waiters(), ring_doorbell, &slot_.doorbell);
  const std::uint32_t seen = slot_.doorbell.prepare(batch ? PoolCore::kRingCapacity / 8 : 1);
  if (!something_to_do()) {
    core_->check_usable();
    os::Deadline deadline;
    if (batch) deadline = std::chrono::steady_clock::now() + kLongestBatchWait;
    slot_.doorbell.wait(seen, deadline);
  }
  slot_.doorbell.cancel();
}

void MapJob::close() noexcept {
  closed_ = true;
  input_ended_ = true;
  has_encoded_ = false;
  forget_given();
  slot_.closed.store(1, std::memory_order_seq_cst);
  for (std::size_t position = 0; position < chunks_.size(); ++position) {
    if (chunks_[position].count == 0) continue;
    std::uint32_t armed = shm::state::kArmed;
    if (word(position).compare_exchange_strong(armed, shm::state::kFree)) free_position(position);
  }
  for (shm::RingConsumer& ring : rings_) ring.nudge();
}

bool MapJob::finished_after_close() noexcept {
  const Roster roster = core_->crew().roster();
  drain_rings();
  bool finished = true;
  for (std::size_t position = 0; position < chunks_.size(); ++position) {
    if (chunks_[position].count == 0) continue;
    const std::uint32_t seen = word(position).load(std::memory_order_acquire);
    const bool ended = shm::state::phase(seen) != shm::state::kClaimed || roster.is_dead(shm::state::owner(seen));
    if (ended) free_position(position);
    finished = finished && ended;
  }
  if (finished) drain_rings();
  return finished;
}

}  // namespace drover::inline v1::detail
