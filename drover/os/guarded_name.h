// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "drover/os/guardian.h"
#include "drover/os/shared_file.h"

namespace drover::inline v1::os {

/// Owns the name of a file in /dev/shm. It goes with this object, or, however this process ends, by its guardian.
/// A fork of this process does not own it. One thread at a time.
class GuardedName {
 public:
  /// Gives a name to a file that has none. nullopt when the name is taken; then nothing has changed.
  static std::optional<GuardedName> create(const Fd& file, const std::string& name);

  ~GuardedName() { remove(); }
  GuardedName(GuardedName&& other) noexcept = default;
  GuardedName& operator=(GuardedName&&) = delete;

  /// Whether this process is the owner.
  bool owned() const noexcept;
  /// Removes the name if it still means this file. Nothing happens when it was removed before, or in a fork.
  void remove() noexcept;

 private:
  GuardedName(std::shared_ptr<Guardian> guardian, NameTable::Slot slot, const std::string& name, const FileId& file)
      : guardian_(std::move(guardian)), slot_(slot), name_(name), file_(file) {}

  int owner_ = current_process();
  std::shared_ptr<Guardian> guardian_;  ///< empty once the name is removed
  NameTable::Slot slot_;
  std::string name_;
  FileId file_;

  static int current_process() noexcept;
};

}  // namespace drover::inline v1::os
