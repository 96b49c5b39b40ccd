// SPDX-License-Identifier: Apache-2.0
#include "drover/health/probe/process_probe.h"

#include <algorithm>
#include <optional>

#include "drover/health/drm/fdinfo.h"
#include "drover/health/probe/proc_text.h"
#include "drover/os/file_system.h"
#include "drover/os/terminal.h"

namespace drover::inline v1::health {
namespace {

constexpr std::size_t kThreadsWithPlace = 8;  // of which the kernel function is read even when they are not in D
constexpr std::size_t kMostDescriptors = 65'536;
constexpr std::size_t kAtOnce = 16;                      // folders that are open at one time, see kDescriptors
constexpr int kKeepFrom = 3;                             // lists: to keep files open pays from then on
constexpr unsigned kListensEvery = 8;                    // looks: it means to read the machine's table of connections
constexpr unsigned kReadAgainEvery = 2 * kListensEvery;  // looks: who calls exec may keep its name

/// Of which of these sockets, in ascending order, it has a descriptor; nullopt when that may not be seen.
std::optional<std::vector<std::uint64_t>> open_sockets(const os::HostFolder& folder,
                                                       const std::vector<std::uint64_t>& inodes) {
  const os::HostFolder descriptors(folder, "fd");
  const auto names = descriptors.names(kMostDescriptors);
  if (!names) return std::nullopt;
  std::vector<std::uint64_t> open;
  for (const std::string& name : *names) {
    const auto inode = socket_inode(descriptors.link(name.c_str()).value_or("-"));
    if (inode && std::binary_search(inodes.begin(), inodes.end(), *inode)) open.push_back(*inode);
  }
  return open;
}

/// Whether it listens on a port of a service. What `salloc` listens on, the ancestor of that name if there is one, is
/// no service of who inherited it.
std::optional<bool> listens(const os::HostFolder& folder, const std::optional<os::HostFolder>& salloc, int first_free) {
  const auto tcp = folder.text("net/tcp", 1U << 20U), tcp6 = folder.text("net/tcp6", 1U << 20U);
  if (!tcp && !tcp6) return std::nullopt;
  std::vector<std::uint64_t> inodes = parse_listening(tcp.value_or(std::string()), first_free);
  const std::vector<std::uint64_t> more = parse_listening(tcp6.value_or(std::string()), first_free);
  inodes.insert(inodes.end(), more.begin(), more.end());
  if (inodes.empty()) return false;
  std::sort(inodes.begin(), inodes.end());
  if (salloc) {
    const auto inherited = open_sockets(*salloc, inodes).value_or(std::vector<std::uint64_t>());
    std::erase_if(inodes, [&](std::uint64_t inode) {
      return std::find(inherited.begin(), inherited.end(), inode) != inherited.end();
    });
  }
  const auto open = open_sockets(folder, inodes);
  return open ? std::optional(!open->empty()) : std::nullopt;
}

bool is_terminal_device(const std::string& link) {
  if (link.ends_with(" (deleted)")) return false;  // it was closed: nobody types there any more
  return link.starts_with("/dev/pts/") || link.starts_with("/dev/tty") || link == "/dev/console";
}

/// The salloc that a process belongs to; 0: none.
int salloc_of(const HostSample& host, const ProcessBrief& process) {
  for (const ProcessBrief& ancestor : Ancestors(host, process)) {
    if (ancestor.name == "salloc") return ancestor.pid;
  }
  return 0;
}

/// The kernel function that a thread waits in; empty: it runs, or that may not be seen.
std::string read_place(const os::HostFolder& folder, const std::string& file, std::string& text) {
  if (folder.read_record(file.c_str(), text) != os::Access::kOk || text == "0") return {};
  return text.substr(0, text.find('\n'));
}

std::vector<ThreadSample> read_threads(const os::HostFolder& folder) {
  std::vector<ThreadSample> threads;
  const os::HostFolder tasks(folder, "task");
  std::string text;
  for (const int tid : tasks.numbers()) {
    if (threads.size() >= kMostThreads) break;
    const std::string name = std::to_string(tid);
    ProcessBrief brief;
    if (tasks.read_record((name + "/stat").c_str(), text) != os::Access::kOk || !parse_stat(text, brief)) continue;
    ThreadSample thread{tid, brief.state, {}};
    const bool place = brief.state == 'D' || threads.size() < kThreadsWithPlace;
    if (place) thread.waits_in = read_place(tasks, name + "/wchan", text);
    threads.push_back(std::move(thread));
  }
  return threads;
}

void add_once(std::vector<int>& numbers, std::optional<int> number) {
  if (number && std::find(numbers.begin(), numbers.end(), *number) == numbers.end()) numbers.push_back(*number);
}

/// 128 for "/dev/dri/renderD128".
std::optional<int> render_minor(const std::string& link) {
  const std::string_view node = drm::node_of(link);
  const auto number = node.substr(0, 7) == "renderD" ? os::parse_number(node.substr(7)) : std::nullopt;
  return number ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

/// A title that is written later takes nothing from the environment that was read before.
void keep(Program program, Program& known) {
  if (!program.environment_known && known.environment_known) {
    program.environment = std::move(known.environment);
    program.environment_known = true;
  }
  known = std::move(program);
}

/// What one process has open; nullopt when that may not be seen.
std::optional<Holder> holder_of(const os::HostFolder& proc, int pid, bool& unreadable) {
  const os::HostFolder descriptors(proc, (std::to_string(pid) + "/fd").c_str());
  const auto names = descriptors.names(kMostDescriptors);
  unreadable = !names && descriptors.access() != os::Access::kGone;
  if (!names) return std::nullopt;
  Holder holder;
  holder.pid = pid;
  bool control = false;
  for (const std::string& name : *names) {
    const std::string link = descriptors.link(name.c_str()).value_or(std::string());
    if (link.size() < 8 || link.compare(0, 5, "/dev/") != 0) continue;
    holder.uvm = holder.uvm || link == "/dev/nvidia-uvm";
    control = control || is_nvidia_control(link) || link == "/dev/kfd";
    add_once(holder.minors, nvidia_minor(link));
    add_once(holder.render_minors, render_minor(link));
  }
  std::sort(holder.minors.begin(), holder.minors.end());
  const bool none = holder.minors.empty() && holder.render_minors.empty();
  if (none && !control) return std::nullopt;
  return holder;
}

}  // namespace

void ProcessProbe::list(HostSample& sample) {
  sample.processes.clear();
  const std::vector<int> pids = proc_.numbers();
  sample.processes.reserve(pids.size());
  auto kept = kept_.begin();
  for (const int pid : pids) {
    while (kept != kept_.end() && kept->first < pid) kept = kept_.erase(kept);
    const bool has = kept != kept_.end() && kept->first == pid;
    ProcessBrief brief;
    const os::Access access = read_stat(pid, has ? &kept->second : nullptr);
    if (has) ++kept;
    if (access == os::Access::kDenied) ++sample.unreadable_processes;
    if (access == os::Access::kNoDescriptor) sample.without_descriptor.insert(pid);
    if (access != os::Access::kOk || !parse_stat(text_, brief) || brief.pid != pid) continue;
    sample.processes.push_back(std::move(brief));
  }
  kept_.erase(kept, kept_.end());
  ++lists_;
  forget_the_ended(sample);
}

/// Of a process that has ended nothing more can be read, and another one may have its number: then it is opened anew.
os::Access ProcessProbe::read_stat(int pid, os::Fd* kept) {
  if (kept != nullptr && os::read_record_again(*kept, text_) == os::Access::kOk) return os::Access::kOk;
  os::Fd file;
  const os::Access access = proc_.read_record((std::to_string(pid) + "/stat").c_str(), text_, file);
  if (kept != nullptr) {
    *kept = std::move(file);
  } else if (access == os::Access::kOk && lists_ >= kKeepFrom && kept_.size() < most_kept_) {
    kept_.emplace(pid, std::move(file));
  }
  return access;
}

void ProcessProbe::describe(HostSample& sample, const std::set<int>& pids, bool threads) {
  auto patience = ProgramReader::kPatience;
  for (auto at = pids.begin(); at != pids.end();) {
    std::vector<Described> all;
    for (; at != pids.end() && all.size() < kAtOnce; ++at) {
      const ProcessBrief* const brief = find_process(sample, *at);
      if (brief == nullptr) continue;
      auto folder = std::make_shared<const os::HostFolder>(proc_, std::to_string(*at).c_str());
      ProcessBrief again;
      const os::Access access = folder->read_record("stat", text_);
      if (access == os::Access::kNoDescriptor) sample.without_descriptor.insert(*at);
      if (access != os::Access::kOk || !parse_stat(text_, again)) continue;
      if (again.start_ticks != brief->start_ticks) continue;  // another process has this number now
      ProcessDetail& detail = sample.details[*at];
      detail.first = {*at, again.state, read_place(*folder, "wchan", text_)};
      if (!read_state(detail, *folder, threads)) sample.without_descriptor.insert(*at);
      all.push_back(look_up(sample, *brief, std::move(folder), detail));
    }
    if (read_programs(all, patience)) patience = ProgramReader::kMoment;  // it was waited for once
  }
}

void ProcessProbe::read_io(HostSample& sample, const std::set<int>& pids) {
  for (const int pid : pids) {
    if (proc_.read_record((std::to_string(pid) + "/io").c_str(), text_) != os::Access::kOk) continue;
    if (const auto bytes = parse_io(text_)) sample.io_of_descendants[pid] = *bytes;
  }
}

/// False when no descriptor was left for that.
bool ProcessProbe::read_state(ProcessDetail& detail, const os::HostFolder& folder, bool threads) {
  const os::Access access = folder.read("status", text_);
  if (access == os::Access::kNoDescriptor) return false;
  if (access == os::Access::kOk) {
    const StatusFields status = parse_status(text_);
    detail.uid = status.uid;
    detail.kill_pending = status.kill_pending;
    detail.tracer = status.tracer;
    detail.inner_pid = status.inner_pid;
  }
  if (folder.read_record("io", text_) == os::Access::kOk) detail.io_bytes = parse_io(text_);
  if (threads) detail.threads = read_threads(folder);
  return true;
}

ProcessProbe::Described ProcessProbe::look_up(const HostSample& host, const ProcessBrief& brief,
                                              std::shared_ptr<const os::HostFolder> folder, ProcessDetail& detail) {
  Known& known = known_[{brief.pid, brief.start_ticks}];
  if (known.name != brief.name) known = Known();  // another program
  known.name = brief.name;
  const bool again = known.looks % kReadAgainEvery == 0;
  if (again) known.listens.reset();
  if (!known.listens.value_or(false) && known.looks % kListensEvery == 0) {
    std::optional<os::HostFolder> salloc;
    if (const int pid = salloc_of(host, brief); pid != 0) salloc.emplace(proc_, std::to_string(pid).c_str());
    const std::string range = proc_.text("sys/net/ipv4/ip_local_port_range", 64).value_or(std::string());
    known.listens = listens(*folder, salloc, parse_first_free_port(range));
    const auto input = folder->link("fd/0");
    known.at_terminal = input ? std::optional(is_terminal_device(*input)) : std::nullopt;
  }
  ++known.looks;
  const bool read = again || known.program.command.empty();  // empty as well while it is being started
  return {&detail, &known, std::move(folder), read && !known.request.pending()};
}

/// Whether one hangs that did not before.
bool ProcessProbe::read_programs(const std::vector<Described>& all, std::chrono::milliseconds patience) {
  bool hangs = false;
  std::vector<std::shared_ptr<const os::HostFolder>> folders;
  for (const Described& one : all) {
    if (one.read) folders.push_back(one.folder);
  }
  const std::vector<ProgramReader::Request> requests = reader_.ask(std::move(folders), read_program, patience);
  auto request = requests.begin();
  for (const auto& [detail, known, folder, read] : all) {
    if (read) known->request = *request++;
    if (const Program* const program = known->request.answer()) {
      // Of a process that ends the command is empty: then what it was stays.
      if (!program->command.empty() || known->program.command.empty()) keep(*program, known->program);
      known->request = {};
    }
    detail->command = known->program.command;
    detail->cgroup = known->program.cgroup;
    detail->environment = known->program.environment;
    detail->environment_known = known->program.environment_known;
    detail->listens = known->listens;
    detail->at_terminal = known->at_terminal;
    detail->reads_terminal = known->at_terminal.value_or(false) &&
                             os::waits_for_standard_input(folder->text("syscall", 256).value_or(std::string()));
    detail->memory_locked = known->request.pending();
    hangs = hangs || (read && detail->memory_locked);
  }
  return hangs;
}

HolderScan ProcessProbe::find_holders(const HostSample& sample) const {
  HolderScan scan;
  scan.done = true;
  for (const ProcessBrief& process : sample.processes) {
    if (process.state == 'Z' && process.threads <= 1) continue;  // has closed everything
    bool unreadable = false;
    if (auto holder = holder_of(proc_, process.pid, unreadable)) scan.holders.push_back(std::move(*holder));
    if (unreadable) ++scan.unreadable;
  }
  return scan;
}

void ProcessProbe::forget_the_ended(const HostSample& sample) {
  for (auto at = known_.begin(); at != known_.end();) {
    const ProcessBrief* const brief = find_process(sample, at->first.first);
    at = brief != nullptr && brief->start_ticks == at->first.second ? std::next(at) : known_.erase(at);
  }
}

}  // namespace drover::inline v1::health
