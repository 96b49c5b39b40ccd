// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace drover::inline v1::cli {

/// A process of this user that has to do with Drover. Text may hold anything.
struct ListedProcess {
  enum class Role {
    kProgram,   ///< has pools, blocks or a guardian
    kWorker,    ///< was started by a pool or by spawn
    kGuardian,  ///< of its parent
  };
  int pid = 0, parent = 0;
  Role role = Role::kProgram;
  std::string program;       ///< its name as in `ps`
  std::uint64_t memory = 0;  ///< resident bytes
  double age = 0;            ///< seconds
  int pools = 0;             ///< that it has made
};

/// In the order of their numbers. A snapshot: processes come and go meanwhile.
std::vector<ListedProcess> list_processes();

/// Its name as in `ps`; empty when it is gone.
std::string program_name(int pid);

}  // namespace drover::inline v1::cli
