// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "drover/os/fd.h"

namespace drover::inline v1::os {

/// Signals are the process's, so this is the one piece of global state: whether SIGINT or SIGTERM came.

/// Installs handlers for SIGINT and SIGTERM where the default action stands; a program's own handlers are left alone.
/// The first signal is noted and told to the listener; from then on the default actions are back, so a second one ends
/// the process. Without a listener a signal acts as by default at once. Also makes an Interrupted that nobody catches
/// end the process by that signal. Idempotent.
void install_interrupt_handlers();

namespace detail {
extern std::atomic<int> pending_interrupt;
}

/// The signal that came, or 0. Stays until the process ends. Async-signal-safe.
inline int pending_interrupt() noexcept { return detail::pending_interrupt.load(std::memory_order_relaxed); }

/// While it lives, `event` is signalled when a signal comes. The one made last is the one that counts.
class InterruptListener {
 public:
  explicit InterruptListener(const EventFd& event) noexcept;
  ~InterruptListener();
  InterruptListener(const InterruptListener&) = delete;
  InterruptListener& operator=(const InterruptListener&) = delete;

 private:
  const EventFd* const event_;
};

/// In a worker: an interrupt from the terminal is the parent's to act on. A handler that does
/// nothing (not SIG_IGN, which programs started by the user's functions would inherit).
void leave_interrupts_to_parent() noexcept;
/// The same for SIGTERM, which a batch system sends to every process of a job.
void leave_termination_to_parent() noexcept;

/// Blocks every signal for the calling thread and the threads it starts, until destroyed.
class SignalBlock {
 public:
  SignalBlock() noexcept;
  ~SignalBlock();
  SignalBlock(const SignalBlock&) = delete;
  SignalBlock& operator=(const SignalBlock&) = delete;

 private:
  alignas(16) unsigned char saved_[128];
};

}  // namespace drover::inline v1::os
