// SPDX-License-Identifier: Apache-2.0
#include "drover/pool/submit_call.h"

#include <atomic>
#include <cstring>
#include <utility>

#include "drover/pool/task_error.h"

namespace drover::inline v1::detail {

std::uint64_t spill_offset(std::span<const std::byte> inline_bytes) noexcept {
  std::uint64_t offset = 0;
  std::memcpy(&offset, inline_bytes.data(), sizeof offset);
  return offset;
}

void set_spill_offset(std::span<std::byte> inline_bytes, std::uint64_t offset) noexcept {
  std::memcpy(inline_bytes.data(), &offset, sizeof offset);
}

std::span<const std::byte> SubmitCall::arguments() {
  const std::uint64_t length = entry_.argument_length;
  if (length <= SubmitEntry::kNear) return std::span(entry_.near_arguments).first(length);
  if (length <= SubmitEntry::kInlineArguments) return std::span(entry_.arguments).first(length);
  mapped_ = os::Mapping(segment_.file(), spill_offset(entry_.arguments), os::round_to_page(length));
  return {mapped_.data(), length};
}

void SubmitCall::check_claim(std::uint32_t word) const noexcept {
  end_if_forked();
  if ((word & ~shm::state::kFlags) != claim_) end_worker("the state of its task was written over");
}

void SubmitCall::put_bytes(std::span<const std::byte> bytes, bool failed) {
  require_claim();
  entry_.failed = failed ? 1 : 0;
  if (bytes.size() <= SubmitEntry::kInlineResult) {
    std::byte* const place = bytes.size() <= SubmitEntry::kNear ? entry_.near_result : entry_.result;
    if (!bytes.empty()) std::memcpy(place, bytes.data(), bytes.size());
    entry_.result_length = bytes.size();
    return;
  }
  const std::uint64_t offset = segment_.append(bytes.size());
  set_spill_offset(entry_.result, offset);
  std::atomic_signal_fence(std::memory_order_release);  // whoever sees this length after our death uses that offset
  entry_.result_length = bytes.size();
  os::fault_point();
  segment_.fill(offset, bytes);
}

void discard_spilled_arguments(const PoolSegment& segment, SubmitEntry& entry) noexcept {
  const std::uint64_t length = std::exchange(entry.argument_length, 0);
  if (length > SubmitEntry::kInlineArguments) segment.discard(spill_offset(entry.arguments), os::round_to_page(length));
}

void discard_spilled_result(const PoolSegment& segment, SubmitEntry& entry) noexcept {
  const std::uint64_t length = std::exchange(entry.result_length, 0);
  if (length > SubmitEntry::kInlineResult) segment.discard(spill_offset(entry.result), os::round_to_page(length));
}

void SubmitCall::discard() noexcept {
  discard_spilled_arguments(segment_, entry_);
  discard_spilled_result(segment_, entry_);
}

void SubmitCall::put_error(const std::exception_ptr& error) {
  const EncodedError encoded(error);
  try {
    put_bytes(encoded.bytes(), true);
  } catch (...) {  // not even room for the error: SubmitQueue::take says so
    end_worker_without_memory(std::current_exception());
    entry_.failed = 1;
    entry_.result_length = 0;
  }
}

}  // namespace drover::inline v1::detail
