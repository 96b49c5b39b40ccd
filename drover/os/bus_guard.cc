// SPDX-License-Identifier: Apache-2.0
#include "drover/os/bus_guard.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <mutex>

#include "drover/os/terminal.h"

namespace drover::inline v1::os {
namespace {

struct Range {
  std::atomic<std::uintptr_t> begin{0}, end{0};  // end 0: free. Begin is set before end.
  std::atomic<const std::string*> message{nullptr};
};

constexpr std::size_t kMostRanges = 65'536;
std::array<Range, kMostRanges> ranges;  // zero pages until used
std::atomic<std::size_t> used{0};
struct sigaction earlier {};

const std::string* message_for(std::uintptr_t address) noexcept {
  const std::size_t count = used.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uintptr_t end = ranges[i].end.load(std::memory_order_acquire);
    if (address < end && address >= ranges[i].begin.load(std::memory_order_relaxed)) return ranges[i].message.load();
  }
  return nullptr;
}

void write_text(const std::string& text) noexcept {
  [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, text.data(), text.size());
}

void act_as_before(int signal, siginfo_t* info, void* context) noexcept {
  if ((earlier.sa_flags & SA_SIGINFO) != 0 && earlier.sa_sigaction != nullptr) {
    return earlier.sa_sigaction(signal, info, context);
  }
  if (earlier.sa_handler == SIG_IGN && info->si_code <= 0) return;  // sent by a process, and to be ignored
  if (earlier.sa_handler != SIG_DFL && earlier.sa_handler != SIG_IGN) return earlier.sa_handler(signal);
  std::signal(signal, SIG_DFL);
  if (info->si_code <= 0) std::raise(signal);  // else the instruction faults again, now for good
}

void on_bus_error(int signal, siginfo_t* info, void* context) {
  const bool fault = info->si_code > 0;
  if (const std::string* const message =
          fault ? message_for(reinterpret_cast<std::uintptr_t>(info->si_addr)) : nullptr) {
    write_text(*message);
  }
  act_as_before(signal, info, context);
}

void install() {
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, nullptr, &earlier);  // before ours can run
  ::sigaction(SIGBUS, &action, nullptr);
}

std::mutex& slots_mutex() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}
std::size_t first_free = 0;  // no slot below is free; protected by the mutex

int take_slot(const std::string* message) {
  const std::scoped_lock lock(slots_mutex());
  while (first_free < kMostRanges && ranges[first_free].message.load() != nullptr) ++first_free;
  if (first_free == kMostRanges) return -1;
  ranges[first_free].message = message;
  return static_cast<int>(first_free++);
}

}  // namespace

BusGuard::BusGuard(std::span<const std::byte> range, const std::string& path)
    : message_(std::make_unique<std::string>("drover: " + sanitize(path) +
                                             " was truncated by another program while it was in use, or there is no "
                                             "memory for it: this program cannot go on\n")) {
  static std::once_flag& installed = *new std::once_flag;
  std::call_once(installed, install);
  slot_ = take_slot(message_.get());
  if (slot_ < 0) return;
  Range& entry = ranges[static_cast<std::size_t>(slot_)];
  entry.begin = reinterpret_cast<std::uintptr_t>(range.data());
  entry.end = reinterpret_cast<std::uintptr_t>(range.data() + range.size());
  std::size_t seen = used;
  const auto mine = static_cast<std::size_t>(slot_) + 1;
  while (seen < mine && !used.compare_exchange_weak(seen, mine)) {
  }
}

BusGuard::~BusGuard() {
  if (slot_ < 0) return;
  Range& entry = ranges[static_cast<std::size_t>(slot_)];
  const std::scoped_lock lock(slots_mutex());
  entry.end = 0;
  entry.message = nullptr;
  first_free = std::min(first_free, static_cast<std::size_t>(slot_));
}

BusGuard& BusGuard::operator=(BusGuard&& other) noexcept {
  std::swap(slot_, other.slot_);
  std::swap(message_, other.message_);
  return *this;
}

}  // namespace drover::inline v1::os
