// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "drover/pool/chunk_call.h"
#include "drover/wire/function_table.h"
#include "drover/worker/launch.h"

namespace drover::inline v1::detail {

/// A worker's view of one job slot: what it has mapped of it and how far it has looked.
struct JobView {
  std::uint32_t generation = 0;
  std::uint32_t rescan = 0;
  std::vector<shm::Board> boards;
  std::vector<shm::BoardCursor> cursors;
  std::size_t board = 0;            ///< submit: the first that may still have armed entries
  std::size_t lane = 0;             ///< map: the one to look at first
  wire::Thunk thunk = nullptr;      ///< of a map
  std::unique_ptr<ChunkCall> call;  ///< of a map
};

/// An entry that this worker has claimed.
struct Claim {
  std::byte* entry = nullptr;
  std::uint32_t position = 0;  ///< in all boards of a map, one after the other
};

/// Where the encoded inputs of a chunk lie.
struct ChunkInputs {
  os::Mapping mapped;        ///< if not in the entry
  std::exception_ptr error;  ///< why there are none
};

/// What a pool's worker does until it is told to stop: claim, run, publish, sleep. One thread, the worker's first.
class WorkerLoop {
 public:
  explicit WorkerLoop(worker::ChildContext context);
  void run();

 private:
  void initialize();
  bool serve(std::size_t job);
  /// In this order: what is armed anew counts `rescan` up in the end.
  static bool changed(const JobSlot& slot, const JobView& view) noexcept {
    return slot.generation.load(std::memory_order_acquire) != view.generation ||
           slot.rescan.load(std::memory_order_acquire) != view.rescan;
  }
  void refresh(std::size_t job, JobView& view);
  void map_boards(std::size_t job, JobView& view);
  bool claim_from_lane(JobView& view, std::size_t lane, Claim& claim) const noexcept;
  bool claim_from_other_lanes(JobView& view, Claim& claim) const noexcept;
  bool claim_from_chain(JobView& view, JobSlot& slot, Claim& claim);
  void run_chunk(JobSlot& slot, JobView& view, const Claim& claim);
  void map_inputs(const InputEntry& entry, ChunkInputs& inputs, ChunkCall& call) const;
  void run_task(SubmitEntry& entry);
  bool has_work() const;
  bool stopped() const noexcept { return header_.stop.load(std::memory_order_acquire) != 0; }
  void idle();
  bool spin(std::chrono::nanoseconds budget);
  void sleep();
  void wait_for_work(std::uint32_t seen);
  void ring_doorbells();
  void note_time(JobSlot& slot, std::uint64_t begin, std::uint32_t items) noexcept;

  PoolSegment segment_;
  PoolHeader& header_;
  const std::uint32_t slot_;
  const std::uint32_t incarnation_;
  WorkerSlot& self_;
  std::array<JobView, kMaxJobs> views_;
};

/// The entry function of pool workers: pass its index as ChildSpec::entry.
std::uint32_t worker_entry();

}  // namespace drover::inline v1::detail
