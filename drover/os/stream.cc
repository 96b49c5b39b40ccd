// SPDX-License-Identifier: Apache-2.0
#include "drover/os/stream.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace drover::inline v1::os {

std::size_t write_if_ready(int fd, std::string_view text) noexcept {
  pollfd state{.fd = fd, .events = POLLOUT, .revents = 0};
  if (::poll(&state, 1, 0) <= 0) return 0;
  // A pipe that is ready takes PIPE_BUF bytes without blocking, however the descriptor is set.
  const ssize_t n = ::write(fd, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
  if (n >= 0) return static_cast<std::size_t>(n);
  return errno == EAGAIN || errno == EINTR ? 0 : text.size();
}

}  // namespace drover::inline v1::os
