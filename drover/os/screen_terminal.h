// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "drover/os/fd.h"
#include "drover/os/futex.h"

namespace drover::inline v1::os {

/// A terminal used as a full screen: the alternate screen, no cursor, keys as they are typed. While it lives, SIGINT,
/// SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT and SIGWINCH are blocked in the thread that made it, and in those that it
/// starts from then on, and are told by wait() instead; a signal that was ignored stays so. However it is left, by the
/// destructor or by suspend(), the terminal is as it was: main screen, cursor, echo. One thread at a time; one of them
/// in a process. Borrows both descriptors, and changes no flag of theirs.
class ScreenTerminal {
 public:
  /// Throws std::system_error when one of the two is no terminal.
  ScreenTerminal(int in, int out);
  ~ScreenTerminal();
  ScreenTerminal(const ScreenTerminal&) = delete;
  ScreenTerminal& operator=(const ScreenTerminal&) = delete;

  struct Size {
    std::size_t columns = 80, rows = 24;
    bool operator==(const Size&) const = default;
  };
  /// Now. At least 1 by 1.
  Size size() const noexcept;

  /// What wait() came back for; all false and 0: the deadline passed.
  struct Seen {
    bool keys = false;    ///< read_keys() will not wait
    bool woken = false;   ///< the event was signalled, and is clear again
    bool redraw = false;  ///< the size changed, or the screen was taken back: nothing of it is as it was drawn
    int end = 0;          ///< SIGINT, SIGTERM, SIGHUP or SIGQUIT came; SIGHUP also when the terminal is gone
  };
  /// Sleeps until there is something to do; meanwhile it writes what is unsent, and does what ^Z asks for: leaves the
  /// screen, stops this process, and takes the screen back when it is continued. In the background (stopped by SIGSTOP,
  /// continued by `bg`) the screen is somebody else's: nothing is drawn, and this process stops as by SIGTTOU until it
  /// is in the foreground again. Throws std::system_error.
  Seen wait(const EventFd& event, const Deadline& deadline);

  /// What was typed; nothing when the terminal is gone. Throws std::system_error.
  std::string read_keys();

  /// Sends bytes to the terminal, as far as it takes them now; the rest waits, and is sent in wait(). A terminal that
  /// takes nothing (a connection that stalls) so never keeps keys and signals from being seen.
  void send(std::string_view bytes);
  /// Something is unsent: not the time to send another frame.
  bool busy() const noexcept { return !unsent_.empty(); }

 private:
  struct Saved;  ///< the terminal's mode, and which signals were blocked before

  void enter();
  void leave() noexcept;
  bool in_foreground() const noexcept;
  void read_signals(Seen& seen);
  void suspend(Seen& seen);
  void step_aside(Seen& seen);  ///< in the background: nothing is written, this process stops
  void come_back(Seen& seen);   ///< stops until it is in the foreground, and takes the screen back
  void flush();

  const int in_, out_;
  Fd own_out_, signals_;
  std::unique_ptr<Saved> saved_;
  bool entered_ = false, gone_ = false;
  std::string unsent_;
};

}  // namespace drover::inline v1::os
