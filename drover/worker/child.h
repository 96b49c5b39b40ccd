// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "drover/os/child_process.h"
#include "drover/os/memory_file.h"
#include "drover/worker/output.h"
#include "drover/worker/service.h"

namespace drover::inline v1 {

/// Where what a worker prints goes.
enum class Output {
  kForward,  ///< through the parent, whole lines; the last lines of stderr appear in WorkerLost
  kInherit,  ///< straight to the parent's own streams; errors then have no last lines
};

namespace worker {

/// All that is known about a child that ended.
struct ChildEnd {
  int pid = 0;
  os::ExitStatus status;
  std::string last_output;         ///< end of its stderr, at most 4 KiB; empty with Output::kInherit
  bool killed_for_memory = false;  ///< by SIGKILL, and the cgroup has counted a kill since that no other death explains
  std::uint64_t peak_memory = 0;   ///< bytes, VmHWM as last sampled; 0: never sampled
  double peak_memory_age = 0;      ///< seconds since that sample

  /// "exited with code 3; peak memory 12 MiB as seen 0.4 s before; its last lines on stderr: ..."
  std::string describe() const;
};

/// How this same program is started again as a child that runs `entry` (an index in program_functions()).
struct ChildSpec {
  std::uint32_t entry = 0;
  std::uint32_t slot = 0;                ///< which of its siblings, from 0
  std::uint32_t incarnation = 0;         ///< never used twice with one `file`
  std::string name;                      ///< process name, as in `ps`
  const os::MemoryFile* file = nullptr;  ///< shared with the child
  /// What the program's environment was when whoever starts children was made: copied in that thread, as the user may
  /// change it in his own at any time.
  std::vector<std::string> inherited;
  std::vector<std::string> environment;  ///< NAME=value that the child has instead of those, or in addition
  Output output = Output::kForward;
  std::function<void(const ChildEnd&)> on_end;  ///< service thread, once, when it is reaped and its output was read
};

/// A running child. Made and used on the service thread; pid is constant.
class Child {
 public:
  /// Throws std::system_error when the process cannot be started, Error when this program cannot be started again.
  static std::shared_ptr<Child> start(Service& service, ChildSpec spec);

  Child(Service& service, ChildSpec spec);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  int pid() const noexcept { return process_.pid(); }
  bool send(int signal) const noexcept { return !ended_ && process_.send(signal); }
  /// Reads its peak memory, for ChildEnd. Cheap enough for once a second.
  void sample_memory();
  /// No on_end any more.
  void detach() noexcept { spec_.on_end = nullptr; }

 private:
  void on_pidfd();
  void on_reaped(const os::ExitStatus& status);
  std::string last_output() noexcept;

  Service& service_;
  ChildSpec spec_;
  const std::optional<std::uint64_t> oom_kills_at_start_;
  std::unique_ptr<OutputPump> out_, err_;
  os::ChildProcess process_;
  Service::Key key_ = 0, retry_ = 0;
  bool ended_ = false;
  std::uint64_t peak_memory_ = 0;
  std::chrono::steady_clock::time_point sampled_;
};

}  // namespace worker
}  // namespace drover::inline v1
