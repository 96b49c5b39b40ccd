// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <stdexcept>
#include <string>

namespace drover::inline v1 {

/// Base of everything that Drover throws by itself. A standard exception thrown in a worker arrives as its own type
/// (see RemoteTrace), so `catch (const std::out_of_range&)` works across processes.
class __attribute__((visibility("default"))) Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The process that ran a task ended before the task did. Kind: run the task again, or give up on it; the pool goes on.
class __attribute__((visibility("default"))) WorkerLost : public Error {
 public:
  WorkerLost(const std::string& what, int pid, int exit_code, int signal, bool out_of_memory)
      : Error(what), pid_(pid), exit_code_(exit_code), signal_(signal), out_of_memory_(out_of_memory) {}

  int pid() const noexcept { return pid_; }
  /// The code given to exit(), or -1 when a signal ended the process.
  int exit_code() const noexcept { return exit_code_; }
  /// The signal that ended the process, or 0.
  int signal() const noexcept { return signal_; }
  /// True when the kernel's out-of-memory killer is known to have done it (the cgroup's events say so).
  bool killed_for_memory() const noexcept { return out_of_memory_; }

 private:
  int pid_, exit_code_, signal_;
  bool out_of_memory_;
};

/// Base of errors about a stateful actor that is gone.
class __attribute__((visibility("default"))) ActorDied : public Error {
 public:
  using Error::Error;
};

/// A deadline passed. Kind: wait longer.
class __attribute__((visibility("default"))) Timeout : public Error {
 public:
  using Error::Error;
};

/// The task was cancelled before it started, or the pool it was queued in is gone.
class __attribute__((visibility("default"))) Cancelled : public Error {
 public:
  using Error::Error;
};

/// SIGINT or SIGTERM arrived (init installs the handlers). Uncaught, it ends the program by that same signal.
class __attribute__((visibility("default"))) Interrupted : public Error {
 public:
  explicit Interrupted(int signal);
  int signal() const noexcept { return signal_; }

 private:
  int signal_;
};

/// Memory that was asked for is not there; the text has the numbers.
class __attribute__((visibility("default"))) OutOfMemory : public Error {
 public:
  using Error::Error;
};

/// The process that held a lock died; the lock was taken over and what it guards may be half-written.
class __attribute__((visibility("default"))) OwnerDied : public Error {
 public:
  using Error::Error;
};

/// The other side was built differently: another program, another version, another element type or shape.
class __attribute__((visibility("default"))) Incompatible : public Error {
 public:
  using Error::Error;
};

/// A call that cannot mean anything: wrong options, a pool without init, a name with a slash.
class __attribute__((visibility("default"))) InvalidArgument : public Error {
 public:
  using Error::Error;
};

/// What is known about an exception that was thrown in another process. Every exception that crosses a process boundary
/// derives from this beside its own type; remote_trace() finds it.
class __attribute__((visibility("default"))) RemoteTrace {
 public:
  RemoteTrace(std::string type_name, std::string message, std::string where, std::string stack);
  virtual ~RemoteTrace();
  RemoteTrace(const RemoteTrace&) = default;
  RemoteTrace& operator=(const RemoteTrace&) = default;

  /// The type as the compiler spells it, for example `my::ParseError`.
  const std::string& type_name() const noexcept { return type_name_; }
  /// what() as it was in the other process.
  const std::string& message() const noexcept { return message_; }
  /// Who threw: the worker, its pid, the function it ran.
  const std::string& where() const noexcept { return where_; }
  /// The call stack at the throw, a frame a line; empty when no stack could be taken.
  const std::string& stack() const noexcept { return stack_; }

 private:
  std::string type_name_, message_, where_, stack_;
};

/// An exception of a type that only the other process knows, or something thrown that is no std::exception.
class __attribute__((visibility("default"))) RemoteError : public Error, public RemoteTrace {
 public:
  explicit RemoteError(const RemoteTrace& trace);
};

/// The remote part of an exception, or nullptr when it was thrown in this process. Valid as long as `error`.
const RemoteTrace* remote_trace(const std::exception& error) noexcept;

}  // namespace drover::inline v1
