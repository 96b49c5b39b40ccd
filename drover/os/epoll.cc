// SPDX-License-Identifier: Apache-2.0
#include "drover/os/epoll.h"

#include <sys/epoll.h>

#include <array>
#include <cerrno>

namespace drover::inline v1::os {

Epoll::Epoll() : fd_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!fd_.valid()) throw_errno("epoll_create1");
}

void Epoll::add(const Fd& fd, std::uint64_t key) const {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = key;
  if (::epoll_ctl(fd_.get(), EPOLL_CTL_ADD, fd.get(), &event) < 0) throw_errno("epoll_ctl");
}

void Epoll::remove(const Fd& fd) const noexcept { ::epoll_ctl(fd_.get(), EPOLL_CTL_DEL, fd.get(), nullptr); }

std::vector<std::uint64_t> Epoll::wait(const Deadline& deadline) const {
  std::array<epoll_event, 64> events{};
  const int n = ::epoll_wait(fd_.get(), events.data(), events.size(), milliseconds_until(deadline));
  if (n < 0 && errno != EINTR) throw_errno("epoll_wait");
  std::vector<std::uint64_t> keys;
  for (int i = 0; i < n; ++i) keys.push_back(events[static_cast<std::size_t>(i)].data.u64);
  return keys;
}

}  // namespace drover::inline v1::os
