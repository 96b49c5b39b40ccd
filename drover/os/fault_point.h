// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace drover::inline v1::os {

/// Marks a step after which another process could find this one dead. In test builds (DROVER_FAULT_POINTS) the n-th
/// point that is passed kills the process with SIGKILL, n from `DROVER_FAULT=role:n`; tests raise n until a run needs
/// no kill. Elsewhere it is nothing.
#ifdef DROVER_FAULT_POINTS
void fault_point() noexcept;

/// Says what this process is ("parent", "child-7": incarnation 7); only points of the role in DROVER_FAULT count.
void set_fault_role(const char* role) noexcept;

/// The n of that role in DROVER_FAULT; -1 without one.
long fault_of(const char* role) noexcept;
#else
inline void fault_point() noexcept {}
inline void set_fault_role(const char*) noexcept {}
inline long fault_of(const char*) noexcept { return -1; }
#endif

}  // namespace drover::inline v1::os
