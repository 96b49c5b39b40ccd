// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace drover_test {

/// What to run. `program` is a path; it is not looked up in PATH.
struct Command {
  std::string program;
  std::vector<std::string> arguments = {};              ///< without argv[0]
  std::map<std::string, std::string> environment = {};  ///< on top of this process's own
  std::string folder = {};                              ///< working folder, empty: this one
  std::chrono::duration<double> limit = std::chrono::seconds(30);
};

/// How it ended.
struct Outcome {
  int exit_code = -1;      ///< -1 when a signal ended it
  int signal = 0;          ///< 0 when it exited
  bool timed_out = false;  ///< it ran past its limit, or its output was still open then, and was killed
  std::string out;         ///< stdout
  std::string err;         ///< stderr
};

/// A running program with its own process group, stdin at /dev/null, stdout and stderr captured. One thread at a time.
/// Owns the process: the destructor kills its whole group and reaps it.
class Subprocess {
 public:
  explicit Subprocess(const Command& command);
  ~Subprocess();
  Subprocess(const Subprocess&) = delete;
  Subprocess& operator=(const Subprocess&) = delete;

  pid_t pid() const noexcept { return pid_; }
  /// Sends a signal to the program alone, not to its group.
  void send(int signal) const;
  /// Reads until `text` is in stdout. False when stdout ended or the limit passed without it.
  [[nodiscard]] bool wait_for_output(const std::string& text);
  /// Reads until both outputs end and the program is gone. On overrun of the limit the group is killed. Call once.
  Outcome finish();

 private:
  bool read_some();
  void reap(int flags);

  pid_t pid_ = -1;
  int status_ = 0;
  bool reaped_ = false;
  int out_fd_ = -1, err_fd_ = -1;
  std::chrono::steady_clock::time_point end_;
  std::string out_, err_;
};

/// Runs it to its end.
Outcome run(const Command& command);

}  // namespace drover_test
