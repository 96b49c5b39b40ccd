// SPDX-License-Identifier: Apache-2.0
#include "drover/shm/block_list.h"

#include <chrono>
#include <exception>
#include <optional>
#include <span>

#include "drover/os/name_table.h"
#include "drover/shm/block_layout.h"

namespace drover::inline v1::shm {
namespace {

double seconds_since(std::int64_t realtime_ns) {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  return now.count() - static_cast<double>(realtime_ns) / 1e9;
}

std::optional<BlockFacts> read_facts(const os::Fd& file, std::uint64_t length) {
  BlockFacts facts{};
  const auto bytes = std::as_writable_bytes(std::span(&facts, 1));
  if (length < sizeof(BlockPage) || os::read_at(file, length - sizeof(BlockPage), bytes) != bytes.size()) return {};
  if (flaw_of(facts) != nullptr || facts.kind != BlockKind::kNamed) return std::nullopt;
  return facts;
}

std::optional<ListedBlock> look_at(const std::string& name) {
  const std::optional<os::Fd> file = os::open_shared_file(name, false);
  if (!file) return std::nullopt;
  const os::FileStatus status = os::file_status(*file);
  const std::optional<BlockFacts> facts = read_facts(*file, status.size);
  if (!facts) return std::nullopt;
  const bool hidden = name == os::hidden_name(status.id);
  if (!hidden && get_text(facts->name) != name) return std::nullopt;  // somebody's copy
  return ListedBlock{.name = name,
                     .hidden = hidden,
                     .label = get_text(facts->label),
                     .size = facts->data_size,
                     .age = seconds_since(facts->created),
                     .owner = facts->creator,
                     .owner_state = os::liveness(facts->creator),
                     .file = status.id};
}

}  // namespace

std::vector<ListedBlock> list_blocks() {
  std::vector<ListedBlock> blocks;
  for (const std::string& name : os::shared_names()) {
    try {
      if (auto block = look_at(name)) blocks.push_back(std::move(*block));
    } catch (const std::exception&) {  // not ours, or not to be looked at
    }
  }
  return blocks;
}

bool remove_if_orphaned(const ListedBlock& block) {
  return os::liveness(block.owner) == os::Liveness::kDead && os::unlink_shared_file(block.name, block.file);
}

}  // namespace drover::inline v1::shm
