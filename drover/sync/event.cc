// SPDX-License-Identifier: Apache-2.0
#include "drover/sync/event.h"

#include "drover/os/fault_point.h"

namespace drover::inline v1 {

void Event::set() noexcept {
  std::atomic<std::uint32_t>& word = state().word;
  std::uint32_t seen = word.load(std::memory_order_relaxed);
  // Set already: whoever waits has been, or is about to be, woken; a killed setter's wake-up is made good here.
  while ((seen & 1U) == 0 && !word.compare_exchange_weak(seen, (seen + 2) | 1U, std::memory_order_acq_rel)) {
  }
  os::fault_point();
  state().waiters.wake_all();
}

bool Event::wait_until(const os::Deadline& deadline) {
  const std::atomic<std::uint32_t>& word = state().word;
  const std::uint32_t before = word.load(std::memory_order_acquire);
  const auto was_set = [&] {
    const std::uint32_t now = word.load(std::memory_order_acquire);
    return (now & 1U) != 0 || now >> 1U != before >> 1U;
  };
  const sync::Waited waited = state().waiters.wait(deadline, true, was_set, [] {});
  if (waited == sync::Waited::kInterrupted) sync::throw_interrupted();
  return waited == sync::Waited::kDone;
}

}  // namespace drover::inline v1
