// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drover/os/fd.h"

/// What the inspector reads of other processes. A folder is held open, so that all that is read through it belongs to
/// one process even if its number is used again meanwhile.
namespace drover::inline v1::os {

/// Why something could not be read. They mean different things: what is gone is gone, what is denied may be there.
/// kNoDescriptor: this process, or the machine, may not open another file.
enum class Access { kOk, kGone, kDenied, kNoDescriptor };

/// An open folder. Const methods may run concurrently. Owns the descriptor. What cannot be read is never an exception;
/// only std::bad_alloc is thrown.
class HostFolder {
 public:
  explicit HostFolder(const std::string& path);
  /// `name` inside `parent`.
  HostFolder(const HostFolder& parent, const char* name);

  Access access() const noexcept { return access_; }
  bool open() const noexcept { return fd_.valid(); }

  /// Reads the start of a file into `text` (at most `max_bytes`, the rest is not looked at); `text` is empty unless
  /// kOk. Never waits: a FIFO or a device is opened without blocking.
  Access read(const char* name, std::string& text, std::size_t max_bytes = 64U << 10U) const;
  /// For files that the kernel writes as one record of less than a page (stat, io, wchan): one call, where read() needs
  /// another one to see the end.
  Access read_record(const char* name, std::string& text) const;
  /// The same, and `file` is open then, for read_record_again().
  Access read_record(const char* name, std::string& text, Fd& file) const;
  /// The same as read(), as a value; nullopt for anything but kOk.
  std::optional<std::string> text(const char* name, std::size_t max_bytes = 64U << 10U) const;

  /// Where a symbolic link points to; nullopt when it is none or may not be read.
  std::optional<std::string> link(const char* name) const;
  bool exists(const char* name) const noexcept;

  /// The names in the folder, "." and ".." left out, at most `most`. nullopt when it may not be listed.
  std::optional<std::vector<std::string>> names(std::size_t most = 1U << 20U) const;
  /// Those names that are decimal numbers of at most 9 digits, ascending; empty when it may not be listed.
  std::vector<int> numbers() const;

 private:
  Fd fd_;
  Access access_ = Access::kGone;
};

/// Reads such a file from its begin once more. kGone when it was removed since, or belongs to a process that has ended.
Access read_record_again(const Fd& file, std::string& text);

/// How many descriptors this process may have open at once.
std::size_t most_descriptors() noexcept;

/// Whether a process exists in the pid namespace of this one, whatever /proc shows (kill with signal 0).
enum class Existence { kYes, kNo, kHidden };
/// kHidden: it exists and belongs to somebody else. `pid` must be positive, else kNo. Thread-safe.
Existence process_existence(int pid) noexcept;

/// Ticks of /proc/PID/stat in a second.
double clock_ticks() noexcept;

/// Seconds since boot, those included in which the machine was suspended: the start times of processes count so.
double seconds_since_boot() noexcept;
/// How much of that the machine was suspended: by so much is behind what counts awake time, as the kernel's log does.
double seconds_suspended() noexcept;
/// Comes back when seconds_since_boot() has reached `until`, also when that happens while the machine is suspended.
/// Thread-safe.
void wait_since_boot(double until);

/// The name of a user. /etc/passwd under `root` is looked at first; users who are not in it are asked for from the
/// system's directory service, which can hang, so for at most `limit_s` seconds, and for a minute after that nobody is
/// asked for; not at all with a `root`. Empty when nobody knows. Thread-safe.
std::string user_name(std::uint32_t uid, const std::string& root, double limit_s = 0.5);

/// Throws std::system_error when this process may not open `count` descriptors more now.
void require_descriptors(std::size_t count);

std::uint32_t current_user() noexcept;
/// The name of this machine; empty when the kernel does not tell.
std::string host_name();

/// Throws InvalidArgument when `path` is there and is no regular file: a device or a pipe is not to be replaced, nor a
/// link.
void check_replaceable(const std::string& path);
/// The content of a file that this program wrote in an earlier run, at most `max_bytes`; nullopt when there is none, or
/// it may not be read. Throws InvalidArgument as above, and when another user owns it: what it says may be a lie.
/// Throws std::system_error for an I/O error. Never waits.
std::optional<std::string> read_own_file(const std::string& path, std::size_t max_bytes);
/// Replaces the content of `path` in one step: written to `path`.new, with mode 0600, and renamed over it. A process
/// that is killed leaves the old content, and at most that one file beside it, which the next call uses. False, and
/// nothing is changed, when another process is at it. Throws std::system_error, and InvalidArgument as above, also when
/// `path`.new is another user's.
bool replace_file(const std::string& path, std::string_view text);

}  // namespace drover::inline v1::os
