// SPDX-License-Identifier: Apache-2.0
#include "drover/cli/watch.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drover/base/errors.h"
#include "drover/cli/command.h"
#include "drover/cli/watch_keys.h"
#include "drover/cli/watch_looker.h"
#include "drover/cli/watch_screen.h"
#include "drover/cli/watch_view.h"
#include "drover/os/screen_terminal.h"
#include "drover/os/self.h"
#include "drover/os/terminal.h"

namespace drover::inline v1::cli {
namespace {

constexpr int kIn = 0, kOut = 1;
constexpr Duration kTick{1.0};        // to say for how long a look has lasted
constexpr Duration kEscape{0.05};     // within which the rest of a key's sequence comes
constexpr Duration kStopLimit{0.25};  // of a look that is in progress when the user ends it
constexpr double kLate = 1.5;         // seconds from which on a look is late

void check_terminal() {
  const char* const kind = std::getenv("TERM");
  const bool able = kind != nullptr && *kind != '\0' && std::string_view(kind) != "dumb";
  if (os::is_terminal(kIn) && os::is_terminal(kOut) && able) return;
  throw UsageError(able ? "--watch needs a terminal on standard input and output; in scripts use --json, --check, or "
                          "--window to watch for a time"
                        : "--watch needs a terminal that can move its cursor, and TERM says that this is none; use "
                          "--json, --check, or --window to watch for a time");
}

/// Nobody may be waited for, and nothing be taken down that the other thread uses.
[[noreturn]] void end_at_once(const std::exception_ptr& failure) {
  try {
    if (failure) std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "drover: %s\n", os::sanitize(error.what()).c_str());
    os::exit_now(kFailed);
  }
  os::exit_now(kOk);
}

/// One run of the live view.
class Viewer {
 public:
  explicit Viewer(Looker& looker) : looker_(looker), colour_(os::colour_allowed(kOut)) {}

  /// Until the user ends it, or a signal: that is returned.
  int run(os::ScreenTerminal& screen) {
    for (bool end = false; !end;) {
      draw(screen);
      const auto seen = screen.wait(looker_.event(), os::deadline_after(parser_.pending() ? kEscape : kTick));
      if (seen.end != 0) return seen.end;
      if (seen.redraw) shown_.clear();
      if (seen.woken) report_ = looker_.report();
      const bool silent = !seen.keys && !seen.woken && !seen.redraw;
      end = press(seen.keys ? parser_.add(screen.read_keys()) : silent ? parser_.flush() : std::vector<KeyPress>());
    }
    return 0;
  }

 private:
  bool press(const std::vector<KeyPress>& keys) {
    for (const KeyPress& key : keys) {
      if (key.key == Key::kRedraw) shown_.clear();
      if (view_.press(key, report_.get())) return true;
      settle();  // the next key acts on what this one has made of it
    }
    return false;
  }

  void settle() { settle_view(view_, report_.get(), size_); }

  void draw(os::ScreenTerminal& screen) {
    if (screen.busy()) return;  // it has not taken the last frame yet; the next one will be of then
    const os::ScreenTerminal::Size now = screen.size();
    if (now.columns != size_.columns || now.rows != size_.rows) shown_.clear();
    size_ = {now.columns, now.rows};
    settle();
    const double late = looker_.looking_s();
    const auto lines = draw_screen(report_.get(), view_, size_, late >= kLate ? late : 0);
    const std::string clear = shown_.empty() ? "\x1b[0m\x1b[H\x1b[2J" : "";
    const std::string bytes = clear + screen_update(shown_, lines, size_.columns, colour_);
    if (!bytes.empty()) screen.send(bytes);
  }

  Looker& looker_;
  const bool colour_;
  KeyParser parser_;
  WatchView view_;
  ScreenSize size_;
  std::shared_ptr<const health::Report> report_;
  std::vector<std::string> shown_;  ///< rows as the terminal has them
};

}  // namespace

int watch(const health::InspectOptions& options) {
  check_terminal();
  Looker looker(options);
  int signal = 0;
  std::exception_ptr failure;
  try {
    os::ScreenTerminal screen(kIn, kOut);
    looker.start();
    signal = Viewer(looker).run(screen);
  } catch (...) {
    failure = std::current_exception();
  }
  const bool stopped = looker.stop(kStopLimit);
  if (signal != 0) throw Interrupted(signal);
  if (!stopped) end_at_once(failure);
  if (failure) std::rethrow_exception(failure);
  static_cast<void>(looker.report());  // throws when the history could not be saved in the end
  return kOk;
}

}  // namespace drover::inline v1::cli
