// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <string>

#include "drover/health/helper/records.h"
#include "drover/os/fd.h"

/// Processes that ask drivers. A driver that is ill keeps its caller in uninterruptible sleep, where not even SIGKILL
/// ends it: whoever called it could then not exit, and its shell would wait for ever. So nobody does it but a helper,
/// which has no other descriptor than its two pipe ends and which nobody waits for.
namespace drover::inline v1::health::helper {

/// A call that waits uninterruptibly for so long hangs, and is not just slow: initialising eight GPUs without
/// persistence mode takes several seconds.
inline constexpr std::chrono::seconds kSurelyHangs{30};

struct Role {
  /// The environment variable that makes this program's image act as this helper before its main(). Its value is an
  /// argument.
  const char* variable;
  /// What the helper calls itself, so that one which is stuck is found by later runs. At most 15 bytes.
  const char* name;
};

/// The side of the helper: descriptor 0 has requests, 1 takes messages. Whoever asked being gone ends this process.
class Conversation {
 public:
  /// The next request. One thread.
  Request next();
  /// Thread-safe.
  void send(const std::string& message);

 private:
  const os::Fd requests_{0}, answers_{1};
  MessageReader reader_;
  std::mutex sending_;
};

/// When the environment tells so, this process is that helper: `serve` is called and must not return. To be called
/// from a constructor function, which runs before main() and needs nothing of the rest of the program. What `serve`
/// throws ends the process.
void become_if_told(const Role& role, const std::function<void(const std::string& argument)>& serve);

}  // namespace drover::inline v1::health::helper
