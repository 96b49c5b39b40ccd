// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

/// What may be written to a terminal. Thread-safe as far as nobody changes the environment; nothing here throws but
/// std::bad_alloc.
namespace drover::inline v1::os {

bool is_terminal(int fd) noexcept;

/// Columns of the terminal behind `fd`; where it has none (a file, a pipe), COLUMNS from the environment when that is a
/// number from 1 to 10,000; else 80.
std::size_t terminal_width(int fd) noexcept;

/// Whether colours may be written to `fd`: it is a terminal, TERM is set and not "dumb", NO_COLOR
/// (https://no-color.org) is not set or empty.
bool colour_allowed(int fd) noexcept;

/// The rule alone; nullptr stands for a variable that is not set. Pure.
bool colour_allowed(bool terminal, const char* term, const char* no_color) noexcept;

/// Text from elsewhere (process names, worker output, exception messages) made safe to print: every byte of a control
/// character (C0 but tab, DEL, C1), of invalid UTF-8 and of the characters that change the writing direction or the
/// line (U+2028–202E, U+2066–2069) becomes `\xNN`. So the result is one line of valid UTF-8 that a terminal only shows.
/// The backslash itself stays as it is: the result is for eyes, not for decoding. Pure.
std::string sanitize(std::string_view text);

/// Whether a thread waits for what comes on its standard input, by the text of its /proc/PID/syscall: in a read of it,
/// or a select of it alone, as readline does. The kernel function that a thread waits in does not tell: a blocking
/// receive from a network waits in the same one as a read of a terminal. False for programs of another word size.
bool waits_for_standard_input(const std::string& syscall_text) noexcept;

}  // namespace drover::inline v1::os
