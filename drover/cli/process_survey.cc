// SPDX-License-Identifier: Apache-2.0
#include "drover/cli/process_survey.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "drover/os/file_system.h"
#include "drover/os/host_files.h"
#include "drover/os/memory.h"
#include "drover/os/patient_reader.h"
#include "drover/os/process_id.h"
#include "drover/os/shared_file.h"
#include "drover/worker/launch.h"

namespace drover::inline v1::cli {
namespace {

namespace fs = std::filesystem;

std::string folder_of(int pid) { return "/proc/" + std::to_string(pid); }

std::string read(const std::string& path, std::size_t max_bytes = std::size_t{1} << 20) {
  try {
    return os::read_small_file(path, max_bytes).value_or("");
  } catch (const std::system_error&) {  // it went away in this moment
    return {};
  }
}

/// What stands in the memory of a process.
struct Memory {
  bool guardian = false, child = false;
  std::vector<os::FileId> mapped;
};

Memory read_memory(const int& pid) {
  constexpr std::size_t kLongestMaps = std::size_t{64} << 20;
  const std::string variable = std::string(1, '\0') + worker::LaunchOrder::kVariable + "=";
  Memory memory;
  memory.guardian = read(folder_of(pid) + "/cmdline").starts_with("drover-guardian");
  memory.child = (std::string(1, '\0') + read(folder_of(pid) + "/environ")).find(variable) != std::string::npos;
  memory.mapped = os::mapped_files(read(folder_of(pid) + "/maps", kLongestMaps));
  return memory;
}

struct PoolFile {
  os::FileId id;
  std::string path;  ///< through which it can be opened
};

/// A process of this user, whatever it has to do with Drover.
struct Looked {
  ListedProcess process;
  bool guardian_image = false, memory_files = false;
  std::vector<PoolFile> pools;       ///< of which it has the file
  std::optional<os::FileId> master;  ///< what a worker would have its work from
};

/// What its descriptors say: only programs with Drover have such memory files.
void look_at_descriptors(Looked& looked) {
  const fs::path folder = folder_of(looked.process.pid) + "/fd";
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code unread;
    const std::string target = fs::read_symlink(it->path(), unread).string();
    if (unread || !target.starts_with("/memfd:drover-")) continue;
    looked.memory_files = true;
    const auto id = os::file_id_of(it->path());
    if (!id) continue;
    if (it->path().filename() == std::to_string(worker::kSegmentDescriptor)) looked.master = id;
    const auto same = [&](const PoolFile& pool) { return pool.id == *id; };
    if (target.starts_with("/memfd:drover-pool") && std::none_of(looked.pools.begin(), looked.pools.end(), same)) {
      looked.pools.push_back({*id, it->path()});
    }
  }
}

std::optional<Looked> look_at(int pid, std::uint64_t user) {
  const std::string status = read(folder_of(pid) + "/status");
  const auto start = os::process_start_time(pid);
  const auto memory = os::parse_process_status(status);
  if (os::keyed_number(status, "Uid:") != user || !start || !memory) return std::nullopt;  // or gone, or a zombie
  Looked looked;
  looked.process.pid = pid;
  looked.process.parent = static_cast<int>(os::keyed_number(status, "PPid:").value_or(0));
  looked.process.program = program_name(pid);
  looked.process.memory = memory->rss_bytes;
  looked.process.age = std::max(0.0, os::seconds_since_boot() - static_cast<double>(*start) / os::clock_ticks());
  std::error_code error;
  looked.guardian_image =
      fs::read_symlink(folder_of(pid) + "/exe", error).string().starts_with("/memfd:drover-guardian");
  look_at_descriptors(looked);
  return looked;
}

bool made_by(const shm::ListedBlock& block, int pid) {
  return block.owner.pid == pid && block.owner_state == os::Liveness::kAlive;
}

std::vector<std::string> attached_blocks(const Memory& memory, int pid, const std::vector<shm::ListedBlock>& blocks) {
  std::vector<std::string> names;
  for (const shm::ListedBlock& block : blocks) {
    const bool mapped = std::find(memory.mapped.begin(), memory.mapped.end(), block.file) != memory.mapped.end();
    if (mapped && !made_by(block, pid)) names.push_back(block.name);
  }
  return names;
}

/// False when it has nothing to do with Drover. `memory` is null when the kernel did not tell it.
bool complete(Looked& looked, const Memory* memory, const std::vector<shm::ListedBlock>& blocks) {
  ListedProcess& process = looked.process;
  process.blocks = static_cast<std::size_t>(
      std::count_if(blocks.begin(), blocks.end(), [&](const auto& block) { return made_by(block, process.pid); }));
  if (memory != nullptr) process.attached = attached_blocks(*memory, process.pid, blocks);
  if (looked.guardian_image && (memory == nullptr || memory->guardian)) {
    process.role = ListedProcess::Role::kGuardian;
    process.program = "drover-guardian";  // its image has no name that says something
    process.attached.emplace();           // it names what it guards
    return true;
  }
  const bool child = looked.master && (memory == nullptr || memory->child);
  process.role = child ? ListedProcess::Role::kWorker : ListedProcess::Role::kProgram;
  return looked.memory_files || process.blocks > 0 || (process.attached && !process.attached->empty());
}

bool works_for(const Looked& looked, const os::FileId& pool) {
  return looked.process.role == ListedProcess::Role::kWorker && looked.master == pool;
}

/// Nothing when it has ended in this moment.
std::optional<ListedPool> describe_pool(const PoolFile& file, const Looked& owner, const std::vector<Looked>& all) {
  ListedPool pool;
  pool.owner = owner.process.pid;
  pool.program = owner.process.program;
  pool.running = static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [&](const Looked& one) {
    return works_for(one, file.id) && one.process.parent == pool.owner;
  }));
  try {
    const auto opened = os::open_regular_file(file.path, false);
    if (!opened) return std::nullopt;
    const os::FileStatus status = os::file_status(*opened);
    if (status.id != file.id) return std::nullopt;  // another file has the number of that descriptor by now
    pool.memory = status.allocated;
    pool.facts = detail::read_pool_facts(*opened);
    return pool;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

/// A pool belongs to the process that had its file first: workers inherit it, and forks of the owner.
std::vector<ListedPool> find_pools(std::vector<Looked>& all) {
  std::vector<Looked*> oldest_first;
  for (Looked& looked : all) oldest_first.push_back(&looked);
  std::stable_sort(oldest_first.begin(), oldest_first.end(),
                   [](const Looked* a, const Looked* b) { return a->process.age > b->process.age; });
  std::set<std::pair<std::uint64_t, std::uint64_t>> known;
  std::vector<ListedPool> pools;
  for (Looked* const looked : oldest_first) {
    for (const PoolFile& file : looked->pools) {
      if (works_for(*looked, file.id) || !known.emplace(file.id.device, file.id.inode).second) continue;
      auto pool = describe_pool(file, *looked, all);
      if (!pool) continue;
      ++looked->process.pools;
      pools.push_back(std::move(*pool));
    }
  }
  std::stable_sort(pools.begin(), pools.end(), [](const auto& a, const auto& b) { return a.owner < b.owner; });
  return pools;
}

std::vector<Looked> look_at_all(const std::vector<shm::ListedBlock>& blocks) {
  const std::uint64_t user = os::ProcessId::current().user;
  std::vector<Looked> all;
  std::vector<int> pids;
  for (const int pid : os::HostFolder("/proc").numbers()) {
    if (auto looked = look_at(pid, user)) {
      all.push_back(std::move(*looked));
      pids.push_back(pid);
    }
  }
  const auto answers = os::PatientReader<int, Memory>().ask(pids, read_memory);
  std::vector<Looked> ours;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (complete(all[i], answers[i].answer(), blocks)) ours.push_back(std::move(all[i]));
  }
  return ours;
}

}  // namespace

std::string program_name(int pid) {
  std::string name = read(folder_of(pid) + "/comm");
  if (!name.empty() && name.back() == '\n') name.pop_back();
  return name;
}

std::vector<shm::ListedBlock> one_for_each_file(const std::vector<shm::ListedBlock>& all) {
  std::set<std::uint64_t> named;
  for (const shm::ListedBlock& block : all) {
    if (!block.hidden) named.insert(block.file.inode);
  }
  std::vector<shm::ListedBlock> blocks;
  for (const shm::ListedBlock& block : all) {
    if (!block.hidden || !named.contains(block.file.inode)) blocks.push_back(block);
  }
  return blocks;
}

Survey take_survey() {
  Survey survey;
  survey.blocks = one_for_each_file(shm::list_blocks());
  std::vector<Looked> all = look_at_all(survey.blocks);
  survey.pools = find_pools(all);
  for (Looked& looked : all) survey.processes.push_back(std::move(looked.process));
  return survey;
}

}  // namespace drover::inline v1::cli
