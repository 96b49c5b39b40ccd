// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace drover::inline v1::os {

/// Throws std::system_error for errno with the call's name and a detail ("open /proc/self/maps").
[[noreturn]] void throw_errno(const std::string& call);
[[noreturn]] void throw_error(int error, const std::string& call);

/// Owns a file descriptor. Every descriptor made here is close-on-exec. One thread at a time.
class Fd {
 public:
  Fd() noexcept = default;
  explicit Fd(int fd) noexcept : fd_(fd) {}
  ~Fd() { reset(); }
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept;

  int get() const noexcept { return fd_; }
  bool valid() const noexcept { return fd_ >= 0; }
  int release() noexcept { return std::exchange(fd_, -1); }
  void reset() noexcept;

  void set_nonblocking() const;
  void set_close_on_exec() const;

  /// Bytes read; 0 at the end of the stream, nullopt when nothing is there (non-blocking descriptors).
  std::optional<std::size_t> read_some(std::span<std::byte> buffer) const;
  /// Bytes written, nullopt when there is no room. When the reader is gone: SIGPIPE, or EPIPE where that is ignored.
  std::optional<std::size_t> write_some(std::span<const std::byte> data) const;

 private:
  int fd_ = -1;
};

struct Pipe {
  Fd read_end, write_end;
};
Pipe make_pipe();

/// /dev/null, readable and writable.
Fd open_null();

/// Takes the numbers of standard streams that are closed, so that no descriptor of ours gets one: what the program
/// prints would go there. They are /dev/null, opened the wrong way round: using them is EBADF, as before. Never fails:
/// what cannot be opened stays closed.
void fill_standard_streams() noexcept;

/// A counter in the kernel that wakes epoll; write from anywhere, a signal handler included.
class EventFd {
 public:
  EventFd();
  const Fd& fd() const noexcept { return fd_; }
  void signal() const noexcept;  ///< async-signal-safe; keeps errno
  void clear() const noexcept;

 private:
  Fd fd_;
};

/// Raises the soft limit on open descriptors to the hard one, for this process and what it starts. Never fails: a limit
/// that cannot be raised stays.
void raise_fd_limit() noexcept;

}  // namespace drover::inline v1::os
