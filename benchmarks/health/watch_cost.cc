// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/health/watch_cost.h"

#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <vector>

#include "benchmarks/harness/figure.h"
#include "benchmarks/harness/measure.h"
#include "benchmarks/harness/peer_process.h"

namespace bench {
namespace {

constexpr double kStartLimit = 20, kWarmUp = 3;  // seconds

/// The program on a terminal of its own. Ends it at the end.
class Watched {
 public:
  explicit Watched(const std::string& root) {
    const std::string program = own_folder() + "../../bin/drover";
    if (::access(program.c_str(), X_OK) != 0) throw Unavailable("there is no " + program);
    winsize size{40, 100, 0, 0};
    pid_ = ::forkpty(&terminal_, nullptr, nullptr, &size);
    if (pid_ < 0) throw std::runtime_error("forkpty failed");
    if (pid_ == 0) {
      ::setenv("TERM", "xterm", 1);
      ::unsetenv("DROVER_FAKE_NVML_CLOCK");  // a file that the false driver would read at each call
      ::execl(program.c_str(), "drover", "inspect", "--watch", "--interval", "1s", "--root", root.c_str(), nullptr);
      ::_exit(127);
    }
  }
  ~Watched() {
    ::kill(pid_, SIGTERM);
    ::close(terminal_);
    ::waitpid(pid_, nullptr, 0);
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

  /// Reads what it draws, for so long or until `text` has been drawn; the number of bytes.
  std::size_t read_for(double seconds, const std::string& text = {}) {
    std::string drawn;
    const std::int64_t end = now_ns() + static_cast<std::int64_t>(seconds * 1e9);
    for (std::int64_t left = end - now_ns(); left > 0; left = end - now_ns()) {
      pollfd ready{terminal_, POLLIN, 0};
      if (::poll(&ready, 1, static_cast<int>(left / 1'000'000) + 1) <= 0) continue;
      char buffer[16'384];
      const ssize_t count = ::read(terminal_, buffer, sizeof buffer);
      if (count <= 0) throw std::runtime_error("drover inspect --watch has ended: " + drawn);
      drawn.append(buffer, static_cast<std::size_t>(count));
      if (!text.empty() && drawn.find(text) != drawn.npos) return drawn.size();
    }
    if (!text.empty()) throw std::runtime_error("drover inspect --watch does not show " + text);
    return drawn.size();
  }

  /// It and its children.
  std::vector<pid_t> processes() const {
    std::vector<pid_t> pids = {pid_};
    const std::string tasks = "/proc/" + std::to_string(pid_) + "/task/";
    std::FILE* const list = ::popen(("cat " + tasks + "*/children").c_str(), "r");
    for (int pid = 0; list != nullptr && std::fscanf(list, "%d", &pid) == 1;) pids.push_back(pid);
    if (list != nullptr) ::pclose(list);
    return pids;
  }

 private:
  int terminal_ = -1;
  pid_t pid_ = -1;
};

}  // namespace

WatchCost watch_cost(const std::string& root, double seconds) {
  Watched watched(root);
  watched.read_for(kStartLimit, "watched ");
  watched.read_for(kWarmUp);
  const std::vector<pid_t> processes = watched.processes();
  const std::int64_t cpu = cpu_ns(processes), begin = now_ns();
  const std::size_t bytes = watched.read_for(seconds);
  const auto time = static_cast<double>(now_ns() - begin);
  WatchCost cost;
  cost.cpu_percent = 100 * static_cast<double>(cpu_ns(processes) - cpu) / time;
  cost.bytes_a_second = 1e9 * static_cast<double>(bytes) / time;
  for (const pid_t pid : processes) {
    cost.pss_mib += pss_kib(pid) / 1024;
    cost.rss_mib += rss_kib(pid) / 1024;
  }
  return cost;
}

}  // namespace bench
