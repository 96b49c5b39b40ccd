// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "drover/pool/pool_facts.h"
#include "drover/shm/block_list.h"

namespace drover::inline v1::cli {

/// A process of this user that has to do with Drover. Text may hold anything.
struct ListedProcess {
  enum class Role {
    kProgram,   ///< has pools, blocks or a guardian, or has a block of somebody's in its memory
    kWorker,    ///< was started by a pool or by spawn
    kGuardian,  ///< of its parent
  };
  int pid = 0, parent = 0;
  Role role = Role::kProgram;
  std::string program;       ///< its name as in `ps`
  std::uint64_t memory = 0;  ///< resident bytes
  double age = 0;            ///< seconds
  std::size_t pools = 0;     ///< that it has made
  std::size_t blocks = 0;    ///< with a name, that it has made
  /// Names of blocks that it has mapped and has not made. nullopt: the kernel did not tell in time what it has mapped.
  std::optional<std::vector<std::string>> attached;
};

struct ListedPool {
  int owner = 0;                           ///< the process that made it
  std::string program;                     ///< its name
  std::uint64_t memory = 0;                ///< bytes that the pool's segment takes
  std::size_t running = 0;                 ///< worker processes that are there
  std::optional<detail::PoolFacts> facts;  ///< nullopt: of another version of Drover
};

/// What this user's programs have of Drover's. A snapshot: all of it comes and goes meanwhile.
struct Survey {
  std::vector<shm::ListedBlock> blocks;  ///< one for each file
  std::vector<ListedPool> pools;         ///< by the numbers of their owners
  std::vector<ListedProcess> processes;  ///< by their numbers
};
Survey take_survey();

/// Hidden links count only where the block has no other name.
std::vector<shm::ListedBlock> one_for_each_file(const std::vector<shm::ListedBlock>& all);

/// Its name as in `ps`; empty when it is gone.
std::string program_name(int pid);

}  // namespace drover::inline v1::cli
