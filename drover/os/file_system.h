// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace drover::inline v1::os {

/// The content of a small file, as a rule one under /proc or /sys; at most `max_bytes`, a longer file is cut there.
/// nullopt when there is nothing to read: no such file, no permission, or the process or cgroup behind it is gone.
/// Throws std::system_error for everything else (no descriptor left, an I/O error). Thread-safe.
std::optional<std::string> read_small_file(const std::string& path, std::size_t max_bytes = std::size_t{1} << 20);

/// Bytes that this user may still write to the file system that holds `path` (statvfs: f_bavail * f_frsize).
/// Throws std::system_error. Thread-safe.
std::uint64_t free_space(const std::string& path);

/// A decimal number with nothing around it but blanks and line ends; nullopt for anything else, also for a number that
/// needs more than 64 bits. Pure.
std::optional<std::uint64_t> parse_number(std::string_view text) noexcept;

/// The number behind `key` at the start of a line: `oom_kill 3` (key "oom_kill") or `MemFree:  12 kB` (key "MemFree:").
/// The first such line counts; what follows the number is ignored. Pure.
std::optional<std::uint64_t> keyed_number(std::string_view text, std::string_view key) noexcept;

/// Takes the first line off `text`, without its line end. Pure.
std::string_view take_line(std::string_view& text) noexcept;

/// Takes the next word off `text`; words are separated by one or more of `separator`. Empty when none is left. Pure.
std::string_view take_word(std::string_view& text, char separator = ' ') noexcept;

}  // namespace drover::inline v1::os
