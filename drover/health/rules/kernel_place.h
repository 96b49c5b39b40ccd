// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

/// What the kernel function in which a thread waits (/proc/PID/wchan) says about why. Pure. Names differ from kernel to
/// kernel and from version to version of a module; one that is not known says nothing.
namespace drover::inline v1::health {

/// A GPU's driver.
bool waits_in_driver(std::string_view function);

/// A disk, a file system or its server, or the writing back of what was written.
bool waits_in_storage(std::string_view function);

/// Memory: the limits of its cgroup, or a machine that is short of it.
bool waits_for_memory(std::string_view function);

/// A lock of the kernel's own, as that of a process' map of memory: whoever has it may be at work.
bool waits_for_lock(std::string_view function);

/// The freezer of cgroups: somebody paused the process, as `docker pause` does. `state`: of the thread.
bool is_frozen(char state, std::string_view function);

/// Until a time that it chose itself.
bool sleeps(std::string_view function);

/// It waits for nobody: until a time that it chose itself, for a key of a terminal, or until it is thawed.
bool rests_on_purpose(char state, std::string_view function);

}  // namespace drover::inline v1::health
