// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace drover::inline v1::os {

/// The file this process was started from, with all links resolved; ends in " (deleted)" when it has been removed
/// since. Throws std::filesystem::filesystem_error when /proc cannot be read. Thread-safe.
std::filesystem::path program_path();

/// Replaces this process by `path`, with `args` after the program's name. What is buffered in stdio is not written:
/// flush first. Throws std::system_error when the file cannot be started; otherwise it does not return.
[[noreturn]] void exec_program(const std::filesystem::path& path, const std::vector<std::string>& args);

}  // namespace drover::inline v1::os
