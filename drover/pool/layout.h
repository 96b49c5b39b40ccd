// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "drover/shm/board.h"
#include "drover/shm/ring.h"
#include "drover/shm/sleepers.h"
#include "drover/worker/launch.h"

/// What lies where in a pool's segment (docs/segment_format.md). Everything starts as zero bytes. Offsets are from the
/// start of the file; a region is never moved, and an offset is never used twice.
namespace drover::inline v1::detail {

inline constexpr std::size_t kMaxJobs =
    64;  ///< maps that may be under way at once in a pool, the submit queue included
inline constexpr std::size_t kSubmitJob = 0;

/// A board's place. `tail` is on a line of its own: workers poll it.
struct BoardPlace {
  alignas(64) std::uint64_t offset;
  std::uint32_t capacity;
  std::uint32_t stride;
  std::atomic<std::uint64_t> tail;
};

/// Rings of a job: worker slot w has its ring at offset + w * (sizeof(RingHeader) + capacity).
struct RingsPlace {
  std::uint64_t offset;
  std::uint64_t capacity;
};

/// As a value_size: results have no value, only their number counts.
inline constexpr std::uint32_t kNoValue = 0xffffffff;

struct JobSlot {
  /// Of the submit queue each is twice the size of the one before. A slot for maps has lanes, all alike: those of index
  /// ranges from 0, those of other inputs from kMaxLanes.
  static constexpr std::size_t kMaxBoards = 32;
  static constexpr std::size_t kMaxLanes = kMaxBoards / 2;

  /// Changes with each job that takes the slot, after all below is written.
  alignas(64) std::atomic<std::uint32_t> generation;
  std::atomic<std::uint32_t> closed;       ///< nobody reads results any more
  std::atomic<std::uint32_t> rescan;       ///< changes when an entry that cursors have passed is armed again
  std::atomic<std::uint32_t> board_count;  ///< submit: boards in use; the last one is being armed
  std::uint32_t function;                  ///< index in program_functions()
  std::uint32_t value_size;  ///< bytes of each result when they are all alike, 0: they differ, or kNoValue
  std::uint32_t indexed;     ///< inputs are an index range
  std::uint32_t lanes;       ///< of either kind
  std::uint32_t measured;    ///< workers time their chunks, for automatic chunking
  std::uint64_t timeout_ns;  ///< the longest an item may take, 0: no limit
  std::int64_t base;         ///< first value of an index range
  RingsPlace rings;
  alignas(64) shm::Doorbell doorbell;
  std::atomic<std::uint64_t> task_ns;  ///< smoothed time of an item when measured, times 16; any worker
  std::array<BoardPlace, kMaxBoards> boards;
};

/// A chunk of a map. For index ranges the inputs are base + first, base + first + 1, ...; else they lie in the entry.
struct ChunkEntry {
  std::atomic<std::uint32_t> word;
  std::uint32_t count;
  std::uint64_t first;  ///< index of the first input
};
static_assert(sizeof(ChunkEntry) == 16);

inline constexpr std::size_t kInputPrefix = 8;  ///< before each encoded input: its length

/// A chunk whose inputs travel. Each begins at a multiple of the message alignment, with its length.
struct InputEntry {
  static constexpr std::size_t kInlineBytes = 216;
  ChunkEntry chunk;
  std::uint32_t skip;  ///< encoded inputs to pass over: they are finished already
  std::uint32_t unused;
  std::uint64_t length;  ///< bytes of encoded inputs
  std::uint64_t spill;   ///< file offset of the inputs, 0: in `bytes`
  std::byte bytes[kInlineBytes];
};
static_assert(sizeof(InputEntry) == 256);

/// A submitted task and, in its place, its result. Few bytes stand in the first line, so that a short task moves one
/// line to the worker and back; more in `arguments` and `result`; what does not fit there lies in the file, and the
/// first word there is its offset.
struct alignas(64) SubmitEntry {
  static constexpr std::size_t kNear = 16;
  static constexpr std::size_t kInlineArguments = 64;
  static constexpr std::size_t kInlineResult = 48;
  std::atomic<std::uint32_t> word;
  std::uint32_t function;
  std::uint64_t argument_length;
  std::uint64_t result_length;  ///< with the offset, written before the space for a large result is taken
  std::uint32_t failed;         ///< the result is an encoded exception; of no bytes: there was no memory for it
  std::uint32_t timed;          ///< there is a timeout
  std::byte near_arguments[kNear];
  std::byte near_result[kNear];
  std::byte arguments[kInlineArguments];
  std::uint64_t timeout_ns;  ///< the longest the task may take
  std::uint32_t retries;     ///< times the task may run again when its worker dies (the parent counts down)
  std::uint32_t unused;
  std::byte result[kInlineResult];
};
static_assert(sizeof(SubmitEntry) == 192 && offsetof(SubmitEntry, arguments) == 64);

/// A worker's own line, and what it tells about itself. Written by the worker, unless it says otherwise.
struct WorkerSlot {
  alignas(64) os::FutexWord wake;            ///< bumped by whoever took the worker's bit out of a mask
  std::atomic<std::uint32_t> ready;          ///< incarnation that finished its start
  std::atomic<std::uint64_t> tasks;          ///< finished, by all incarnations
  std::atomic<std::uint32_t> running;        ///< tasks of the claim it is at
  std::atomic<std::uint32_t> progress;       ///< items without a value that are finished of the chunk at progress_at
  std::atomic<std::uint64_t> progress_at;    ///< 0: none; else 1 + job number * 2^32 + position
  std::atomic<std::uint64_t> started_ns;     ///< steady clock
  std::atomic<std::uint64_t> idle_ns;        ///< slept or spun since then
  std::atomic<std::uint64_t> idle_since_ns;  ///< 0: busy
  std::atomic<std::uint64_t> deadline_ns;    ///< steady clock: when the running task's time is over, 0: no limit
};

struct PoolHeader {
  worker::LaunchPage launch;
  std::uint32_t worker_count;
  std::uint32_t spin_ns;      ///< how long to spin before sleeping, while there is a core for everybody
  std::uint32_t cores;        ///< that this program may use
  std::uint32_t initializer;  ///< function index + 1 of the initializer, 0: none
  std::uint64_t initializer_offset, initializer_length;  ///< its encoded arguments
  std::int64_t created_ns;                               ///< steady clock
  alignas(64) std::atomic<std::uint64_t> file_end;       ///< first byte that nobody has taken
  alignas(64) std::atomic<std::uint32_t> stop;
  std::atomic<std::uint64_t> active_jobs;  ///< a bit for each job slot in use
  alignas(64) shm::WorkerMask parked;
  alignas(64) shm::WorkerMask spinning;
  std::array<JobSlot, kMaxJobs> jobs;
  std::array<WorkerSlot, shm::WorkerMask::kMaxWorkers> workers;
};

}  // namespace drover::inline v1::detail
