// SPDX-License-Identifier: Apache-2.0
#include "drover/os/signals.h"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <exception>
#include <new>

#include "drover/base/errors.h"

namespace drover::inline v1::os {

std::atomic<int> detail::pending_interrupt{0};

namespace {

constexpr std::array kInterrupts = {SIGINT, SIGTERM};

std::atomic<const EventFd*> listener{nullptr};
std::atomic<int> listening_process{0};  // a fork of it has the handlers and the listener, but nobody who listens
std::terminate_handler previous_terminate = nullptr;

void restore_default(int signal) noexcept {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  ::sigaction(signal, &action, nullptr);
}

[[noreturn]] void end_by(int signal) noexcept {
  restore_default(signal);
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  ::raise(signal);
  std::abort();
}

void on_interrupt(int signal) {
  const EventFd* const event = listener.load();
  if (event == nullptr || listening_process.load() != ::getpid()) {
    restore_default(signal);
    ::raise(signal);  // delivered when this handler returns
    return;
  }
  detail::pending_interrupt = signal;
  for (const int each : kInterrupts) {
    struct sigaction action {};
    ::sigaction(each, nullptr, &action);
    if (action.sa_handler == on_interrupt) restore_default(each);  // the other one may be the user's
  }
  event->signal();
}

void do_nothing(int) {}

void set_handler(int signal, void (*handler)(int)) noexcept {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(signal, &action, nullptr);
}

void on_terminate() {
  if (const std::exception_ptr error = std::current_exception()) {
    try {
      std::rethrow_exception(error);
    } catch (const Interrupted& interrupted) {
      end_by(interrupted.signal());
    } catch (...) {  // NOLINT(bugprone-empty-catch): the previous handler reports it
    }
  }
  previous_terminate();
}

}  // namespace

void install_interrupt_handlers() {
  if (previous_terminate != nullptr) return;
  previous_terminate = std::set_terminate(on_terminate);
  for (const int signal : kInterrupts) {
    struct sigaction action {};
    ::sigaction(signal, nullptr, &action);
    if ((action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == SIG_DFL) set_handler(signal, on_interrupt);
  }
}

InterruptListener::InterruptListener(const EventFd& event) noexcept : event_(&event) {
  listening_process = ::getpid();
  listener = event_;
}

InterruptListener::~InterruptListener() {
  const EventFd* mine = event_;
  listener.compare_exchange_strong(mine, nullptr);  // unless a successor has taken over
}

void leave_interrupts_to_parent() noexcept { set_handler(SIGINT, do_nothing); }

void leave_termination_to_parent() noexcept { set_handler(SIGTERM, do_nothing); }

SignalBlock::SignalBlock() noexcept {
  static_assert(sizeof(sigset_t) <= sizeof saved_);
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, new (saved_) sigset_t);
}

SignalBlock::~SignalBlock() {
  ::pthread_sigmask(SIG_SETMASK, std::launder(reinterpret_cast<sigset_t*>(saved_)), nullptr);
}

}  // namespace drover::inline v1::os
