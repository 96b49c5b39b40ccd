// SPDX-License-Identifier: Apache-2.0
#include "drover/os/kernel_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace drover::inline v1::os {
namespace {

constexpr std::size_t kMostRecord = 16U << 10U;  // the kernel's are at most half of that; a shorter buffer is an error

Access access_of(int error) { return error == EACCES || error == EPERM ? Access::kDenied : Access::kGone; }

}  // namespace

KernelLog::KernelLog(const std::string& path)
    : fd_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)),
      access_(fd_.valid() ? Access::kOk : access_of(errno)) {}

Access KernelLog::read_new(std::string& text, std::size_t most) {
  std::array<char, kMostRecord> record;
  for (std::size_t taken = 0; access_ == Access::kOk && taken < most;) {
    const ssize_t count = ::read(fd_.get(), record.data(), record.size());
    if (count == 0 || (count < 0 && errno == EAGAIN)) break;
    if (count < 0 && (errno == EINTR || errno == EPIPE)) continue;  // EPIPE: overwritten; goes on with the oldest
    if (count < 0) {
      access_ = access_of(errno);
      break;
    }
    text.append(record.data(), static_cast<std::size_t>(count));
    taken += static_cast<std::size_t>(count);
  }
  return access_;
}

}  // namespace drover::inline v1::os
