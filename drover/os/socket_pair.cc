// SPDX-License-Identifier: Apache-2.0
#include "drover/os/socket_pair.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>

namespace drover::inline v1::os {
namespace {

/// False when the deadline passed.
bool wait_for_room(const Fd& end, const Deadline& deadline) {
  pollfd entry{.fd = end.get(), .events = POLLOUT, .revents = 0};
  for (;;) {
    const int count = ::poll(&entry, 1, milliseconds_until(deadline));
    if (count > 0) return true;
    if (count < 0 && errno != EINTR) throw_errno("poll");
    if (count == 0 && deadline && std::chrono::steady_clock::now() >= *deadline) return false;
  }
}

}  // namespace

SocketPair make_socket_pair() {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) throw_errno("socketpair");
  return {Fd(ends[0]), Fd(ends[1])};
}

bool send_all(const Fd& end, std::span<const std::byte> bytes, const Deadline& deadline) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(end.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    } else if (errno == EPIPE || errno == ECONNRESET) {
      return false;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!wait_for_room(end, deadline)) return false;
    } else if (errno != EINTR) {
      throw_errno("send");
    }
  }
  return true;
}

}  // namespace drover::inline v1::os
