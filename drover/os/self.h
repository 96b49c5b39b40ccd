// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "drover/os/fd.h"

namespace drover::inline v1::os {

/// What a process can ask of and do to itself.

int current_pid() noexcept;

/// NAME=value of every variable.
std::vector<std::string> environment();

/// Reads a variable and removes it, so that nothing this process starts will see it. Before other threads exist.
std::optional<std::string> take_environment(const char* name);

/// The first 15 bytes are what `ps -o comm` and `top` show for the calling thread (the process, in the first thread).
void set_process_name(const std::string& name) noexcept;

/// Ends this process without running anything of the user's, as _exit does.
[[noreturn]] void exit_now(int code) noexcept;

/// Ties the life of this process to `parent`: the kernel kills it when the thread that started it ends (PDEATHSIG), and
/// when the other end of the pipe `life` is closed, which happens however the parent dies, even if that thread's death
/// went unseen. No thread is needed here. Ends this process at once when the parent is gone already.
void die_with_parent(int parent, const Fd& life);

}  // namespace drover::inline v1::os
