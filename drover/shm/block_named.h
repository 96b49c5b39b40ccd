// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "drover/shm/block_base.h"
#include "drover/shm/block_layout.h"

/// Blocks that are files: named ones, raw ones, .npy files. Private to block*.cc and to what lists blocks.
namespace drover::inline v1::shm {

/// Null when the name is taken.
std::shared_ptr<BlockBase> create_named_block(std::string_view name, const NpyHeader& header, std::string_view label,
                                              const Block::Fill& fill);
/// Says whose it is.
[[noreturn]] void throw_taken(const std::string& name);
/// Null when there is no such name.
std::shared_ptr<BlockBase> open_named_block(const std::string& name, Access access);
std::shared_ptr<BlockBase> open_raw_block(const std::string& name, std::uint64_t size, Access access);
std::shared_ptr<BlockBase> open_npy_block(const std::string& path, Access access);

struct NamedFileContents {
  NpyHeader header;
  BlockFacts facts;
};
/// Reads and checks the first and the last page of a named block. Throws Incompatible.
NamedFileContents read_named_file(const os::Fd& file, const std::string& path);

}  // namespace drover::inline v1::shm
