// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

namespace drover::inline v1::os {

/// The system's directory service (LDAP and the like), which knows the names of users who are not in /etc/passwd, and
/// can hang. Thread-safe.
class UserDirectory {
 public:
  /// Gives the name of a user; empty when there is none. It may block for ever.
  using Ask = std::function<std::string(std::uint32_t uid)>;

  UserDirectory();  ///< the system's
  explicit UserDirectory(Ask ask) : ask_(std::move(ask)) {}

  /// Waits for at most `limit_s` seconds. A service that did not answer by then is not asked again for a minute, about
  /// nobody: else each unknown user would cost that time. Empty when nobody knows. A question that hangs keeps a thread
  /// and a copy of `ask` until the process ends.
  std::string name(std::uint32_t uid, double limit_s);

 private:
  using Clock = std::chrono::steady_clock;

  const Ask ask_;
  std::mutex mutex_;
  Clock::time_point silent_until_{};  ///< guarded by mutex_
};

}  // namespace drover::inline v1::os
