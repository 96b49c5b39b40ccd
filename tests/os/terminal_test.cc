// SPDX-License-Identifier: Apache-2.0
#include "drover/os/terminal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include "fixture_tree.h"

namespace os = drover::os;
using namespace std::string_view_literals;

namespace {

/// The master side of a new pseudo-terminal; -1 where there is none.
class PseudoTerminal {
 public:
  PseudoTerminal() : fd_(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {}
  ~PseudoTerminal() {
    if (fd_ >= 0) ::close(fd_);
  }
  PseudoTerminal(const PseudoTerminal&) = delete;
  PseudoTerminal& operator=(const PseudoTerminal&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    value == nullptr ? ::unsetenv(name) : ::setenv(name, value, 1);
  }
  ~Environment() { old_.empty() ? ::unsetenv(name_) : ::setenv(name_, old_.c_str(), 1); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
  std::string old_;
};

}  // namespace

TEST(TerminalWidth, IsTheTerminalsOwnBeforeColumns) {
  const PseudoTerminal terminal;
  if (terminal.fd() < 0) GTEST_SKIP() << "no pseudo-terminal here";
  const Environment columns("COLUMNS", "50");
  const winsize size{.ws_row = 24, .ws_col = 132, .ws_xpixel = 0, .ws_ypixel = 0};
  ASSERT_EQ(::ioctl(terminal.fd(), TIOCSWINSZ, &size), 0);
  EXPECT_EQ(os::terminal_width(terminal.fd()), 132U);
  const winsize unknown{};
  ASSERT_EQ(::ioctl(terminal.fd(), TIOCSWINSZ, &unknown), 0);
  EXPECT_EQ(os::terminal_width(terminal.fd()), 50U) << "a terminal that does not know its size";
}

TEST(TerminalWidth, FallsBackToColumnsThenTo80) {
  const int no_terminal = -1;
  for (const char* bad : {"", "0", "wide", "-5", "100000"}) {
    const Environment columns("COLUMNS", bad);
    EXPECT_EQ(os::terminal_width(no_terminal), 80U) << bad;
  }
  const Environment columns("COLUMNS", "120");
  EXPECT_EQ(os::terminal_width(no_terminal), 120U);
}

TEST(IsTerminal, TellsTerminalsFromTheRest) {
  const PseudoTerminal terminal;
  EXPECT_EQ(os::is_terminal(terminal.fd()), terminal.fd() >= 0);
  EXPECT_FALSE(os::is_terminal(-1));
  EXPECT_FALSE(os::colour_allowed(-1));
}

TEST(ColourAllowed, NeedsATerminalThatIsNotDumbAndNobodyWhoObjects) {
  EXPECT_TRUE(os::colour_allowed(true, "xterm", nullptr));
  EXPECT_TRUE(os::colour_allowed(true, "xterm", "")) << "empty counts as not set";
  EXPECT_FALSE(os::colour_allowed(true, "xterm", "1"));
  EXPECT_FALSE(os::colour_allowed(true, "dumb", nullptr));
  EXPECT_FALSE(os::colour_allowed(true, "", nullptr));
  EXPECT_FALSE(os::colour_allowed(true, nullptr, nullptr));
  EXPECT_FALSE(os::colour_allowed(false, "xterm", nullptr));
}

TEST(Sanitize, KeepsTextInAnyLanguage) {
  for (const auto text :
       {""sv, "plain text\twith a tab"sv, "C:\\x1b"sv, "žluťoučký 日本語 🐑"sv, "\xF4\x8F\xBF\xBF"sv}) {
    EXPECT_EQ(os::sanitize(text), text);
  }
}

TEST(Sanitize, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(os::sanitize("\x1b[31mred\x1b[0m"), "\\x1b[31mred\\x1b[0m");
  EXPECT_EQ(os::sanitize("a\nb\rc\x7f"), "a\\x0ab\\x0dc\\x7f");
  EXPECT_EQ(os::sanitize("a\0b"sv), "a\\x00b");
  EXPECT_EQ(os::sanitize("\xC2\x9B"
                         "2J"),
            "\\xc2\\x9b2J")
      << "CSI as a single C1 character";
}

TEST(Sanitize, EscapesWhatTurnsTextAround) {
  EXPECT_EQ(os::sanitize("\u202Egpj.exe"), "\\xe2\\x80\\xaegpj.exe");
  EXPECT_EQ(os::sanitize("\u2066x\u2028"), "\\xe2\\x81\\xa6x\\xe2\\x80\\xa8");
}

TEST(Sanitize, EscapesInvalidUtf8ByteByByte) {
  EXPECT_EQ(os::sanitize("\xff"), "\\xff");
  EXPECT_EQ(os::sanitize("\xC3(x"), "\\xc3(x");
  EXPECT_EQ(os::sanitize("\xE2\x82"), "\\xe2\\x82") << "cut off";
  EXPECT_EQ(os::sanitize("\xC0\xAF"), "\\xc0\\xaf") << "overlong";
  EXPECT_EQ(os::sanitize("\xED\xA0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
  EXPECT_EQ(os::sanitize("\xF4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "over U+10FFFF";
}

TEST(Sanitize, OfAnythingIsStableAndHasNoControlCharacter) {
  drover_test::fuzz("text \x1b[0m \xC2\x9B žluť 🐑 \u202E \n", [](std::string_view text) {
    const std::string clean = os::sanitize(text);
    EXPECT_EQ(os::sanitize(clean), clean);
    for (const char c : clean) EXPECT_TRUE(c == '\t' || static_cast<unsigned char>(c) >= 0x20);
  });
}
