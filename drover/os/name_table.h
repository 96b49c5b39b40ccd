// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "drover/os/guardian_protocol.h"
#include "drover/os/mapping.h"
#include "drover/os/shared_file.h"

namespace drover::inline v1::os {

/// The names in /dev/shm that this process owns, in memory that its guardian reads when this process has ended.
/// One thread at a time; only the creating process.
class NameTable {
 public:
  using Slot = std::uint32_t;

  NameTable();  ///< throws std::system_error

  /// In test builds the guardian dies at that one of its fault points, from 0.
  void kill_guardian_at(long point) noexcept;

  const Fd& fd() const noexcept { return file_.fd(); }
  bool empty() const noexcept { return count_ == 0; }

  /// Before the name is made. Throws Error when the table is full (65,535 names).
  Slot add(std::string_view name, const FileId& file);
  /// Whether the name is to stay: then the guardian puts it back when another program removes it.
  void set_live(Slot slot, bool live) noexcept;
  /// After the name was removed.
  void remove(Slot slot) noexcept;

 private:
  guardian::NameTable& table() const noexcept { return *reinterpret_cast<guardian::NameTable*>(mapping_.data()); }

  MemoryFile file_;
  Mapping mapping_;
  std::vector<Slot> free_;  ///< below `used`
  std::uint32_t count_ = 0;
};

/// The name of a second link to the file, from which the guardian can put the first back.
std::string hidden_name(const FileId& file);

}  // namespace drover::inline v1::os
