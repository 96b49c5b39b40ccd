// SPDX-License-Identifier: Apache-2.0
#include "drover/os/reservation.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <limits>
#include <string>

#include "drover/base/errors.h"
#include "drover/os/file_limit.h"
#include "drover/os/mapping.h"
#include "drover/os/memory.h"
#include "drover/os/shared_file.h"

namespace drover::inline v1::os {
namespace {

constexpr std::uint64_t kLargeReservation = 1 << 20;
constexpr std::uint64_t kLargestAllowance = 64 << 20;
constexpr std::uint64_t kStep = 64 << 20;  // a signal makes the kernel give back what the call under way has taken

// What small reservations may still take before the machine is asked again: asking costs 0.2 ms.
std::atomic<std::int64_t> allowance{0};

struct Room {
  std::uint64_t bytes = std::numeric_limits<std::uint64_t>::max();
  std::string of;  ///< what has no more, for people
};

/// Of the file system; memfd's own has no limit.
Room room_of_file_system(const Fd& file) {
  struct statvfs info {};
  if (::fstatvfs(file.get(), &info) != 0 || info.f_blocks == 0) return {};
  return {std::uint64_t{info.f_bavail} * info.f_frsize,
          " (/dev/shm is that small: remount it with a larger size, or start the container with a larger --shm-size)"};
}

Room room_for(const Fd& file) {
  const AvailableMemory memory = available_memory();
  Room room{memory.bytes, memory.cgroup.empty() ? "" : " (the limit is that of the cgroup " + memory.cgroup + ")"};
  Room files = room_of_file_system(file);
  return files.bytes < room.bytes ? std::move(files) : std::move(room);
}

bool has_room(const Fd& file, std::uint64_t length) {
  if (length < kLargeReservation && room_of_file_system(file).bytes >= length) {
    const auto wanted = static_cast<std::int64_t>(length);
    if (allowance.fetch_sub(wanted, std::memory_order_relaxed) >= wanted) return true;
  }
  const std::uint64_t available = room_for(file).bytes;
  allowance.store(static_cast<std::int64_t>(std::min(available / 8, kLargestAllowance)), std::memory_order_relaxed);
  return length <= available;
}

/// Bytes of the range that have memory already, or fewer: it may be that all holes are in the range.
std::uint64_t memory_within(const Fd& file, std::uint64_t length) noexcept {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return 0;
  constexpr std::uint64_t kBlock = 512;  // whatever the file system's own is
  const std::uint64_t taken = static_cast<std::uint64_t>(status.st_blocks) * kBlock;
  const std::uint64_t size = round_to_page(static_cast<std::uint64_t>(status.st_size)), range = round_to_page(length);
  const std::uint64_t outside = size > range ? size - range : 0;
  return std::min(length, taken > outside ? taken - outside : 0);
}

/// False when there is no memory after all.
bool allocate(const Fd& file, std::uint64_t offset, std::uint64_t length) {
  while (length > 0) {
    const std::uint64_t step = std::min(length, kStep);
    if (::fallocate(file.get(), 0, static_cast<off_t>(offset), static_cast<off_t>(step)) == 0) {
      offset += step;
      length -= step;
    } else if (errno == ENOSPC || errno == ENOMEM) {
      return false;
    } else if (errno != EINTR) {
      throw_errno("fallocate");
    }
  }
  return true;
}

}  // namespace

void reserve_memory(const Fd& file, std::uint64_t offset, std::uint64_t length) {
  if (offset + length > file_status(file).size) check_file_limit(offset + length);  // fallocate makes it longer
  // What other programs have made, and filled, needs nothing more.
  const bool room_for_it = has_room(file, length) || has_room(file, length - memory_within(file, length));
  if (room_for_it && allocate(file, offset, length)) return;
  const Room room = room_for(file);
  throw OutOfMemory("not enough memory for " + std::to_string(length) + " bytes of shared memory: " +
                    std::to_string(room.bytes) + " bytes are available to this process" + room.of);
}

}  // namespace drover::inline v1::os
