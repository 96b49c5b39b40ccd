// SPDX-License-Identifier: Apache-2.0
#include "drover/os/host_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <memory>
#include <system_error>
#include <thread>

#include "drover/base/errors.h"
#include "drover/os/fault_point.h"
#include "drover/os/file_system.h"
#include "drover/os/user_directory.h"

namespace drover::inline v1::os {
namespace {

Access access_of(int error) {
  if (error == EMFILE || error == ENFILE) return Access::kNoDescriptor;
  return error == EACCES || error == EPERM ? Access::kDenied : Access::kGone;
}

int open_at(int folder, const char* name, int flags) {
  int fd = -1;
  do fd = ::openat(folder, name, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  while (fd < 0 && errno == EINTR);
  return fd;
}

ssize_t read_once(int fd, char* data, std::size_t size) {
  ssize_t count = 0;
  do count = ::read(fd, data, size);
  while (count < 0 && errno == EINTR);
  return count;
}

Access read_record_at_begin(const Fd& file, std::string& text) {
  char record[4096];
  ssize_t count = 0;
  do count = ::pread(file.get(), record, sizeof record, 0);
  while (count < 0 && errno == EINTR);
  if (count < 0) return access_of(errno);
  text.assign(record, static_cast<std::size_t>(count));
  return Access::kOk;
}

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

/// uid:x:number:… in /etc/passwd.
std::string name_in_passwd(std::uint32_t uid, std::string_view passwd) {
  while (!passwd.empty()) {
    std::string_view line = take_line(passwd);
    const std::size_t first = line.find(':');
    const std::size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string_view number = line.substr(second + 1, line.find(':', second + 1) - second - 1);
    if (parse_number(number) == uid) return std::string(line.substr(0, first));
  }
  return {};
}

bool is_pid(std::string_view name) {
  return !name.empty() && name.size() <= 9 && name.find_first_not_of("0123456789") == name.npos;
}

/// Calls `visit` with each name but "." and ".." until it says no. False when the folder may not be listed.
template <class Visit>
bool visit_names(int folder, const Visit& visit) {
  Fd copy(open_at(folder, ".", O_RDONLY | O_DIRECTORY));
  if (!copy.valid()) return false;
  const std::unique_ptr<DIR, CloseFolder> listing(::fdopendir(copy.get()));
  if (!listing) return false;
  copy.release();  // the DIR owns it now
  while (const dirent* const entry = ::readdir(listing.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != ".." && !visit(entry->d_name)) break;
  }
  return true;
}

void write_all(const Fd& file, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t count = ::write(file.get(), text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_errno("write " + path);
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

}  // namespace

HostFolder::HostFolder(const std::string& path) : fd_(open_at(AT_FDCWD, path.c_str(), O_PATH | O_DIRECTORY)) {
  access_ = fd_.valid() ? Access::kOk : access_of(errno);
}

HostFolder::HostFolder(const HostFolder& parent, const char* name)
    : fd_(parent.open() ? open_at(parent.fd_.get(), name, O_PATH | O_DIRECTORY) : -1) {
  access_ = fd_.valid() ? Access::kOk : parent.open() ? access_of(errno) : parent.access();
}

Access HostFolder::read(const char* name, std::string& text, std::size_t max_bytes) const {
  text.clear();
  if (!open()) return access_;
  const Fd file(open_at(fd_.get(), name, O_RDONLY));
  if (!file.valid()) return access_of(errno);
  std::size_t size = 0;
  while (size < max_bytes) {
    if (text.size() < size + 4096) text.resize(std::min(max_bytes, 2 * size + 4096));
    const ssize_t count = read_once(file.get(), text.data() + size, text.size() - size);
    if (count < 0) {
      const Access result = access_of(errno);
      text.clear();
      return result;
    }
    if (count == 0) break;
    size += static_cast<std::size_t>(count);  // some files of /proc come a page at a time: only 0 is the end
  }
  text.resize(size);
  return Access::kOk;
}

Access HostFolder::read_record(const char* name, std::string& text) const {
  Fd file;
  return read_record(name, text, file);
}

Access HostFolder::read_record(const char* name, std::string& text, Fd& file) const {
  text.clear();
  if (!open()) return access_;
  file = Fd(open_at(fd_.get(), name, O_RDONLY));
  return file.valid() ? read_record_at_begin(file, text) : access_of(errno);
}

Access read_record_again(const Fd& file, std::string& text) {
  struct stat status {};
  const bool there = ::fstat(file.get(), &status) == 0 && status.st_nlink > 0;
  text.clear();
  return there ? read_record_at_begin(file, text) : Access::kGone;
}

std::size_t most_descriptors() noexcept {
  const long limit = ::sysconf(_SC_OPEN_MAX);
  return limit > 0 ? static_cast<std::size_t>(limit) : 256;
}

std::optional<std::string> HostFolder::text(const char* name, std::size_t max_bytes) const {
  std::string result;
  if (read(name, result, max_bytes) != Access::kOk) return std::nullopt;
  return result;
}

std::optional<std::string> HostFolder::link(const char* name) const {
  if (!open()) return std::nullopt;
  char target[PATH_MAX];
  const ssize_t length = ::readlinkat(fd_.get(), name, target, sizeof target);
  if (length < 0) return std::nullopt;
  return std::string(target, static_cast<std::size_t>(length));
}

bool HostFolder::exists(const char* name) const noexcept {
  return open() && ::faccessat(fd_.get(), name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

std::optional<std::vector<std::string>> HostFolder::names(std::size_t most) const {
  std::vector<std::string> result;
  const bool listed = open() && visit_names(fd_.get(), [&](const char* name) {
                        result.emplace_back(name);
                        return result.size() < most;
                      });
  return listed ? std::optional(std::move(result)) : std::nullopt;
}

std::vector<int> HostFolder::numbers() const {
  std::vector<int> result;
  if (!open()) return result;
  visit_names(fd_.get(), [&](const char* name) {
    if (is_pid(name)) result.push_back(std::atoi(name));
    return true;
  });
  std::sort(result.begin(), result.end());
  return result;
}

Existence process_existence(int pid) noexcept {
  if (pid <= 0) return Existence::kNo;
  if (::kill(pid, 0) == 0) return Existence::kYes;
  return errno == EPERM ? Existence::kHidden : Existence::kNo;
}

double clock_ticks() noexcept {
  static const long ticks = ::sysconf(_SC_CLK_TCK);
  return ticks > 0 ? static_cast<double>(ticks) : 100.0;
}

namespace {

double seconds_of(clockid_t clock) noexcept {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

double seconds_since_boot() noexcept { return seconds_of(CLOCK_BOOTTIME); }

double seconds_suspended() noexcept {
  const double awake = seconds_of(CLOCK_MONOTONIC);
  return std::max(0.0, seconds_of(CLOCK_BOOTTIME) - awake);
}

void wait_since_boot(double until) {
  timespec time{};
  time.tv_sec = static_cast<time_t>(until);
  time.tv_nsec = static_cast<long>(1e9 * (until - static_cast<double>(time.tv_sec)));
  int error = 0;
  do error = ::clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &time, nullptr);
  while (error == EINTR);
  if (error == 0) return;
  // A system that cannot wait by this clock.
  for (double left = until; (left = until - seconds_since_boot()) > 0;)
    std::this_thread::sleep_for(std::chrono::duration<double>(left));
}

std::string user_name(std::uint32_t uid, const std::string& root, double limit_s) {
  const auto passwd = read_small_file(root + "/etc/passwd", 8U << 20U);
  std::string name = name_in_passwd(uid, passwd.value_or(std::string()));
  if (!name.empty() || !root.empty()) return name;
  static UserDirectory directory;
  return directory.name(uid, limit_s);
}

std::uint32_t current_user() noexcept { return ::geteuid(); }

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? std::string(name) : std::string();
}

namespace {

/// Of nobody else, under no other name, and not to be read by others from now on.
void make_private(const Fd& file, const struct stat& status, const std::string& path) {
  if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid() || status.st_nlink != 1)
    throw InvalidArgument(path + " is there, and is no file of this user's alone: remove it");
  if (::fchmod(file.get(), 0600) != 0) throw_errno("fchmod " + path);
}

}  // namespace

void require_descriptors(std::size_t count) {
  std::vector<Fd> held;
  while (held.size() < count) {
    held.emplace_back(::open("/", O_PATH | O_CLOEXEC));
    if (!held.back().valid()) throw_errno("open " + std::to_string(count) + " descriptors");
  }
}

void check_replaceable(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode)) return;
  throw InvalidArgument(path + " is there and is no regular file: give another name");
}

std::optional<std::string> read_own_file(const std::string& path, std::size_t max_bytes) {
  check_replaceable(path);  // which says more than that there is nothing to read
  const Fd file(open_at(AT_FDCWD, path.c_str(), O_RDONLY | O_NOFOLLOW));
  if (!file.valid() && (errno == EMFILE || errno == ENFILE || errno == EIO)) throw_errno("open " + path);
  if (!file.valid()) return std::nullopt;
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw_errno("fstat " + path);
  if (!S_ISREG(status.st_mode)) throw InvalidArgument(path + " is no regular file: give another name");
  if (status.st_uid != ::geteuid()) {
    throw InvalidArgument(path + " belongs to another user (uid " + std::to_string(status.st_uid) +
                          "), so what it says is not believed: give another name, or remove it");
  }
  std::string text(std::min(max_bytes, static_cast<std::size_t>(status.st_size)), '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t count = read_once(file.get(), text.data() + size, text.size() - size);
    if (count < 0) throw_errno("read " + path);
    if (count == 0) break;
    size += static_cast<std::size_t>(count);
  }
  text.resize(size);
  return text;
}

bool replace_file(const std::string& path, std::string_view text) {
  check_replaceable(path);
  const std::string beside = path + ".new";
  const Fd file(::open(beside.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600));
  if (!file.valid()) throw_errno("open " + beside);
  fault_point();
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return false;
    throw_errno("flock " + beside);
  }
  // Another process may have renamed it since: what is locked must still be the file of that name.
  struct stat ours {
  }, named{};
  if (::fstat(file.get(), &ours) != 0) throw_errno("fstat " + beside);
  const bool there = ::lstat(beside.c_str(), &named) == 0;
  if (!there || ours.st_ino != named.st_ino || ours.st_dev != named.st_dev) return false;
  make_private(file, ours, beside);
  if (::ftruncate(file.get(), 0) != 0) throw_errno("ftruncate " + beside);
  try {
    write_all(file, text, beside);
  } catch (...) {
    ::unlink(beside.c_str());  // half a file, on a full disk
    throw;
  }
  fault_point();
  if (::rename(beside.c_str(), path.c_str()) != 0) throw_errno("rename " + beside + " to " + path);
  fault_point();
  return true;
}

}  // namespace drover::inline v1::os
