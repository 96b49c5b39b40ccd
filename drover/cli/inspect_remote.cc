// SPDX-License-Identifier: Apache-2.0
#include "drover/cli/inspect_remote.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <map>
#include <memory>
#include <optional>
#include <system_error>

#include "drover/base/errors.h"
#include "drover/cli/inspect_text.h"
#include "drover/cli/inspect_tied.h"
#include "drover/health/thresholds.h"
#include "drover/os/child_process.h"
#include "drover/os/epoll.h"
#include "drover/os/futex.h"
#include "drover/os/self.h"
#include "drover/os/signals.h"
#include "drover/os/terminal.h"

namespace drover::inline v1::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostOutput = health::kMostReportBytes + (1U << 20U);  // a login may print before the report
constexpr std::size_t kLastWords = 4096, kLongestWords = 300;
constexpr std::chrono::milliseconds kGrace{500};  // between SIGTERM and SIGKILL
constexpr std::chrono::seconds kGiveUp{5};        // after SIGKILL: the kernel does not let it go
constexpr std::uint64_t kInterruptKey = ~std::uint64_t{0};

/// The last line that says something: not what a program adds to its error about its own help.
std::string last_line(std::string_view text) {
  std::string_view line, last;
  do {
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.remove_suffix(1);
    const std::size_t begin = text.rfind('\n') + 1;  // 0 without one
    line = text.substr(begin);
    text = text.substr(0, begin);
    if (last.empty()) last = line;
  } while (line.substr(0, 5) == "Try '" && line.find("help") != line.npos);
  return os::sanitize(line.empty() ? last : line);
}

/// One host while its command runs. Owns the child; `end` has to be reached before it is destroyed.
class Run {
 public:
  Run(const RemoteRequest& request, std::string host, const os::Fd& life) : host_(std::move(host)) {
    std::vector<std::string> arguments = request.shell;
    arguments.push_back(host_);
    arguments.push_back(request.command);
    os::Pipe out = os::make_pipe(), err = os::make_pipe();
    const os::Fd null = os::open_null();
    os::SpawnRequest spawn{.program = request.shell.front(),
                           .arguments = std::move(arguments),
                           .environment = os::environment(),
                           .descriptors = {null.get(), out.write_end.get(), err.write_end.get()}};
    tie(spawn, life);
    child_.emplace(os::ChildProcess::spawn(spawn));
    streams_[0].fd = std::move(out.read_end);
    streams_[1].fd = std::move(err.read_end);
    for (const Stream& stream : streams_) stream.fd.set_nonblocking();
    limit_ = request.deadline;
    due_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(request.deadline);
  }

  void watch(const os::Epoll& epoll, std::uint64_t key) const {
    epoll.add(streams_[0].fd, key);
    epoll.add(streams_[1].fd, key);
    epoll.add(child_->pidfd(), key);
  }
  Clock::time_point due() const { return due_; }

  /// Reads what is there. True when it has ended and `result` may be asked for.
  bool step(const os::Epoll& epoll) {
    read(0, kMostOutput, epoll);
    read(1, kLastWords, epoll);
    if (overflowed_ && why_.empty()) stop("it printed more than 9 MiB, and no report");
    if (!status_) status_ = child_->try_reap();
    if (status_) {  // what it left in the pipes; whoever else holds them is not waited for
      read(0, kMostOutput, epoll);
      read(1, kLastWords, epoll);
      return true;
    }
    return false;
  }

  /// The time is over. True when it does not end even by SIGKILL.
  bool overdue() {
    if (Clock::now() < due_) return false;
    if (phase_ == Phase::kRuns) {
      stop("no answer within " + health::duration_text(limit_.count()));
    } else if (phase_ == Phase::kTold) {
      child_->send(SIGKILL);
      phase_ = Phase::kKilled;
      due_ = Clock::now() + kGiveUp;
    } else {
      return true;
    }
    return false;
  }

  void stop(std::string why) {
    why_ = std::move(why);
    if (phase_ != Phase::kRuns) return;
    child_->send(SIGTERM);
    phase_ = Phase::kTold;
    due_ = Clock::now() + kGrace;
  }

  health::ReadReport result() const {
    const std::string name = host_name_of(host_);
    std::vector<health::ReadReport> found = health::read_reports(streams_[0].text, host_);
    for (health::ReadReport& one : found) {
      one.node = name;
      if (one.report) return std::move(one);
    }
    return {.place = host_, .report = std::nullopt, .problem = problem(found.front()), .node = name};
  }

 private:
  enum class Phase { kRuns, kTold, kKilled };
  struct Stream {
    os::Fd fd;
    std::string text;
  };

  /// The first `most` bytes of the output are kept, and the last of the errors.
  void read(std::size_t which, std::size_t most, const os::Epoll& epoll) {
    Stream& stream = streams_[which];
    std::array<std::byte, 65'536> buffer;
    for (int i = 0; i < 64 && stream.fd.valid(); ++i) {  // a stream without end must not keep the others waiting
      std::optional<std::size_t> count;
      try {
        count = stream.fd.read_some(buffer);
      } catch (const std::system_error&) {
        count = 0;
      }
      if (!count) return;
      if (*count == 0) {
        epoll.remove(stream.fd);
        stream.fd.reset();
        return;
      }
      stream.text.append(reinterpret_cast<const char*>(buffer.data()), *count);
      if (stream.text.size() <= most) continue;
      if (which == 0) {
        overflowed_ = true;
        stream.text.resize(most);
      } else {
        stream.text.erase(0, stream.text.size() - most);
      }
    }
  }

  std::string problem(const health::ReadReport& found) const {
    std::string text = why_;
    const auto add = [&](const std::string& part) { text += (text.empty() || part.empty() ? "" : "; ") + part; };
    const std::string words = last_line(streams_[1].text);
    add(cut(words, kLongestWords));
    if (!status_) {
      add("it does not end even by SIGKILL");
    } else if (why_.empty() && (status_->code > 3 || status_->signal != 0)) {
      add("the remote shell " + status_->describe());
      if (status_->code == 127) add("if drover is somewhere else there, give its path: --remote");
    } else if (why_.empty()) {
      add(streams_[0].text.empty() ? "it printed nothing" : found.problem);
    }
    return text;
  }

  const std::string host_;
  std::optional<os::ChildProcess> child_;
  std::array<Stream, 2> streams_;  ///< output and errors
  std::optional<os::ExitStatus> status_;
  Phase phase_ = Phase::kRuns;
  Clock::time_point due_;
  Duration limit_{0};
  bool overflowed_ = false;
  std::string why_;  ///< it was stopped
};

/// All hosts. Whatever happens, nothing runs any more when it is destroyed.
class Fleet {
 public:
  explicit Fleet(const RemoteRequest& request) : request_(request), results_(request.hosts.size()) {
    epoll_.add(interrupt_.fd(), kInterruptKey);
  }
  ~Fleet() { end_all(); }
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  std::vector<health::ReadReport> run() {
    const os::InterruptListener listener(interrupt_);
    for (;;) {
      while (next_ < request_.hosts.size() && runs_.size() < request_.at_once) start(next_++);
      if (runs_.empty()) return std::move(results_);
      turn();
      if (const int signal = os::pending_interrupt()) {
        end_all();
        throw Interrupted(signal);
      }
    }
  }

 private:
  void start(std::size_t index) {
    const std::string& host = request_.hosts[index];
    try {
      auto run = std::make_unique<Run>(request_, host, life_.read_end);
      Run& kept = *runs_.emplace(index, std::move(run)).first->second;
      kept.watch(epoll_, index);
    } catch (const std::system_error& error) {
      results_[index] = {.place = host, .report = std::nullopt, .problem = error.what(), .node = host_name_of(host)};
    }
  }

  /// Waits for whatever comes first, and sees to all: there are few.
  void turn() {
    Clock::time_point first = Clock::time_point::max();
    for (const auto& [index, run] : runs_) first = std::min(first, run->due());
    epoll_.wait(first);
    for (auto at = runs_.begin(); at != runs_.end();) {
      if (at->second->step(epoll_) || at->second->overdue()) {
        results_[at->first] = at->second->result();
        at = runs_.erase(at);
      } else {
        ++at;
      }
    }
  }

  void end_all() noexcept {
    try {
      epoll_.remove(interrupt_.fd());
      for (const auto& [index, run] : runs_) run->stop("it was interrupted");
      while (!runs_.empty()) turn();
    } catch (const std::exception&) {  // no memory left: they end by their own deadlines
    }
  }

  const RemoteRequest& request_;
  const os::Pipe life_ = os::make_pipe();  ///< nothing is written: it closes when this process ends
  const os::EventFd interrupt_;
  const os::Epoll epoll_;
  std::map<std::size_t, std::unique_ptr<Run>> runs_;
  std::vector<health::ReadReport> results_;
  std::size_t next_ = 0;
};

}  // namespace

std::vector<health::ReadReport> inspect_remotely(const RemoteRequest& request) { return Fleet(request).run(); }

}  // namespace drover::inline v1::cli
