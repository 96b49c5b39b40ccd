// SPDX-License-Identifier: Apache-2.0
#include "drover/os/fd.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

namespace drover::inline v1::os {

void throw_errno(const std::string& call) { throw_error(errno, call); }

void throw_error(int error, const std::string& call) {
  const char* const advice = error == EMFILE ? " (this process has all descriptors that it may have: raise `ulimit -n`)"
                             : error == ENFILE ? " (the machine has no descriptor left: fs.file-max)"
                             : error == EAGAIN
                                 ? " (the limit on processes and threads is used up: raise `ulimit -u`, or "
                                   "pids.max of the control group)"
                                 : "";
  throw std::system_error(error, std::generic_category(), call + advice);
}

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void Fd::reset() noexcept {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));  // never retried: after EINTR Linux has closed it
}

void Fd::set_nonblocking() const {
  const int flags = ::fcntl(fd_, F_GETFL);
  if (flags < 0 || ::fcntl(fd_, F_SETFL, flags | O_NONBLOCK) < 0) throw_errno("fcntl O_NONBLOCK");
}

void Fd::set_close_on_exec() const {
  if (::fcntl(fd_, F_SETFD, FD_CLOEXEC) < 0) throw_errno("fcntl FD_CLOEXEC");
}

std::optional<std::size_t> Fd::read_some(std::span<std::byte> buffer) const {
  for (;;) {
    const ssize_t n = ::read(fd_, buffer.data(), buffer.size());
    if (n >= 0) return static_cast<std::size_t>(n);
    if (errno == EAGAIN) return std::nullopt;
    if (errno != EINTR) throw_errno("read");
  }
}

std::optional<std::size_t> Fd::write_some(std::span<const std::byte> data) const {
  for (;;) {
    const ssize_t n = ::write(fd_, data.data(), data.size());
    if (n >= 0) return static_cast<std::size_t>(n);
    if (errno == EAGAIN) return std::nullopt;
    if (errno != EINTR) throw_errno("write");
  }
}

Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) < 0) throw_errno("pipe2");
  return {Fd(ends[0]), Fd(ends[1])};
}

Fd open_null() {
  const int fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (fd < 0) throw_errno("open /dev/null");
  return Fd(fd);
}

void fill_standard_streams() noexcept {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    const int null = ::open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
    if (null < 0 || null == fd)
      continue;  // the lowest free number is taken: this one, unless another thread was faster
    ::close(null);
  }
}

EventFd::EventFd() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!fd_.valid()) throw_errno("eventfd");
}

void EventFd::signal() const noexcept {
  const int saved = errno;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(fd_.get(), &one, sizeof one);  // full counter: it is signalled already
  errno = saved;
}

void EventFd::clear() const noexcept {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t n = ::read(fd_.get(), &count, sizeof count);
}

void raise_fd_limit() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace drover::inline v1::os
