// SPDX-License-Identifier: Apache-2.0
#include "drover/os/socket_pair.h"

#include <sys/socket.h>

#include <cerrno>

namespace drover::inline v1::os {

SocketPair make_socket_pair() {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) throw_errno("socketpair");
  return {Fd(ends[0]), Fd(ends[1])};
}

bool send_byte(const Fd& end, std::byte byte) {
  for (;;) {
    if (::send(end.get(), &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1) return true;
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EPIPE || errno == ECONNRESET) return false;
    throw_errno("send");
  }
}

}  // namespace drover::inline v1::os
