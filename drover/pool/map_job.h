// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "drover/pool/map_types.h"
#include "drover/pool/range_pace.h"

namespace drover::inline v1::detail {

/// A map without types: arms inputs, reads results out of the rings, accounts for the dead. It belongs to the thread
/// that reads the results; see docs/design/001.
class MapJob {
 public:
  MapJob(std::shared_ptr<PoolCore> core, MapSpec spec, std::unique_ptr<InputSource> source);
  ~MapJob();
  /// Arms the first inputs. Throws OutOfMemory.
  void start() { refill(); }
  MapJob(const MapJob&) = delete;
  MapJob& operator=(const MapJob&) = delete;

  /// The next results, at least one but at the end; valid until the next call. An item that failed comes alone. Throws
  /// what the range of inputs threw, or why one could not be sent, once all inputs before are delivered; Interrupted;
  /// why the pool has ended; Error in a fork.
  std::span<MapItem> next();
  /// The consumer has done with so many of them.
  void count_delivered(std::uint64_t items) noexcept {
    in_flight_ -= items;
    delivered_ += items;
  }
  /// After how many more of them the consumer has to call count_delivered and top_up.
  std::uint64_t due() const noexcept {
    constexpr std::uint64_t kNever = ~std::uint64_t{0};
    if (!more_inputs() || busy_positions_ > chunks_.size() / 2)
      return kNever;  // a busy position is freed by next() only
    return in_flight_ > window_ / 2 ? in_flight_ - window_ / 2 : 1;
  }
  /// Sees to it that the workers do not run dry while a batch is being consumed. A slow range is left alone as long as
  /// there are results. Throws OutOfMemory.
  void top_up() {
    if (more_inputs() && low() && !pace_.slow()) refill();
  }

  /// Why the item that next() gave out failed.
  const std::exception_ptr& error() const noexcept { return given_.error; }

  /// Nobody reads on: cancels what no worker has claimed.
  void close() noexcept;
  /// After close: looks whether all that was claimed has ended; then the job slot is free.
  bool finished_after_close() noexcept;

  const std::shared_ptr<PoolCore>& core() const noexcept { return core_; }

 private:
  // map_job.cc: the consumer
  bool deliver_stored();
  bool deliver_from_rings();
  shm::RingConsumer::Next take_batch(shm::RingConsumer& ring);
  void store(const shm::Record& record, std::uint64_t index);
  void store(Stored result);
  void store_run(std::uint64_t index, std::uint64_t length);
  std::size_t make_places(std::uint64_t index, std::uint64_t count);
  void forget_given() noexcept;
  void take_common(shm::RingConsumer& ring) noexcept;
  void take_run(std::uint64_t index, std::uint64_t length) noexcept;
  void add_to_batch(std::uint64_t index, const std::byte* data, std::size_t size) noexcept;
  bool in_turn(std::uint64_t index) const noexcept { return !spec_.options.ordered || index == next_index_; }
  Chunk* chunk_that_fits(const shm::RecordHeader& header, std::uint64_t items) noexcept;
  Chunk* chunk_that_fits(const shm::Record& record) noexcept {
    const bool run = record.kind() == shm::RecordHeader::Kind::kRun;
    return chunk_that_fits(record.header, run ? record.run_length : 1);
  }
  void finish_items(Chunk& chunk, std::size_t position, std::uint64_t items) noexcept;
  void discard(const Spill& spill) noexcept;
  void release_rings() noexcept;
  Lane& lane_of(std::size_t position) noexcept { return lanes_[position >> lane_shift_]; }
  std::atomic<std::uint32_t>& word(std::size_t position) noexcept { return lane_of(position).board.word(position); }
  std::byte* entry(std::size_t position) noexcept { return lane_of(position).board.entry(position); }
  bool low() const noexcept { return in_flight_ <= window_ / 2 && busy_positions_ <= chunks_.size() / 2; }
  bool long_since_refill() const noexcept;
  bool something_to_do() noexcept;
  bool anything_armed() noexcept;
  void wait();
  void sleep(std::uint32_t seen, bool batch);
  std::uint32_t batch_bytes() const noexcept;

  // map_deaths.cc: what dead and broken workers leave
  void bury_the_dead();
  void look_for_damage();
  void drain_rings();
  bool keep(const shm::Record& record);
  void lose_chunk(std::uint32_t position, std::uint32_t incarnation);
  void deliver_progress(std::uint32_t position, std::uint32_t incarnation);
  void rearm_rest(std::uint32_t position, Chunk& chunk) noexcept;
  void distrust(std::uint32_t slot) noexcept;

  // map_arming.cc: inputs on their way to the workers
  void refill();
  void watch_limits();
  void end_inputs(std::exception_ptr error) noexcept;
  void publish_watched();
  void publish() noexcept;
  bool has_room() const noexcept;
  bool more_inputs() const noexcept { return !input_ended_; }
  std::uint32_t chunk_size() const noexcept;
  bool find_free_position() noexcept;
  void free_position(std::size_t position) noexcept;
  bool arm_next(std::uint32_t largest_chunk);
  bool arm_encoded(std::uint32_t count);
  std::uint32_t encode_inputs(InputEntry& entry, std::uint32_t count);
  bool encode_next_input() noexcept;
  void finish_arming(std::uint32_t count);
  void widen_window() noexcept;
  void wake_for(std::size_t chunks, std::uint64_t items) noexcept;
  void wake_all() noexcept;

  const std::shared_ptr<PoolCore> core_;
  const MapSpec spec_;
  std::unique_ptr<InputSource> source_;
  const JobLease job_;
  JobSlot& slot_;
  std::vector<Lane> lanes_;
  int lane_shift_ = 0;  ///< log2 of a lane's capacity
  std::vector<shm::RingConsumer> rings_;
  const std::uint32_t kinds_;                      ///< a bit for each kind of record that its workers may write
  std::vector<Chunk> chunks_;                      ///< by board position
  std::vector<Spill> input_spills_;                ///< where inputs lie that do not fit their entry; by board position
  std::map<std::size_t, wire::Kept> input_kept_;   ///< what inputs refer to; by board position
  std::map<std::uint64_t, std::size_t> attempts_;  ///< deaths that an item has seen, by input index

  std::array<MapItem, 64> batch_;  ///< what next() gave out
  std::size_t batch_size_ = 0;
  bool holds_given_ = false;
  Stored given_;  ///< what its bytes lie in, when not in a ring
  os::Mapping given_spill_;
  std::size_t ring_ = 0;  ///< the ring that was read last
  std::uint64_t deaths_seen_ = 0;

  std::deque<Stored> stored_;     ///< unordered: in any order; ordered: stored_[i] is item next_index_ + i
  std::uint64_t next_index_ = 0;  ///< ordered: the item that comes next
  std::size_t stored_bytes_ = 0;

  std::size_t lane_ = 0;  ///< the one that was armed last
  std::size_t busy_positions_ = 0;
  std::uint64_t next_input_ = 0;  ///< inputs armed so far
  std::uint64_t published_ = 0;   ///< those of them that workers can see
  std::size_t unpublished_chunks_ = 0;
  RangePace pace_;  ///< of a range that is no index range
  bool publish_now_ = false;
  std::uint64_t in_flight_ = 0;  ///< armed, and not yet delivered
  std::uint64_t window_;
  std::uint64_t largest_window_;
  bool input_ended_ = false;
  std::exception_ptr input_error_;
  Spill new_spill_;       ///< of the entry that is being filled
  wire::Kept new_kept_;   ///< of the entry that is being filled
  wire::Writer encoded_;  ///< one input, encoded and not yet armed
  wire::Kept encoded_kept_;
  bool has_encoded_ = false;
  bool closed_ = false;
  bool busy_caller_ = false;  ///< results have come fast since the last refill
  bool few_awake_ = false;    ///< inputs were left to whoever was awake
  bool ran_out_ = false;      ///< they were not enough for the last refill
  int vain_ = 0;              ///< grows when that is so again and again
  int refills_for_all_ = 0;   ///< so many more wake all

  std::chrono::steady_clock::time_point last_refill_;
  std::uint64_t delivered_ = 0;
  Flow flow_at_refill_;
  Flow flow_at_wait_;
};

/// Owns a map; when it is let go, what is still running of it is the pool's to wait for. In a fork of the pool's
/// process the map's memory is left as it is, never to be freed.
struct RetireMap {
  void operator()(MapJob* map) const noexcept;
};
using MapPtr = std::unique_ptr<MapJob, RetireMap>;

/// Begins a map: the workers are at it when this returns.
MapPtr start_map(std::shared_ptr<PoolCore> core, MapSpec spec, std::unique_ptr<InputSource> source);

}  // namespace drover::inline v1::detail
