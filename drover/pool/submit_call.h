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
  SubmitCall(PoolSegment& segment, SubmitEntry& entry) : segment_(segment), entry_(entry) {}

  /// The encoded arguments; they stay where they are while the task runs.
  std::span<const std::byte> arguments();

  void put_bytes(std::span<const std::byte> bytes, bool failed);
  void put_error(const std::exception_ptr& error);
  /// Nobody will ask for the result: gives back what arguments and result take in the file.
  void discard() noexcept;

 private:
  PoolSegment& segment_;
  SubmitEntry& entry_;
  const TaskProcess process_;
  os::Mapping mapped_;
};

/// Gives back what lies in the file of an entry's arguments and result; what is inline stays.
void discard_spilled_arguments(const PoolSegment& segment, SubmitEntry& entry) noexcept;
void discard_spilled_result(const PoolSegment& segment, SubmitEntry& entry) noexcept;

/// File offset of a part of an entry that does not lie inline.
std::uint64_t spill_offset(std::span<const std::byte> inline_bytes) noexcept;
void set_spill_offset(std::span<std::byte> inline_bytes, std::uint64_t offset) noexcept;

}  // namespace drover::inline v1::detail
