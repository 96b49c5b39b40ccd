// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "drover/os/fd.h"
#include "drover/os/futex.h"

namespace drover::inline v1::os {

/// Two connected stream sockets (AF_UNIX), close-on-exec. What one writes the other reads; writing to an end whose
/// other is closed is an error, never a signal.
struct SocketPair {
  Fd near, far;
};

/// Throws std::system_error.
SocketPair make_socket_pair();

/// Writes all of it to an end of a pair. False when the other end is closed, or did not make room before the deadline:
/// no signal comes. Throws std::system_error for anything else.
bool send_all(const Fd& end, std::span<const std::byte> bytes, const Deadline& deadline);

}  // namespace drover::inline v1::os
