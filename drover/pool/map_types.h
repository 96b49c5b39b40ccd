// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "drover/pool/core.h"
#include "drover/pool/options.h"
#include "drover/wire/writer.h"

namespace drover::inline v1::detail {

inline constexpr const char* kItemState = "the state of an item of a map";  ///< what was written over

/// A job slot, taken for as long as this lives.
class JobLease {
 public:
  JobLease(PoolCore& core, const JobParameters& parameters) : core_(core), job_(core.open_job(parameters)) {}
  ~JobLease() { core_.close_job(job_); }
  JobLease(const JobLease&) = delete;
  JobLease& operator=(const JobLease&) = delete;
  std::size_t number() const noexcept { return job_; }
  JobSlot& slot() const noexcept { return core_.header().jobs[job_]; }

 private:
  PoolCore& core_;
  const std::size_t job_;
};

/// Where a map's inputs come from when they are no index range.
class InputSource {
 public:
  virtual ~InputSource() = default;
  /// Encodes the next input; false when there is none. What the user's range throws comes through.
  virtual bool next(wire::Writer& writer) = 0;
};

struct MapSpec {
  JobParameters job;
  std::uint64_t count = 0;  ///< inputs of an index range
  MapOptions options;
  std::string name;  ///< of the function, for errors
};

/// One result as the consumer gets it.
struct MapItem {
  std::uint64_t index = 0;
  const std::byte* data = nullptr;
  std::size_t size = 0;
  std::uint64_t more = 0;  ///< so many items without a value follow it, with the next indices; the consumer counts down
  bool failed = false;     ///< there are no bytes; MapJob::error() has the reason
};

/// How fast results reach the consumer.
class Flow {
 public:
  /// Whether, since the last time this was asked and not long ago, they came faster than one a microsecond.
  bool fast(std::chrono::steady_clock::time_point now, std::uint64_t delivered) noexcept {
    const auto elapsed = now - std::exchange(asked_, now);
    const std::uint64_t items = delivered - std::exchange(delivered_, delivered);
    return elapsed < kRecent && items >= kFew && elapsed < items * std::chrono::microseconds(1);
  }

 private:
  static constexpr std::chrono::milliseconds kRecent{2};
  static constexpr std::uint64_t kFew = 8;
  std::chrono::steady_clock::time_point asked_;
  std::uint64_t delivered_ = 0;
};

/// A value in the pool's file.
struct Spill {
  std::uint64_t offset = 0, length = 0;  ///< no value: 0
};

/// What is armed at a board position.
struct Chunk {
  std::uint64_t first = 0;
  std::uint32_t count = 0;  ///< 0: the position is free
  std::uint32_t done = 0;
};

/// A board, and how many of its positions were passed in arming.
struct Lane {
  shm::Board board;
  std::size_t first = 0;  ///< its first position among those of all lanes
  std::uint64_t tail = 0;
  std::size_t busy = 0;
  std::size_t position() const noexcept { return first + (tail & (board.capacity() - 1)); }
};

/// A result that was taken out of its ring before its turn.
struct Stored {
  std::uint64_t index = 0;
  std::vector<std::byte> bytes;
  Spill spill;  ///< else the bytes lie there
  std::exception_ptr error;
  bool encoded_error = false;  ///< the bytes are one
  bool there = false;
};

}  // namespace drover::inline v1::detail
