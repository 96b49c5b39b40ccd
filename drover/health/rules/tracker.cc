// SPDX-License-Identifier: Apache-2.0
#include "drover/health/rules/tracker.h"

#include <algorithm>
#include <cmath>

#include "drover/health/rules/kernel_place.h"
#include "drover/os/host_files.h"

namespace drover::inline v1::health {
namespace {

using enum Limit;

constexpr double kNearly = 0.1;        // of a core: how far from one core a thread that polls may be
constexpr double kForget = 24 * 3600;  // what was not seen for so long is dropped

const ProcessBrief* find_in(const std::vector<ProcessBrief>& table, int pid) noexcept {
  const auto at = std::lower_bound(table.begin(), table.end(), pid,
                                   [](const ProcessBrief& process, int wanted) { return process.pid < wanted; });
  return at != table.end() && at->pid == pid ? &*at : nullptr;
}

bool contains(const std::vector<int>& numbers, int number) {
  return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

bool is_stuck(const ThreadSample& thread) { return thread.state == 'D' && !is_frozen(thread.state, thread.waits_in); }

/// It waits for others with all threads. One whose first thread sleeps for a time, or reads a terminal, as debuggers
/// do, was made to. Not known where its threads were not seen.
Holds asleep(const ProcessBrief& brief, const ProcessDetail& detail) {
  if (brief.state != 'S' || rests_on_purpose(brief.state, detail.first.waits_in)) return Holds::kNo;
  if (detail.threads.empty()) return Holds::kUnknown;
  const bool all = std::all_of(detail.threads.begin(), detail.threads.end(),
                               [](const ThreadSample& thread) { return thread.state == 'S'; });
  return all ? Holds::kYes : Holds::kNo;
}

/// A freezer holds all threads: the first one tells, as long as it lives. `before`: what the last look said.
bool frozen_now(const ProcessDetail& detail, bool before) {
  const ThreadSample* thread = &detail.first;
  if (thread->state == 'Z') {
    const auto living = std::find_if(detail.threads.begin(), detail.threads.end(),
                                     [](const ThreadSample& one) { return one.state != 'Z'; });
    if (living == detail.threads.end()) return before && detail.threads.empty();
    thread = &*living;
  }
  return is_frozen(thread->state, thread->waits_in);
}

}  // namespace

ProcessKey key_of(const HostSample& host, int pid) noexcept {
  const ProcessBrief* const process = find_process(host, pid);
  return {pid, process != nullptr ? process->start_ticks : 0};
}

void Tracker::add(const Sample& sample, bool container, const std::function<bool(int)>& exists) {
  add_cpu(sample);
  add_io(sample);
  for (const auto& [pid, detail] : sample.host.details) {
    const ProcessBrief* const brief = find_process(sample.host, pid);
    if (brief != nullptr) add_process(sample, *brief, detail);
  }
  for (const GpuSample& gpu : sample.driver.gpus) add_gpu(sample, gpu, container, exists);
  forget(sample.at);
  before_ = sample.host.processes;
  last_at_ = sample.at;
}

/// What each process and its descendants used since the last look. Those that are new count from their start.
void Tracker::add_cpu(const Sample& sample) {
  cpu_delta_.clear();
  if (last_at_ < 0) return;
  const double tick = 1 / os::clock_ticks();
  for (const ProcessBrief& process : sample.host.processes) {
    const ProcessBrief* const old = find_in(before_, process.pid);
    const bool same = old != nullptr && old->start_ticks == process.start_ticks;
    const std::uint64_t base = same ? old->cpu_ticks : 0;
    if (process.cpu_ticks <= base) continue;
    const double delta = static_cast<double>(process.cpu_ticks - base) * tick;
    for (const ProcessBrief& at : Ancestors::and_itself(sample.host, process)) cpu_delta_[at.pid] += delta;
  }
}

/// What the descendants of each process read and wrote since the last look, of those that were seen then or are new.
void Tracker::add_io(const Sample& sample) {
  std::map<ProcessKey, std::uint64_t> now;
  io_below_.clear();
  const auto add = [&](int pid, std::uint64_t bytes) {
    const ProcessBrief* const process = find_process(sample.host, pid);
    if (process == nullptr) return;
    const ProcessKey key{pid, process->start_ticks};
    now[key] = bytes;
    const auto before = io_before_.find(key);
    const bool is_new = static_cast<double>(process->start_ticks) / os::clock_ticks() >= last_at_;
    if (last_at_ < 0 || (before == io_before_.end() && !is_new)) return;
    const std::uint64_t base = before != io_before_.end() ? before->second : 0;
    const double delta = bytes > base ? static_cast<double>(bytes - base) : 0;
    for (const ProcessBrief& ancestor : Ancestors(sample.host, *process)) io_below_[ancestor.pid] += delta;
  };
  for (const auto& [pid, detail] : sample.host.details) {
    if (detail.io_bytes) add(pid, *detail.io_bytes);
  }
  for (const auto& [pid, bytes] : sample.host.io_of_descendants) add(pid, bytes);
  io_before_ = std::move(now);
}

void Tracker::add_process(const Sample& sample, const ProcessBrief& brief, const ProcessDetail& detail) {
  ProcessTrack& track = processes_[{brief.pid, brief.start_ticks}];
  add_work(track, sample.at, brief, detail);
  const auto add = [&](Streak& streak, bool holds) {
    const Holds answer = holds ? Holds::kYes : Holds::kNo;
    streak.add(sample.at, sample.at, answer, limits_[kGap], static_cast<int>(limits_[kClear]));
  };
  add(track.killed, detail.kill_pending);
  add(track.defunct, brief.state == 'Z');
  track.frozen = frozen_now(detail, track.frozen);
  add_threads(track, sample.at, detail);
  track.seen = sample.at;
}

/// Where the threads were not looked at, the first one was all the same; another one that is stuck may be so still, and
/// says more when the first one only waits for it.
void Tracker::add_threads(ProcessTrack& track, double at, const ProcessDetail& detail) {
  const ThreadSample& first = detail.first;
  if (!detail.threads.empty()) {
    add_stuck(track, at, detail.threads);
    track.others_unseen = false;
    return;
  }
  if (!track.stuck.holds()) {
    add_stuck(track, at, {first});
    track.others_unseen = true;
    return;
  }
  if (!contains(track.stuck_threads, first.tid)) return;
  if (track.stuck_threads.size() == 1) return add_stuck(track, at, {first});
  if (is_stuck(first)) {
    track.stuck.add(at, at, Holds::kYes, limits_[kGap], static_cast<int>(limits_[kClear]));
  } else {
    std::erase(track.stuck_threads, first.tid);
  }
}

/// What it did since it was last seen: CPU time, with all descendants when it was seen in the last look, else its own;
/// and what was read and written.
void Tracker::add_work(ProcessTrack& track, double at, const ProcessBrief& brief, const ProcessDetail& detail) {
  const double from = track.seen >= 0 ? track.seen : at, seconds = at - from;
  const double own = static_cast<double>(brief.cpu_ticks) / os::clock_ticks();
  const auto found = cpu_delta_.find(brief.pid);
  const double with_all = found != cpu_delta_.end() ? found->second : 0;
  const bool in_last_look = last_at_ >= 0 && track.seen == last_at_;
  const double used = in_last_look ? with_all : std::max(0.0, own - track.cpu_seconds);
  const std::uint64_t bytes = detail.io_bytes.value_or(track.io_bytes);
  const std::uint64_t more = bytes > track.io_bytes ? bytes - track.io_bytes : 0;
  track.io_known = detail.io_bytes.has_value();
  track.io_rate = track.io_known && seconds > 0 ? static_cast<double>(more) / seconds : -1;
  track.io_bytes = bytes;
  track.own_share = seconds > 0 ? std::max(0.0, own - track.cpu_seconds) / seconds : 0;
  track.cpu_seconds = own;
  const auto below = io_below_.find(brief.pid);
  track.io_below = in_last_look && seconds > 0 && below != io_below_.end() ? below->second / seconds : 0;
  if (!(seconds > 0)) return;
  track.cpu_share = used / seconds;
  track.measured = true;
  const double tick = 1 / os::clock_ticks() / seconds;     // the clock's grain must not make a sleeper busy
  const bool child_works = track.io_below > kMuchTraffic;  // as a copy that it started, and waits for
  const bool silent = track.io_rate <= limits_[kR7Io] && !child_works;
  const bool calm = track.cpu_share <= limits_[kR8Cpu] + tick && track.io_rate <= limits_[kR8Io] && !child_works;
  const bool still = track.cpu_share <= limits_[kR7Cpu] + tick && silent;
  const int clear = static_cast<int>(limits_[kClear]);
  track.calm.add(from, at, calm ? Holds::kYes : Holds::kNo, limits_[kGap], clear);
  track.blocked.add(from, at, still ? asleep(brief, detail) : Holds::kNo, limits_[kGap], clear);
  const bool polls = track.io_known && silent && std::abs(track.cpu_share - 1) <= kNearly + tick;
  track.polls.add(from, at, polls ? Holds::kYes : Holds::kNo, limits_[kGap], clear);
}

/// The same thread must be uninterruptible in every look: different ones that wait for a disk in turn are at work.
/// Those that no look has seen yet come in with the first one, as long as that is stuck.
void Tracker::add_stuck(ProcessTrack& track, double at, const std::vector<ThreadSample>& threads) {
  std::vector<int> stuck;
  std::string place;
  const auto was_stuck = [&](const ThreadSample& thread) { return contains(track.stuck_threads, thread.tid); };
  const bool goes_on = std::any_of(threads.begin(), threads.end(),
                                   [&](const ThreadSample& thread) { return is_stuck(thread) && was_stuck(thread); });
  const bool any = !track.stuck.holds() || (track.others_unseen && goes_on);
  for (const ThreadSample& thread : threads) {
    if (!is_stuck(thread) || (!any && !was_stuck(thread))) continue;
    stuck.push_back(thread.tid);
    if (place.empty() || waits_in_driver(thread.waits_in)) place = thread.waits_in;
  }
  const bool moved = track.io_rate > limits_[kR7Io] && !waits_in_driver(place);
  const Holds answer = stuck.empty() || moved ? Holds::kNo : Holds::kYes;
  track.stuck.add(at, at, answer, limits_[kGap], static_cast<int>(limits_[kClear]));
  if (answer == Holds::kYes && !place.empty()) track.stuck_in = place;
  if (!track.stuck.holds()) track.stuck_in.clear();
  track.in_driver = waits_in_driver(track.stuck_in);
  track.in_storage = !track.in_driver && waits_in_storage(track.stuck_in);
  track.for_memory = !track.in_driver && waits_for_memory(track.stuck_in);
  // One that is reported outlives a few looks in which nobody is stuck, and goes on only with those that were.
  if (!stuck.empty() || !track.stuck.holds()) track.stuck_threads = std::move(stuck);
}

void Tracker::forget(double now) {
  const auto old = [&](const auto& entry) { return now - entry.second.seen > kForget; };
  std::erase_if(processes_, old);
  std::erase_if(holds_, old);
}

std::set<int> Tracker::watched() const {
  std::set<ProcessKey> on_gpus;
  for (const auto& [key, hold] : holds_) on_gpus.insert(key.second);
  std::set<int> pids;
  for (const auto& [key, track] : processes_) {
    const bool in_trouble = track.stuck.holds() || track.killed.holds() || track.defunct.holds();
    if (track.seen == last_at_ && (in_trouble || on_gpus.count(key) > 0)) pids.insert(key.first);
  }
  return pids;
}

const ProcessTrack* Tracker::process(const ProcessKey& key) const noexcept {
  const auto at = processes_.find(key);
  return at == processes_.end() ? nullptr : &at->second;
}

const HoldTrack* Tracker::hold(const std::string& gpu, const ProcessKey& key) const noexcept {
  const auto at = holds_.find({gpu, key});
  return at == holds_.end() ? nullptr : &at->second;
}

ProcessKey Tracker::owner(const HostSample& host, const std::string& gpu, int pid) const noexcept {
  const GpuTrack* const track = this->gpu(gpu);
  if (track == nullptr) return key_of(host, pid);
  const auto outlived = track->outlived.find(pid);
  return outlived != track->outlived.end() ? outlived->second : key_of(host, pid);
}

const GpuTrack* Tracker::gpu(const std::string& uuid) const noexcept {
  const auto at = gpus_.find(uuid);
  return at == gpus_.end() ? nullptr : &at->second;
}

}  // namespace drover::inline v1::health
