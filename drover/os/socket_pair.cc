// SPDX-License-Identifier: Apache-2.0
#include "drover/os/socket_pair.h"

#include <sys/socket.h>

namespace drover::inline v1::os {

SocketPair make_socket_pair() {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) throw_errno("socketpair");
  return {Fd(ends[0]), Fd(ends[1])};
}

}  // namespace drover::inline v1::os
