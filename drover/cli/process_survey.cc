// SPDX-License-Identifier: Apache-2.0
#include "drover/cli/process_survey.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "drover/os/file_system.h"
#include "drover/os/memory.h"
#include "drover/os/process_id.h"
#include "drover/worker/launch.h"

namespace drover::inline v1::cli {
namespace {

namespace fs = std::filesystem;

/// What its descriptors say: the memory files that only programs with Drover have.
struct Holdings {
  bool any = false;
  int pools = 0;
};

Holdings holdings_of(const fs::path& folder) {
  Holdings result;
  std::error_code error;
  for (fs::directory_iterator it(folder / "fd", error), end; !error && it != end; it.increment(error)) {
    std::error_code unread;
    const std::string target = fs::read_symlink(it->path(), unread).string();
    if (unread || !target.starts_with("/memfd:drover-")) continue;
    result.any = true;
    if (target.starts_with("/memfd:drover-pool")) ++result.pools;
  }
  return result;
}

std::string read(const fs::path& path) {
  try {
    return os::read_small_file(path.string()).value_or("");
  } catch (const std::system_error&) {  // it went away in this moment
    return {};
  }
}

bool is_guardian(const fs::path& folder, std::string_view command_line) {
  std::error_code error;
  return command_line.starts_with("drover-guardian") &&
         fs::read_symlink(folder / "exe", error).string().starts_with("/memfd:drover-guardian");
}

bool is_worker(const fs::path& folder) {
  const std::string variable = std::string(1, '\0') + worker::LaunchOrder::kVariable + "=";
  return (std::string(1, '\0') + read(folder / "environ")).find(variable) != std::string::npos;
}

double age_of(int pid) {
  constexpr double kTicksPerSecond = 100;  // USER_HZ, the same on all machines
  const auto start = os::process_start_time(pid);
  const std::string uptime = read("/proc/uptime");
  if (!start || uptime.empty()) return 0;
  return std::max(0.0, std::stod(uptime) - static_cast<double>(*start) / kTicksPerSecond);
}

std::optional<ListedProcess> look_at(const fs::path& folder, int pid, std::uint64_t user) {
  const std::string status = read(folder / "status");
  if (os::keyed_number(status, "Uid:") != user) return std::nullopt;
  ListedProcess process;
  process.pid = pid;
  process.parent = static_cast<int>(os::keyed_number(status, "PPid:").value_or(0));
  Holdings holdings;
  if (is_guardian(folder, read(folder / "cmdline"))) {
    process.role = ListedProcess::Role::kGuardian;
    process.program = "drover-guardian";  // its image has no name that says something
  } else {
    holdings = holdings_of(folder);
    if (!holdings.any) return std::nullopt;
    const bool worker = is_worker(folder);
    process.role = worker ? ListedProcess::Role::kWorker : ListedProcess::Role::kProgram;
    process.pools = holdings.pools - (worker && holdings.pools > 0 ? 1 : 0);  // one is the pool that it works for
    process.program = program_name(pid);
  }
  const auto memory = os::process_memory(pid);
  if (!memory) return std::nullopt;  // it is gone, or a zombie
  process.memory = memory->rss_bytes;
  process.age = age_of(pid);
  return process;
}

}  // namespace

std::string program_name(int pid) {
  std::string name = read("/proc/" + std::to_string(pid) + "/comm");
  if (!name.empty() && name.back() == '\n') name.pop_back();
  return name;
}

std::vector<ListedProcess> list_processes() {
  const std::uint64_t user = os::ProcessId::current().user;
  std::vector<ListedProcess> processes;
  std::error_code error;
  for (fs::directory_iterator it("/proc", error), end; !error && it != end; it.increment(error)) {
    const auto pid = os::parse_number(it->path().filename().string());
    if (!pid) continue;
    if (auto process = look_at(it->path(), static_cast<int>(*pid), user)) processes.push_back(std::move(*process));
  }
  std::sort(processes.begin(), processes.end(), [](const auto& a, const auto& b) { return a.pid < b.pid; });
  return processes;
}

}  // namespace drover::inline v1::cli
