// SPDX-License-Identifier: Apache-2.0
#include "drover/pool/map_job.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "drover/base/errors.h"
#include "drover/os/coarse_clock.h"
#include "drover/os/signals.h"
#include "drover/pool/submit_call.h"
#include "drover/wire/remote_error.h"

namespace drover::inline v1::detail {
namespace {

using namespace std::chrono_literals;
using Kind = shm::RecordHeader::Kind;

constexpr int kGatherPauses = 200;                  // about ten microseconds
constexpr auto kFewAwakeFor = 2ms;                  // since the last refill; a fast map has many within it
constexpr std::uint64_t kSpilledBytes = 256 << 20;  // of large results under way
constexpr auto kSecondLook = 1ms;
constexpr auto kStoppedWorkerPatience = 50ms;
constexpr auto kLongestPatience = 1s;
constexpr auto kLongestBatchWait = 200us;  // a bound on how long a result can wait for company

std::uint64_t first_window(const MapSpec& spec, std::size_t workers) {
  if (spec.options.window != 0) return spec.options.window;
  return 4 * workers * std::clamp<std::size_t>(spec.options.chunk, 1, 1 << 20);
}

std::uint64_t largest_window(const MapSpec& spec, std::size_t workers) {
  if (spec.options.window != 0) return spec.options.window;
  return std::max<std::uint64_t>(spec.job.indexed ? 32768 : 8192, first_window(spec, workers));
}

constexpr std::uint32_t bit(Kind kind) noexcept { return 1U << static_cast<std::uint32_t>(kind); }

std::uint32_t kinds_of(const JobParameters& job) noexcept {
  const std::uint32_t errors = bit(Kind::kError) | bit(Kind::kSpilledError);
  if (job.value_size == kNoValue) return errors | bit(Kind::kRun);
  return errors | (job.value_size == 0 ? bit(Kind::kSized) | bit(Kind::kSpilled) : bit(Kind::kValue));
}

void ring_doorbell(void* doorbell) { static_cast<shm::Doorbell*>(doorbell)->ring_anyway(); }

}  // namespace

MapJob::MapJob(std::shared_ptr<PoolCore> core, MapSpec spec, std::unique_ptr<InputSource> source)
    : core_(std::move(core)),
      spec_(std::move(spec)),
      source_(std::move(source)),
      job_(*core_, spec_.job),
      slot_(job_.slot()),
      kinds_(kinds_of(spec_.job)),
      deaths_seen_(core_->deaths()),
      window_(first_window(spec_, core_->crew().size())),
      largest_window_(largest_window(spec_, core_->crew().size())) {
  for (std::size_t i = 0; i < core_->lanes(); ++i) {
    lanes_.push_back({.board = core_->lane(job_.number(), spec_.job.indexed, i), .first = chunks_.size()});
    chunks_.resize(chunks_.size() + lanes_.back().board.capacity());
  }
  if (!spec_.job.indexed) input_spills_.resize(chunks_.size());
  lane_shift_ = std::countr_zero(lanes_[0].board.capacity());
  for (std::size_t i = 0; i < core_->crew().size(); ++i) {
    rings_.push_back(core_->ring(job_.number(), i, spec_.job.value_size));
  }
  encoded_.keep_in(&encoded_kept_);
  const bool fixed = spec_.job.value_size != kNoValue;
  const std::size_t record = sizeof(shm::RecordHeader) + (fixed ? shm::align8(spec_.job.value_size) : 8);
  largest_window_ = std::min(largest_window_, shm::RingProducer::sure_records(core_->kRingCapacity, record));
  window_ = std::min(window_, largest_window_);
}

void RetireMap::operator()(MapJob* map) const noexcept {
  if (!map->core()->belongs_to_this_process()) return;  // it goes on in the other process: nothing of it may be touched
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): the map must not be the last to hold it
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
  for (const Stored& stored : stored_) discard(stored.spill);
}

/// By the coarse clock: a batch of results of fast tasks takes not much longer than a look at the precise one.
bool MapJob::long_since_refill() const noexcept {
  const std::chrono::nanoseconds refill = last_refill_.time_since_epoch();
  return os::coarse_now_ns() - refill.count() > std::chrono::nanoseconds(kFewAwakeFor).count();
}

std::span<MapItem> MapJob::next() {
  core_->require_owner();
  if (holds_given_) forget_given();
  batch_size_ = 0;
  if (rings_[ring_].worth_releasing()) rings_[ring_].release();
  if (few_awake_ && long_since_refill()) wake_all();
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
  given_spill_ = {};
  discard(given_.spill);
  given_ = {};
}

void MapJob::discard(const Spill& spill) noexcept {
  if (spill.length != 0 && core_->belongs_to_this_process())
    core_->segment().discard(spill.offset, os::round_to_page(spill.length));
}

bool MapJob::deliver_stored() {
  if (stored_.empty()) return false;
  if (spec_.options.ordered && !stored_.front().there) return false;
  given_ = std::move(stored_.front());
  holds_given_ = true;
  stored_.pop_front();
  ++next_index_;
  stored_bytes_ -= given_.bytes.size() + given_.spill.length;
  MapItem& item = batch_[batch_size_++];
  item = {.index = given_.index, .data = given_.bytes.data(), .size = given_.bytes.size()};
  try {
    if (given_.spill.length != 0) {
      given_spill_ = map_spilled(core_->segment(), given_.spill.offset, given_.spill.length);
      item.data = given_spill_.data();
      item.size = given_.spill.length;
    }
    if (given_.encoded_error) given_.error = wire::decode_exception(std::span(item.data, item.size));
  } catch (...) {
    given_.error = std::current_exception();
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
  take_common(ring);
  while (batch_size_ == 0) {
    shm::Record record;
    const auto next = ring.peek(record);
    if (next != shm::RingConsumer::Next::kRecord) return next;
    Chunk* const chunk = chunk_that_fits(record);
    if (chunk == nullptr) return shm::RingConsumer::Next::kCorrupt;
    const std::uint64_t index = chunk->first + chunk->done;
    if (record.kind() == Kind::kRun) {
      const bool now = in_turn(index);
      if (!now) store_run(index, record.run_length);
      finish_items(*chunk, record.header.position, record.run_length);
      ring.pop();
      if (now) take_run(index, record.run_length);
      continue;
    }
    const bool in_place = record.kind() == Kind::kSized && in_turn(index);
    if (!in_place) store(record, index);
    ring.pop();
    finish_items(*chunk, record.header.position, 1);
    in_place ? add_to_batch(index, record.payload.data(), record.payload.size()) : static_cast<void>(deliver_stored());
  }
  return shm::RingConsumer::Next::kRecord;
}

/// The part of take_batch that runs for every single result of a small type, or run of results without a value.
void MapJob::take_common(shm::RingConsumer& ring) noexcept {
  const bool runs = spec_.job.value_size == kNoValue;
  shm::RecordHeader header;
  std::uint64_t items = 1;
  while (batch_size_ != batch_.size()) {
    const std::byte* const value = ring.peek_common(header);
    if (value == nullptr) return;
    if (runs) std::memcpy(&items, value, sizeof items);
    Chunk* const chunk = chunk_that_fits(header, items);
    if (chunk == nullptr) return;
    const std::uint64_t index = chunk->first + chunk->done;
    if (!in_turn(index)) return;
    ring.pop();
    finish_items(*chunk, header.position, items);
    runs ? take_run(index, items) : add_to_batch(index, value, spec_.job.value_size);
  }
}

/// Hands out results without values that one record has told of.
void MapJob::take_run(std::uint64_t index, std::uint64_t length) noexcept {
  add_to_batch(index, nullptr, 0);
  batch_[batch_size_ - 1].more = length - 1;
  if (!spec_.options.ordered) return;
  next_index_ += length - 1;
  const auto places = static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(length - 1, stored_.size()));
  stored_.erase(stored_.begin(), stored_.begin() + places);
}

/// All or, if there is no memory, nothing: what told of them is then read again.
void MapJob::store_run(std::uint64_t index, std::uint64_t length) {
  const std::size_t place = make_places(index, length);
  for (std::uint64_t i = 0; i < length; ++i) {
    stored_[place + i].index = index + i;
    stored_[place + i].there = true;
  }
}

/// Room for so many results in a row; where it begins.
std::size_t MapJob::make_places(std::uint64_t index, std::uint64_t count) {
  const std::uint64_t place = spec_.options.ordered ? index - next_index_ : stored_.size();
  if (stored_.size() < place + count) stored_.resize(place + count);
  return place;
}

void MapJob::add_to_batch(std::uint64_t index, const std::byte* data, std::size_t size) noexcept {
  if (spec_.options.ordered) {
    ++next_index_;
    if (!stored_.empty()) stored_.pop_front();  // its place, which nothing was put into
  }
  // Field by field: copying a whole one waits for the stores of its parts. `more` is 0: consumers count it down.
  MapItem& item = batch_[batch_size_++];
  item.index = index;
  item.data = data;
  item.size = size;
  item.failed = false;
}

void MapJob::store(const shm::Record& record, std::uint64_t index) {
  Stored result;
  result.index = index;
  result.bytes.assign(record.payload.begin(), record.payload.end());
  result.spill = {.offset = record.spill_offset, .length = record.spill_length};
  result.encoded_error = record.failed();
  if (result.spill.length != 0 && spec_.options.window == 0) {  // the window counts items; large ones weigh more
    const std::uint64_t fitting =
        std::max<std::uint64_t>(2 * core_->crew().size(), kSpilledBytes / result.spill.length);
    largest_window_ = std::min(largest_window_, fitting);
    window_ = std::min(window_, largest_window_);
  }
  store(std::move(result));
}

void MapJob::store(Stored result) {
  const std::size_t place = make_places(result.index, 1);
  result.there = true;
  stored_bytes_ += result.bytes.size() + result.spill.length;
  stored_[place] = std::move(result);
}

/// The chunk whose next unfinished items, so many, the record is the result of; nullptr when the record cannot be true.
/// The one judge of what is read out of rings: a record of a kind that this map's results do not have must go no
/// further, because who decodes it counts on its bytes.
Chunk* MapJob::chunk_that_fits(const shm::RecordHeader& header, std::uint64_t items) noexcept {
  if (header.kind >= 32 || (kinds_ >> header.kind & 1) == 0 || header.position >= chunks_.size()) return nullptr;
  Chunk& chunk = chunks_[header.position];
  return items != 0 && items <= chunk.count - chunk.done && chunk.done == header.item ? &chunk : nullptr;
}

void MapJob::finish_items(Chunk& chunk, std::size_t position, std::uint64_t items) noexcept {
  chunk.done += static_cast<std::uint32_t>(items);
  if (chunk.done == chunk.count) free_position(position);
}

void MapJob::release_rings() noexcept {
  for (shm::RingConsumer& ring : rings_) ring.release();
}

bool MapJob::something_to_do() noexcept {
  const auto filled = [](const shm::RingConsumer& ring) { return !ring.empty(); };
  return std::any_of(rings_.begin(), rings_.end(), filled) || core_->deaths() != deaths_seen_;
}

/// What is worth waking a caller for in a fast flow: a quarter of what the window lets each worker's ring hold.
std::uint32_t MapJob::batch_bytes() const noexcept {
  const std::uint64_t items = std::max<std::uint64_t>(1, window_ / (4 * rings_.size()));
  constexpr std::uint64_t kRunRecord = sizeof(shm::RecordHeader) + 8;
  const bool counted = spec_.job.value_size == kNoValue;
  const std::uint64_t bytes = counted ? items / chunk_size() * kRunRecord
                                      : items * (sizeof(shm::RecordHeader) + shm::align8(spec_.job.value_size));
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(bytes, 2, PoolCore::kRingCapacity / 8));
}

void MapJob::wait() {
  release_rings();
  const bool batch = flow_at_wait_.fast(std::chrono::steady_clock::now(), delivered_);
  // A look at a ring takes its line away from the worker: in a fast flow let some results gather first.
  for (int i = 0; batch && i < kGatherPauses; ++i) os::pause();
  if (os::spin_until(core_->spin_budget(), [this] { return something_to_do(); })) return;
  if (few_awake_) {
    ran_out_ = true;
    wake_all();
  }
  const Waiters::Sleeper sleeper(core_->waiters(), ring_doorbell, &slot_.doorbell);
  const std::uint32_t seen = slot_.doorbell.prepare(batch ? batch_bytes() : 1);
  if (!something_to_do()) {
    core_->check_usable();
    sleep(seen, batch);
  }
  slot_.doorbell.cancel();
}

void MapJob::sleep(std::uint32_t seen, bool batch) {
  // The first look is soon: a worker in the middle of a chunk looks for sleepers without a fence and may have missed
  // this one. Later looks are for armed chunks whose worker was stopped (SIGSTOP) as it was woken: another one is woken
  // for them.
  std::chrono::nanoseconds patience = batch ? std::chrono::nanoseconds(kLongestBatchWait) : kSecondLook;
  while (slot_.doorbell.wait(seen, std::chrono::steady_clock::now() + patience) == os::FutexWait::kTimedOut) {
    if (batch || something_to_do()) return;
    if (patience >= kLongestPatience) return look_for_damage();
    if (patience >= kStoppedWorkerPatience && anything_armed()) core_->crew().wake(1);
    patience = std::min<std::chrono::nanoseconds>(
        std::max<std::chrono::nanoseconds>(patience * 2, kStoppedWorkerPatience), kLongestPatience);
  }
}

bool MapJob::anything_armed() noexcept {
  for (std::size_t position = 0; position < chunks_.size(); ++position) {
    const std::uint32_t seen = word(position).load(std::memory_order_relaxed);
    if (chunks_[position].count != 0 && shm::state::phase(seen) == shm::state::kArmed) return true;
  }
  return false;
}

void MapJob::close() noexcept {
  closed_ = true;
  input_ended_ = true;
  has_encoded_ = false;
  encoded_kept_.clear();
  source_.reset();  // the user's range ends here, in the user's thread
  input_error_ = nullptr;
  if (holds_given_) forget_given();
  slot_.closed.store(1, std::memory_order_seq_cst);
  for (std::size_t position = 0; position < chunks_.size(); ++position) {
    if (chunks_[position].count == 0) continue;
    std::uint32_t armed = shm::state::kArmed;
    if (word(position).compare_exchange_strong(armed, shm::state::kFree)) free_position(position);
  }
}

bool MapJob::finished_after_close() noexcept {
  drain_rings();
  bool finished = true;
  for (std::size_t position = 0; position < chunks_.size(); ++position) {
    if (chunks_[position].count == 0) continue;
    const std::uint32_t seen = word(position).load(std::memory_order_acquire);
    bool ended = shm::state::phase(seen) == shm::state::kDone;
    if (!ended) {
      const bool claimed = shm::state::phase(seen) == shm::state::kClaimed;
      const Claimant who = claimed ? core_->crew().claimant(shm::state::owner(seen)) : Claimant::kNobody;
      if (who == Claimant::kNobody) core_->end_by_damage(kItemState);
      ended = who == Claimant::kDead || (who == Claimant::kNobody && core_->has_failed());
    }
    if (ended) free_position(position);
    finished = finished && ended;
  }
  if (finished) drain_rings();
  return finished;
}

}  // namespace drover::inline v1::detail
