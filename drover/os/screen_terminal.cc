// SPDX-License-Identifier: Apache-2.0
#include "drover/os/screen_terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>

#include "drover/os/terminal.h"

namespace drover::inline v1::os {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array kEnds = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
constexpr std::array kOthers = {SIGTSTP, SIGCONT, SIGWINCH};
// Main screen and cursor are kept; lines are not continued in the next row, so that no row can scroll the screen.
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[H\x1b[2J";
// A terminal without an alternate screen is left empty.
constexpr std::string_view kLeave = "\x1b[0m\x1b[H\x1b[2J\x1b[?7h\x1b[?25h\x1b[?1049l";
constexpr std::chrono::milliseconds kLeaveLimit{300};
constexpr int kAskAgain = 200;  // milliseconds
constexpr std::size_t kMostColumns = 1000, kMostRows = 500;

void add_unless_ignored(sigset_t& set, int signal) {
  struct sigaction action {};
  ::sigaction(signal, nullptr, &action);
  const bool ignored = (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == SIG_IGN;
  if (!ignored) ::sigaddset(&set, signal);
}

/// A description of the terminal of its own, so that not to wait is not asked of everybody else who has it open.
Fd open_again(int fd) {
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  Fd own(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!own.valid()) own = Fd(::fcntl(fd, F_DUPFD_CLOEXEC, 0));  // of another user: writing may wait then
  if (!own.valid()) throw_errno("open the terminal");
  return own;
}

void set_mode(int fd, const termios& mode) noexcept {
  while (::tcsetattr(fd, TCSANOW, &mode) != 0 && errno == EINTR) {
  }
}

/// Raises a signal that stops this process, with its default action, and comes back when it is continued.
void stop_by(int signal) {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, signal);
  sigset_t before;
  ::pthread_sigmask(SIG_UNBLOCK, &set, &before);
  ::kill(::getpid(), signal);  // an orphaned group is not stopped by it, as nobody could continue it
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

struct ScreenTerminal::Saved {
  termios mode{}, raw{};
  sigset_t blocked_before{}, watched{};
};

ScreenTerminal::ScreenTerminal(int in, int out)
    : in_(in), out_(out), own_out_(open_again(out)), saved_(std::make_unique<Saved>()) {
  if (!is_terminal(in) || !is_terminal(out)) throw_errno("the screen needs a terminal");
  ::sigemptyset(&saved_->watched);
  for (const int signal : kEnds) add_unless_ignored(saved_->watched, signal);
  for (const int signal : kOthers) add_unless_ignored(saved_->watched, signal);
  ::sigaddset(&saved_->watched, SIGCONT);
  ::sigaddset(&saved_->watched, SIGWINCH);
  signals_ = Fd(::signalfd(-1, &saved_->watched, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!signals_.valid()) throw_errno("signalfd");
  ::pthread_sigmask(SIG_BLOCK, &saved_->watched, &saved_->blocked_before);
  try {
    enter();
  } catch (...) {
    ::pthread_sigmask(SIG_SETMASK, &saved_->blocked_before, nullptr);
    throw;
  }
}

ScreenTerminal::~ScreenTerminal() {
  leave();
  ::pthread_sigmask(SIG_SETMASK, &saved_->blocked_before, nullptr);
}

ScreenTerminal::Size ScreenTerminal::size() const noexcept {
  winsize window{};
  if (::ioctl(out_, TIOCGWINSZ, &window) != 0 || window.ws_col == 0 || window.ws_row == 0) return {};
  return {std::min<std::size_t>(window.ws_col, kMostColumns), std::min<std::size_t>(window.ws_row, kMostRows)};
}

void ScreenTerminal::enter() {
  termios now{};
  if (::tcgetattr(in_, &now) != 0) {
    gone_ = errno == EIO;
    if (gone_) return;
    throw_errno("tcgetattr");
  }
  // A shell that continues a stopped job may have given it its own mode back.
  const bool own = now.c_lflag == saved_->raw.c_lflag && now.c_iflag == saved_->raw.c_iflag;
  if (!own) saved_->mode = now;
  termios& raw = saved_->raw;
  raw = saved_->mode;
  raw.c_iflag &= ~static_cast<tcflag_t>(IXON | ICRNL | INLCR | IGNCR | ISTRIP);  // ^S must not stop the screen
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ECHONL | IEXTEN);        // ^C and ^Z are signals still
  raw.c_cc[VMIN] = 1;
  raw.c_cc[VTIME] = 0;
  set_mode(in_, raw);
  entered_ = true;
  unsent_.clear();
  send(kEnter);
}

void ScreenTerminal::leave() noexcept {
  if (!entered_) return;
  entered_ = false;
  // Half an escape sequence may have been sent: CAN ends it. A terminal that takes nothing is given up soon.
  const std::string bytes = "\x18" + std::string(kLeave);
  const auto end = Clock::now() + kLeaveLimit;
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t count = ::write(own_out_.get(), bytes.data() + at, bytes.size() - at);
    if (count > 0) at += static_cast<std::size_t>(count);
    if (count < 0 && errno != EAGAIN && errno != EINTR) break;
    pollfd ready{own_out_.get(), POLLOUT, 0};
    if (count < 0 && errno == EAGAIN && ::poll(&ready, 1, milliseconds_until(end)) == 0) break;
  }
  unsent_.clear();
  if (in_foreground()) set_mode(in_, saved_->mode);  // else a shell has it, and set its own mode
}

bool ScreenTerminal::in_foreground() const noexcept {
  const pid_t group = ::tcgetpgrp(in_);
  return group < 0 || group == ::getpgrp();  // no job control on it: nobody else uses it
}

void ScreenTerminal::suspend(Seen& seen) {
  leave();
  stop_by(SIGTSTP);
  come_back(seen);
}

void ScreenTerminal::step_aside(Seen& seen) {
  entered_ = false;
  unsent_.clear();
  come_back(seen);
}

void ScreenTerminal::come_back(Seen& seen) {
  for (;;) {
    read_signals(seen);
    if (seen.end != 0) return;
    if (in_foreground()) break;
    stop_by(SIGTTOU);
    pollfd continued{signals_.get(), POLLIN, 0};  // there at once, but for a group that cannot be stopped
    ::poll(&continued, 1, kAskAgain);
  }
  enter();
  seen.redraw = true;
}

void ScreenTerminal::read_signals(Seen& seen) {
  bool stop = false, continued = false;
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (std::find(kEnds.begin(), kEnds.end(), signal) != kEnds.end()) seen.end = signal;
    if (signal == SIGWINCH || signal == SIGCONT) seen.redraw = true;
    if (signal == SIGCONT) continued = entered_;  // it was stopped without being asked
    if (signal == SIGTSTP) stop = entered_;
  }
  if (continued && seen.end == 0) in_foreground() ? enter() : step_aside(seen);
  if (stop && seen.end == 0) suspend(seen);
}

ScreenTerminal::Seen ScreenTerminal::wait(const EventFd& event, const Deadline& deadline) {
  Seen seen;
  seen.end = gone_ ? SIGHUP : 0;
  if (gone_) return seen;
  if (entered_ && !in_foreground()) {
    step_aside(seen);
    return seen;
  }
  std::array<pollfd, 4> waited = {
      {{in_, POLLIN, 0}, {signals_.get(), POLLIN, 0}, {event.fd().get(), POLLIN, 0}, {own_out_.get(), POLLOUT, 0}}};
  const nfds_t count = busy() ? 4 : 3;
  const int ready = ::poll(waited.data(), count, milliseconds_until(deadline));
  if (ready < 0 && errno != EINTR) throw_errno("poll");
  if (ready <= 0) return seen;
  if (waited[2].revents != 0) {
    event.clear();
    seen.woken = true;
  }
  if (waited[3].revents != 0) flush();
  seen.keys = waited[0].revents != 0;
  if (waited[1].revents != 0) {
    read_signals(seen);
    seen.keys = false;  // it may have been stopped since, and a shell have read them: the next call asks again
  }
  return seen;
}

std::string ScreenTerminal::read_keys() {
  std::array<char, 512> buffer;
  const ssize_t count = ::read(in_, buffer.data(), buffer.size());
  if (count < 0 && errno == EINTR) return {};
  gone_ = gone_ || count == 0 || (count < 0 && errno == EIO);
  if (gone_) return {};
  if (count < 0) throw_errno("read the terminal");
  return {buffer.data(), static_cast<std::size_t>(count)};
}

void ScreenTerminal::send(std::string_view bytes) {
  unsent_ += bytes;
  flush();
}

void ScreenTerminal::flush() {
  if (!in_foreground()) return;  // wait() sees to it
  std::size_t at = 0;
  while (at < unsent_.size()) {
    const ssize_t count = ::write(own_out_.get(), unsent_.data() + at, unsent_.size() - at);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    gone_ = gone_ || (count < 0 && errno == EIO);
    if (gone_) return unsent_.clear();
    if (count < 0) throw_errno("write to the terminal");
    at += static_cast<std::size_t>(count);
  }
  unsent_.erase(0, at);
}

}  // namespace drover::inline v1::os
