// SPDX-License-Identifier: Apache-2.0
#include "drover/os/guardian.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <span>
#include <system_error>

extern "C" {
extern const std::byte drover_guardian_begin[];
extern const std::byte drover_guardian_end[];
}

namespace drover::inline v1::os {
namespace {

#ifndef MFD_EXEC
constexpr unsigned kExecutable = 0x0010U;  // MFD_EXEC, Linux 6.3
#else
constexpr unsigned kExecutable = MFD_EXEC;
#endif

Fd create_image() {
  int fd = ::memfd_create("drover-guardian", MFD_CLOEXEC | kExecutable);
  if (fd < 0 && errno == EINVAL) fd = ::memfd_create("drover-guardian", MFD_CLOEXEC);  // an older kernel
  if (fd < 0) throw_errno("memfd_create of the guardian");
  return Fd(fd);
}

void write_image(const Fd& file) {
  std::span<const std::byte> rest(drover_guardian_begin, drover_guardian_end);
  while (!rest.empty()) rest = rest.subspan(file.write_some(rest).value_or(0));
}

Fd own_pidfd() {
  const long fd = ::syscall(SYS_pidfd_open, ::getpid(), 0);
  if (fd < 0) throw_errno("pidfd_open");
  return Fd(static_cast<int>(fd));
}

}  // namespace

Guardian Guardian::start() {
  const Fd image = create_image();
  write_image(image);
  Pipe pipe = make_pipe();
  const Fd owner = own_pidfd();
  ChildProcess process = ChildProcess::spawn({
      .program = "/proc/self/fd/2",  // where the last of the descriptors below is by then
      .arguments = {"drover-guardian"},
      .environment = {},
      .descriptors = {pipe.read_end.get(), owner.get(), image.get()},
  });
  pipe.write_end.set_nonblocking();  // a guardian that was stopped must not stop us
  return {std::move(pipe.write_end), std::move(process)};
}

Guardian::Guardian(Fd pipe, ChildProcess process)
    : owner_(::getpid()), pipe_(std::move(pipe)), process_(std::move(process)) {}

Guardian::~Guardian() {
  if (!pipe_.valid() || ::getpid() != owner_) return;
  process_.send(SIGKILL);  // there is nothing left to guard
  pollfd ended{.fd = process_.pidfd().get(), .events = POLLIN, .revents = 0};
  constexpr int kPatienceMs = 1000;
  while (::poll(&ended, 1, kPatienceMs) < 0 && errno == EINTR) {
  }
  process_.try_reap();
}

void Guardian::tell(int message) const noexcept {
  const ssize_t n = ::write(pipe_.get(), &message, sizeof message);
  static_cast<void>(n);  // it is gone: then the kernel's own means remain
}

}  // namespace drover::inline v1::os
