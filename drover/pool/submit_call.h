// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <optional>
#include <span>

#include "drover/pool/segment.h"
#include "drover/pool/task_error.h"

namespace drover::inline v1::detail {

/// A worker's hands on one submitted task. The thunk of the function gets it. Worker side, one thread.
class SubmitCall {
 public:
  /// `claim`: the entry's word, without flags, while the task is this worker's.
  SubmitCall(PoolSegment& segment, SubmitEntry& entry, std::uint32_t claim) noexcept
      : segment_(segment), entry_(entry), claim_(claim) {}

  /// The encoded arguments; they stay where they are while the task runs.
  std::span<const std::byte> arguments();

  /// Before anything is written of a result: ends this process if the task is no longer its own, because the entry may
  /// be another task's by now.
  void require_claim() const noexcept { check_claim(entry_.word.load(std::memory_order_relaxed)); }
  void check_claim(std::uint32_t word) const noexcept;

  void put_bytes(std::span<const std::byte> bytes, bool failed);
  void put_error(const std::exception_ptr& error);
  /// Nobody will ask for the result: gives back what arguments and result take in the file.
  void discard() noexcept;

 private:
  PoolSegment& segment_;
  SubmitEntry& entry_;
  const std::uint32_t claim_;
  os::Mapping mapped_;
};

/// Gives back what lies in the file of an entry's arguments and result; what is inline stays.
void discard_spilled_arguments(const PoolSegment& segment, SubmitEntry& entry) noexcept;
void discard_spilled_result(const PoolSegment& segment, SubmitEntry& entry) noexcept;

/// File offset of a part of an entry that does not lie inline.
std::uint64_t spill_offset(std::span<const std::byte> inline_bytes) noexcept;
void set_spill_offset(std::span<std::byte> inline_bytes, std::uint64_t offset) noexcept;

}  // namespace drover::inline v1::detail
