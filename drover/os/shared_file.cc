// SPDX-License-Identifier: Apache-2.0
#include "drover/os/shared_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <memory>
#include <system_error>

#include "drover/base/errors.h"
#include "drover/os/fault_point.h"
#include "drover/os/file_limit.h"
#include "drover/os/file_system.h"
#include "drover/os/guardian_protocol.h"
#include "drover/os/reservation.h"
#include "drover/os/terminal.h"

namespace drover::inline v1::os {
namespace {

constexpr std::size_t kLongestName = 200;

std::string quoted(std::string_view name) { return "\"" + sanitize(name.substr(0, kLongestName)) + "\""; }

FileStatus from_stat(const struct stat& status) {
  return {.id = {status.st_dev, status.st_ino},
          .size = static_cast<std::uint64_t>(status.st_size),
          .allocated = static_cast<std::uint64_t>(status.st_blocks) * 512,  // whatever the block size: see stat(3)
          .user = status.st_uid,
          .mode = status.st_mode & 07777U,
          .regular = S_ISREG(status.st_mode)};
}

[[noreturn]] void throw_open_error(int error, const std::string& path) {
  std::string what = "open " + sanitize(path);
  struct stat status {};
  const bool denied = error == EACCES || error == EPERM;
  if (denied && ::lstat(path.c_str(), &status) == 0 && status.st_uid != ::geteuid()) {
    what += " (it belongs to user " + std::to_string(status.st_uid) + ", this program runs as user " +
            std::to_string(::geteuid()) + ")";
  }
  throw_error(error, what);
}

std::optional<Fd> open_file(const std::string& path, bool writable, int flags) {
  int fd = -1;
  do {
    fd = ::open(path.c_str(), (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | flags);
  } while (fd < 0 && errno == EINTR);
  if (fd >= 0) return Fd(fd);
  if (errno == ENOENT) return std::nullopt;
  if (errno == ELOOP && (flags & O_NOFOLLOW) != 0) {
    throw Incompatible(sanitize(path) + " is a symbolic link and no block of memory");
  }
  throw_open_error(errno, path);
}

/// Of a line in /proc/PID/maps: address, permissions, offset, device (hexadecimal), inode, path.
std::optional<FileId> mapped_file(std::string_view line) {
  for (int i = 0; i < 3; ++i) take_word(line);
  const std::string_view device = take_word(line);
  const auto inode = parse_number(take_word(line));
  unsigned major = 0, minor = 0;
  const char* const end = device.data() + device.size();
  const auto [colon, error] = std::from_chars(device.data(), end, major, 16);
  if (error != std::errc() || colon == end || *colon != ':') return std::nullopt;
  const auto [last, minor_error] = std::from_chars(colon + 1, end, minor, 16);
  if (minor_error != std::errc() || last != end || inode.value_or(0) == 0) return std::nullopt;
  return FileId{makedev(major, minor), *inode};
}

void require_regular(const FileStatus& status, const std::string& path) {
  if (!status.regular) throw Incompatible(sanitize(path) + " is no regular file");
}

}  // namespace

FileStatus file_status(const Fd& file) {
  struct stat status {};
  if (::fstat(file.get(), &status) < 0) throw_errno("fstat");
  return from_stat(status);
}

std::optional<FileId> file_id_of(const std::string& path) noexcept {
  struct stat status {};
  if (::stat(path.c_str(), &status) < 0) return std::nullopt;
  return from_stat(status).id;
}

std::string shared_folder() { return guardian::kFolder; }
std::string shared_path(std::string_view name) { return guardian::kFolder + std::string(name); }

void check_shared_name(std::string_view name) {
  const char* wrong = nullptr;
  if (name.empty())
    wrong = "is empty";
  else if (name.size() > kLongestName)
    wrong = "is longer than 200 bytes";
  else if (name.find('/') != name.npos)
    wrong = "has a '/': it is a name in one folder, not a path";
  else if (name.front() == '.')
    wrong = "begins with a '.'";
  else if (sanitize(name) != name || name.find('\t') != name.npos)
    wrong = "has bytes that cannot be printed";
  if (wrong != nullptr) throw InvalidArgument("the block name " + quoted(name) + " " + wrong);
}

Fd create_shared_file(std::uint64_t size) {
  Fd file(::open(guardian::kFolder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file.valid()) throw_errno(std::string("open O_TMPFILE in ") + guardian::kFolder);
  fault_point();
  if (::fchmod(file.get(), 0600) < 0) throw_errno("fchmod of a block");  // whatever the umask
  check_file_limit(size);
  if (::ftruncate(file.get(), static_cast<off_t>(size)) < 0) throw_errno("ftruncate of a block");
  reserve_memory(file, 0, size);
  fault_point();
  return file;
}

bool shared_name_exists(const std::string& name) noexcept {
  struct stat status {};
  return ::lstat(shared_path(name).c_str(), &status) == 0;
}

bool link_shared_file(const Fd& file, const std::string& name) {
  // Not "self", which is the first thread: that may have ended before the program.
  const std::string from = "/proc/thread-self/fd/" + std::to_string(file.get());
  const int result = ::linkat(AT_FDCWD, from.c_str(), AT_FDCWD, shared_path(name).c_str(), AT_SYMLINK_FOLLOW);
  if (result < 0 && errno == EEXIST) return false;
  if (result < 0) throw_errno("linkat " + shared_path(name));
  fault_point();
  return true;
}

bool unlink_shared_file(const std::string& name, const FileId& file) noexcept {
  struct stat status {};
  const std::string path = shared_path(name);
  if (::lstat(path.c_str(), &status) < 0 || from_stat(status).id != file) return false;
  const bool done = ::unlink(path.c_str()) == 0;
  fault_point();
  return done;
}

std::optional<Fd> open_shared_file(const std::string& name, bool writable) {
  const std::string path = shared_path(name);
  std::optional<Fd> file = open_file(path, writable, O_NOFOLLOW);
  if (!file) return file;
  const FileStatus status = file_status(*file);
  require_regular(status, path);
  if (status.user != ::geteuid()) throw_open_error(EPERM, path);
  if ((status.mode & 022U) != 0) {
    throw Incompatible(path + " can be written by other users, so that it cannot be trusted: chmod go-w it");
  }
  return file;
}

std::optional<Fd> open_regular_file(const std::string& path, bool writable) {
  std::optional<Fd> file = open_file(path, writable, 0);
  if (file) require_regular(file_status(*file), path);
  return file;
}

std::vector<std::string> shared_names() {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(guardian::kFolder), ::closedir);
  if (!folder) throw_errno(std::string("opendir ") + guardian::kFolder);
  std::vector<std::string> names;
  while (const dirent* const entry = ::readdir(folder.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<FileId> mapped_files(std::string_view maps) {
  std::vector<FileId> files;
  while (!maps.empty()) {
    const auto file = mapped_file(take_line(maps));
    if (file && std::find(files.rbegin(), files.rend(), *file) == files.rend()) files.push_back(*file);
  }
  return files;
}

std::size_t read_at(const Fd& file, std::uint64_t offset, std::span<std::byte> data) {
  std::size_t done = 0;
  while (done < data.size()) {
    const ssize_t n = ::pread(file.get(), data.data() + done, data.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_errno("pread");
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

std::string path_of(const Fd& file) {
  char text[PATH_MAX];
  const ssize_t n = ::readlink(("/proc/thread-self/fd/" + std::to_string(file.get())).c_str(), text, sizeof text);
  if (n < 0) throw_errno("readlink in /proc/thread-self/fd");
  return {text, static_cast<std::size_t>(n)};
}

bool sealed_against_shrinking(const Fd& file) noexcept {
  const int seals = ::fcntl(file.get(), F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
}

void seal_size(const Fd& file) {
  if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) throw_errno("fcntl F_ADD_SEALS");
}

}  // namespace drover::inline v1::os
