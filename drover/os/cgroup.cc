// SPDX-License-Identifier: Apache-2.0
#include "drover/os/cgroup.h"

#include <algorithm>
#include <utility>

#include "drover/os/file_system.h"

namespace drover::inline v1::os {
namespace {

constexpr std::size_t kMaxPath = 4096;               // the kernel's PATH_MAX; longer lines are no paths
constexpr std::size_t kMaxMountinfo = 16U << 20U;    // hosts of many containers have tens of thousands of mounts
constexpr std::uint64_t kDefaultPeriodUs = 100'000;  // Documentation/admin-guide/cgroup-v2.rst, cpu.max
constexpr std::uint64_t kUnlimited = 1ULL << 62U;    // version 1 says 2^63 rounded down to a page, of whatever size

std::vector<std::string> split_commas(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::string_view part = take_word(text, ',');
    if (!part.empty()) parts.emplace_back(part);
  }
  return parts;
}

bool contains(const std::vector<std::string>& list, std::string_view item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

bool is_octal(char c) { return c >= '0' && c <= '7'; }

/// mountinfo writes blanks and backslashes as \ooo.
std::string unescape(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escaped = text[i] == '\\' && i + 3 < text.size() && is_octal(text[i + 1]) && is_octal(text[i + 2]) &&
                         is_octal(text[i + 3]);
    if (!escaped) {
      result += text[i];
      continue;
    }
    result += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
    i += 3;
  }
  return result;
}

bool is_path(std::string_view text) { return !text.empty() && text.front() == '/' && text.size() <= kMaxPath; }

std::optional<CgroupMount> parse_mount(std::string_view line) {
  for (int skipped = 0; skipped < 3; ++skipped) take_word(line);  // mount id, parent id, device
  CgroupMount mount;
  mount.root = unescape(take_word(line));
  mount.mount_point = unescape(take_word(line));
  std::string_view word = take_word(line);  // options, then optional fields up to a dash
  while (!word.empty() && word != "-") word = take_word(line);
  const std::string_view type = take_word(line);
  if (type != "cgroup" && type != "cgroup2") return std::nullopt;
  if (!is_path(mount.root) || !is_path(mount.mount_point)) return std::nullopt;
  mount.unified = type == "cgroup2";
  take_word(line);  // source
  if (!mount.unified) mount.controllers = split_commas(take_word(line));
  return mount;
}

/// `path` below `base`, as "" or "/…"; nullopt when it is not below. A path with ".." leads out of this cgroup
/// namespace and names nothing that can be opened.
std::optional<std::string_view> below(std::string_view path, std::string_view base) {
  if (base == "/") base = "";
  if (path == "/") path = "";
  if (path.substr(0, base.size()) != base) return std::nullopt;
  path.remove_prefix(base.size());
  if (!path.empty() && path.front() != '/') return std::nullopt;
  if ((std::string(path) + "/").find("/../") != std::string::npos) return std::nullopt;
  return path;
}

const CgroupMembership* find_membership(const std::vector<CgroupMembership>& memberships, std::string_view controller) {
  const CgroupMembership* unified = nullptr;
  for (const CgroupMembership& membership : memberships) {
    if (contains(membership.controllers, controller)) return &membership;
    if (membership.unified) unified = &membership;
  }
  return unified;
}

/// The mount that shows most ancestors; of equal ones the last, which covers the others.
const CgroupMount* find_mount(const std::vector<CgroupMount>& mounts, const CgroupMembership& membership,
                              std::string_view controller) {
  const CgroupMount* best = nullptr;
  for (const CgroupMount& mount : mounts) {
    if (mount.unified != membership.unified) continue;
    if (!mount.unified && !contains(mount.controllers, controller)) continue;
    if (!below(membership.path, mount.root)) continue;
    if (best == nullptr || mount.root.size() <= best->root.size()) best = &mount;
  }
  return best;
}

std::optional<std::uint64_t> smaller(std::optional<std::uint64_t> a, std::optional<std::uint64_t> b) {
  if (!a) return b;
  return b ? std::min(*a, *b) : a;
}

/// Reads the files of one cgroup folder.
class Folder {
 public:
  explicit Folder(std::string path) : path_(std::move(path)) {}

  std::string text(const char* name) const { return read_small_file(path_ + "/" + name).value_or(std::string()); }
  std::optional<std::uint64_t> number(const char* name) const { return parse_number(text(name)); }
  std::optional<std::uint64_t> limit(const char* name) const { return parse_memory_limit(text(name)); }
  std::optional<std::uint64_t> keyed(const char* name, std::string_view key) const {
    return keyed_number(text(name), key);
  }

 private:
  std::string path_;
};

std::optional<CpuQuota> read_quota(const Folder& folder, bool unified) {
  if (unified) return parse_cpu_max(folder.text("cpu.max"));
  return parse_cfs_quota(folder.text("cpu.cfs_quota_us"), folder.text("cpu.cfs_period_us"));
}

CgroupMemory read_memory(std::string directory, bool unified) {
  const Folder folder(directory);
  CgroupMemory memory;
  memory.directory = std::move(directory);
  if (unified) {
    memory.limit = smaller(folder.limit("memory.max"), folder.limit("memory.high"));
    memory.usage = folder.number("memory.current");
    memory.reclaimable = folder.keyed("memory.stat", "inactive_file").value_or(0);
  } else {
    memory.limit = folder.limit("memory.limit_in_bytes");
    memory.usage = folder.number("memory.usage_in_bytes");
    memory.reclaimable = folder.keyed("memory.stat", "total_inactive_file").value_or(0);
  }
  return memory;
}

}  // namespace

std::size_t CpuQuota::cpus() const noexcept {
  if (period_us == 0) return 1;
  return std::max<std::size_t>(1, quota_us / period_us + (quota_us % period_us != 0 ? 1 : 0));
}

std::optional<std::uint64_t> CgroupMemory::room() const noexcept {
  if (!limit || !usage) return std::nullopt;
  const std::uint64_t held = *usage - std::min(*usage, reclaimable);
  return *limit - std::min(*limit, held);
}

std::vector<CgroupMembership> parse_cgroup_memberships(std::string_view proc_self_cgroup) {
  std::vector<CgroupMembership> result;
  while (!proc_self_cgroup.empty()) {
    const std::string_view line = take_line(proc_self_cgroup);  // id:controllers:path, the path may hold colons
    const std::size_t first = line.find(':');
    const std::size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos || !is_path(line.substr(second + 1))) continue;
    CgroupMembership membership;
    membership.controllers = split_commas(line.substr(first + 1, second - first - 1));
    membership.unified = line.substr(0, first) == "0" && membership.controllers.empty();
    membership.path = line.substr(second + 1);
    if (membership.unified || !membership.controllers.empty()) result.push_back(std::move(membership));
  }
  return result;
}

std::vector<CgroupMount> parse_cgroup_mounts(std::string_view mountinfo) {
  std::vector<CgroupMount> result;
  while (!mountinfo.empty()) {
    if (auto mount = parse_mount(take_line(mountinfo))) result.push_back(*std::move(mount));
  }
  return result;
}

std::optional<CpuQuota> parse_cpu_max(std::string_view text) noexcept {
  std::string_view line = take_line(text);
  const auto quota = parse_number(take_word(line));
  const std::string_view second = take_word(line);
  const auto period = second.empty() ? std::optional(kDefaultPeriodUs) : parse_number(second);
  if (!quota || *quota == 0 || !period || *period == 0) return std::nullopt;
  return CpuQuota{*quota, *period};
}

std::optional<CpuQuota> parse_cfs_quota(std::string_view quota, std::string_view period) noexcept {
  const auto quota_us = parse_number(quota);  // -1, no quota, is not a number here
  const auto period_us = parse_number(period);
  if (!quota_us || *quota_us == 0 || !period_us || *period_us == 0) return std::nullopt;
  return CpuQuota{*quota_us, *period_us};
}

std::optional<std::uint64_t> parse_memory_limit(std::string_view text) noexcept {
  const auto limit = parse_number(text);
  return limit && *limit < kUnlimited ? limit : std::nullopt;
}

CgroupPath find_cgroup(const std::vector<CgroupMembership>& memberships, const std::vector<CgroupMount>& mounts,
                       std::string_view controller) {
  CgroupPath result;
  const CgroupMembership* const membership = find_membership(memberships, controller);
  if (membership == nullptr) return result;
  result.unified = membership->unified;
  const CgroupMount* const mount = find_mount(mounts, *membership, controller);
  if (mount == nullptr) return result;
  std::string_view rest = below(membership->path, mount->root).value_or("");
  while (!rest.empty()) {
    result.directories.push_back(mount->mount_point + std::string(rest));
    rest = rest.substr(0, rest.rfind('/'));
  }
  result.directories.push_back(mount->mount_point);
  return result;
}

CgroupPath own_cgroup(std::string_view controller, const std::string& root) {
  const auto memberships = read_small_file(root + "/proc/self/cgroup");
  const auto mountinfo = read_small_file(root + "/proc/self/mountinfo", kMaxMountinfo);
  if (!memberships || !mountinfo) return {};
  CgroupPath path = find_cgroup(parse_cgroup_memberships(*memberships), parse_cgroup_mounts(*mountinfo), controller);
  for (std::string& directory : path.directories) directory.insert(0, root);
  return path;
}

std::vector<CpuQuota> cgroup_cpu_quotas(const std::string& root) {
  std::vector<CpuQuota> result;
  CgroupPath path = own_cgroup("cpu", root);
  for (std::string& directory : path.directories) {
    if (const auto quota = read_quota(Folder(std::move(directory)), path.unified)) result.push_back(*quota);
  }
  return result;
}

std::vector<CgroupMemory> cgroup_memory(const std::string& root) {
  std::vector<CgroupMemory> result;
  CgroupPath path = own_cgroup("memory", root);
  for (std::string& directory : path.directories) result.push_back(read_memory(std::move(directory), path.unified));
  return result;
}

CgroupOomKills cgroup_oom_kills(const std::string& root) {
  const CgroupPath path = own_cgroup("memory", root);
  if (path.directories.empty()) return {};
  const Folder folder(path.directories.front());
  CgroupOomKills kills;
  if (path.unified) {
    kills.own = folder.keyed("memory.events.local", "oom_kill");
    kills.subtree = folder.keyed("memory.events", "oom_kill");
  } else {
    kills.own = folder.keyed("memory.oom_control", "oom_kill");
  }
  return kills;
}

}  // namespace drover::inline v1::os
