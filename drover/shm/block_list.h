// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "drover/os/process_id.h"
#include "drover/os/shared_file.h"

/// What is in /dev/shm, for people who look after a machine. Thread-safe.
namespace drover::inline v1::shm {

/// A name of this user's that a program with Drover has made. All text may hold anything.
struct ListedBlock {
  std::string name;        ///< of the file
  bool hidden = false;     ///< the guardian's second link to a block, which has no name any more if it is listed alone
  std::string label;       ///< "SharedArray<double, 2>"
  std::uint64_t size = 0;  ///< bytes of data
  double age = 0;          ///< seconds since it was made
  os::ProcessId owner;
  os::Liveness owner_state = os::Liveness::kUnknown;
  os::FileId file;
};

/// Sorted by name. Files that are no blocks, are damaged, are copies, or belong to other users are not in it.
std::vector<ListedBlock> list_blocks();

/// Removes the name if its owner (process number and start time) is gone and the name still means that file. True if it
/// did.
bool remove_if_orphaned(const ListedBlock& block);

}  // namespace drover::inline v1::shm
