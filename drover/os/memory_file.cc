// SPDX-License-Identifier: Apache-2.0
#include "drover/os/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "drover/os/fault_point.h"
#include "drover/os/file_limit.h"
#include "drover/os/reservation.h"

namespace drover::inline v1::os {

MemoryFile MemoryFile::create(const char* debug_name) {
  int raw = ::memfd_create(debug_name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (raw < 0 && errno == EMFILE) {
    raise_fd_limit();
    raw = ::memfd_create(debug_name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  }
  Fd fd(raw);
  if (!fd.valid()) throw_errno("memfd_create");
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK) < 0) throw_errno("fcntl F_SEAL_SHRINK");
  return MemoryFile(std::move(fd));
}

MemoryFile::MemoryFile(Fd fd) : fd_(std::move(fd)) {
  struct stat status {};
  if (::fstat(fd_.get(), &status) < 0) throw_errno("fstat of shared memory");
  device_ = status.st_dev;
  inode_ = status.st_ino;
}

std::optional<std::uint64_t> MemoryFile::size_if_open() const noexcept {
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0 || status.st_dev != device_ || status.st_ino != inode_) return std::nullopt;
  return static_cast<std::uint64_t>(status.st_size);
}

std::uint64_t MemoryFile::size() const {
  if (const auto size = size_if_open()) return *size;
  throw std::system_error(EBADF, std::generic_category(),
                          "the descriptor " + std::to_string(fd_.get()) +
                              " of shared memory was closed, or is another file now: something in this process closes "
                              "descriptors that are not its own");
}

void MemoryFile::grow_to(std::uint64_t end) const {
  fault_point();
  if (size() >= end) return;
  check_file_limit(end);
  // A concurrent grower may have gone further; the seal turns our shrinking into EPERM, which then means success.
  if (::ftruncate(fd_.get(), static_cast<off_t>(end)) < 0 && errno != EPERM) throw_errno("ftruncate");
}

void MemoryFile::reserve(std::uint64_t offset, std::uint64_t length) const {
  fault_point();
  require_open();
  reserve_memory(fd_, offset, length);
}

void MemoryFile::discard(std::uint64_t offset, std::uint64_t length) const noexcept {
  if (!size_if_open()) return;
  ::fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
              static_cast<off_t>(length));
}

void MemoryFile::write_at(std::uint64_t offset, std::span<const std::byte> data) const {
  require_open();
  check_file_limit(offset + data.size());
  while (!data.empty()) {
    fault_point();
    const ssize_t n = ::pwrite(fd_.get(), data.data(), data.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_errno("pwrite to shared memory");
    data = data.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
}

void MemoryFile::read_at(std::uint64_t offset, std::span<std::byte> data) const {
  require_open();
  while (!data.empty()) {
    const ssize_t n = ::pread(fd_.get(), data.data(), data.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_errno("pread of shared memory");
    if (n == 0) throw std::system_error(EIO, std::generic_category(), "shared memory ends before the data does");
    data = data.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
}

}  // namespace drover::inline v1::os
