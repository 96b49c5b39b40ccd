// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "drover/os/memory_file.h"

namespace drover::inline v1::worker {

/// The first page of every segment that is shared with a child: what the two agree on before anything else is read.
struct LaunchPage {
  static constexpr std::uint32_t kMagic = 0x52565244;  // "DRVR"
  static constexpr std::uint32_t kVersion = 3;

  std::uint32_t magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint64_t digest = 0;  ///< of the function table: equal means the very same build
};
inline constexpr std::uint64_t kLaunchPageSize = 4096;

/// What a child is told in its environment, in one variable that init removes first of all.
struct LaunchOrder {
  static constexpr const char* kVariable = "DROVER_CHILD";

  std::uint32_t entry = 0;
  std::uint32_t slot = 0;
  std::uint32_t incarnation = 0;
  int parent = 0;

  std::string to_text() const;
  static std::optional<LaunchOrder> from_text(const std::string& text);
};

/// Descriptor numbers in a fresh child, beside 0 (/dev/null), 1 and 2.
inline constexpr int kSegmentDescriptor = 3;
inline constexpr int kLifeDescriptor = 4;

/// What the entry function of a child gets.
struct ChildContext {
  os::MemoryFile file;
  LaunchOrder order;
};

/// Exit codes of a child that never came to run its entry function.
inline constexpr int kExitIncompatible = 121;
/// Exit code of one whose entry function was left by an exception.
inline constexpr int kExitFailed = 122;

/// Writes the launch page of a new segment.
void write_launch_page(const os::MemoryFile& file);

}  // namespace drover::inline v1::worker
