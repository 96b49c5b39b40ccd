// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "drover/os/fd.h"

namespace drover::inline v1::os {

/// Two connected stream sockets (AF_UNIX), close-on-exec. What one writes the other reads; writing to an end whose
/// other is closed is an error, never a signal.
struct SocketPair {
  Fd near, far;
};

/// Throws std::system_error.
SocketPair make_socket_pair();

/// Writes one byte to an end of a pair. False when there is no room, or the other end is closed: no signal comes.
/// Throws std::system_error for anything else.
bool send_byte(const Fd& end, std::byte byte);

}  // namespace drover::inline v1::os
