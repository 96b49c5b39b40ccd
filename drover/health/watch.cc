// SPDX-License-Identifier: Apache-2.0
#include "drover/health/watch.h"

#include <algorithm>
#include <exception>
#include <set>
#include <utility>

#include "drover/base/errors.h"
#include "drover/health/scenario/scenario_source.h"
#include "drover/os/host_files.h"

namespace drover::inline v1::health {
namespace {

constexpr double kGlance = 0.2;        // the kernel's clocks count in hundredths of a second
constexpr double kSaveEvery = 30;      // seconds
constexpr double kHoldersEvery = 10;   // seconds
constexpr double kKeepEnded = 60;      // seconds: a process that a look missed is not forgotten at once
constexpr double kPlayedSteps = 60;    // looks over the window of a situation
constexpr double kSeriesSpacing = 60;  // seconds
constexpr std::size_t kFewThreads = 512;
constexpr int kThreadsEvery = 5;       // looks
constexpr double kSeldom = 10;         // seconds between looks: then their cost does not matter
constexpr std::size_t kMostBusy = 30;  // a screen's worth

std::unique_ptr<Source> source_of(const InspectOptions& options) {
  if (options.window.count() != 0) throw InvalidArgument("watch: it has no window, it ends when it is told to");
  check(options);
  if (!options.demo.empty()) return scenario_source(demo_scenario(options.demo));
  os::require_descriptors(kDescriptors);
  return system_source({.root = options.root, .deadline = options.deadline, .wake = options.wake});
}

Thresholds thresholds_of(const InspectOptions& options) {
  return options.demo.empty() ? limits_of(options) : limits_of(demo_scenario(options.demo), options.set);
}

WatchOptions watch_options(const InspectOptions& options) {
  const double interval = options.interval.count();
  return {.interval_s = interval > 0 ? interval : 1,
          .history = options.demo.empty() ? options.history : std::string(),
          .played_s = options.demo.empty() ? 0 : demo_scenario(options.demo).window()};
}

const GpuSample* find_gpu(const DriverSample& driver, int index) {
  const auto at =
      std::find_if(driver.gpus.begin(), driver.gpus.end(), [&](const GpuSample& gpu) { return gpu.index == index; });
  return at == driver.gpus.end() ? nullptr : &*at;
}

/// 0: there is no such process.
std::uint64_t start_of(const HostSample& host, int pid) {
  const ProcessBrief* const brief = find_process(host, pid);
  return brief != nullptr ? brief->start_ticks : 0;
}

/// The row of the sample that this one of the report is about; of MIG a process may have several.
const GpuProcessRow* find_row(const GpuSample& gpu, const GpuProcessReport& report) {
  const auto at = std::find_if(gpu.rows.begin(), gpu.rows.end(), [&](const GpuProcessRow& row) {
    return row.pid == report.process.pid &&
           row.gpu_instance == report.gpu_instance.value_or(GpuProcessRow::kNoInstance) &&
           row.compute_instance == report.compute_instance.value_or(GpuProcessRow::kNoInstance);
  });
  return at == gpu.rows.end() ? nullptr : &*at;
}

/// Why this look does not tell what a process does; empty: it does.
std::string why_unknown(const GpuSample& gpu, const GpuProcessRow* row) {
  if (!gpu.stuck_in.empty()) return "the GPU does not answer";
  if (!gpu.not_asked.empty()) return "the GPU was not asked";
  if (row == nullptr) return "the last look did not find it on the GPU";
  if (!gpu.activity.ok() && gpu.activity.code != Reading::kNotFound) return gpu.activity.why();
  return Reading{row->use_code, 0}.why();
}

/// A report has means over all looks; who watches wants to see what is now.
void show_the_last_look(Report& report, const DriverSample& driver) {
  for (GpuReport& gpu : report.gpus) {
    const GpuSample* const sample = find_gpu(driver, gpu.index);
    if (sample == nullptr) continue;
    gpu.cores = {(*sample)[Metric::kUtilCores].number(0.01), (*sample)[Metric::kUtilCores].why()};
    gpu.memory = {(*sample)[Metric::kUtilMemory].number(0.01), (*sample)[Metric::kUtilMemory].why()};
    for (GpuProcessReport& row : gpu.processes) {
      if (!row.cores) continue;  // nothing is known of processes here
      const std::string why = why_unknown(*sample, find_row(*sample, row));
      if (!why.empty()) {
        row.cores = row.memory = {std::nullopt, why};
        continue;
      }
      const auto active = std::find_if(sample->active.begin(), sample->active.end(),
                                       [&](const GpuActivityRow& one) { return one.pid == row.process.pid; });
      const bool none = active == sample->active.end();
      row.cores.value = none ? 0 : 0.01 * active->cores;
      row.memory.value = none ? 0 : 0.01 * active->memory;
    }
  }
}

}  // namespace

Watch::Watch(const InspectOptions& options)
    : Watch(source_of(options), thresholds_of(options), watch_options(options)) {}

Watch::Watch(std::unique_ptr<Source> source, const Thresholds& limits, const WatchOptions& options)
    : source_(std::move(source)),
      limits_(limits),
      options_(options),
      container_(source_->container()),
      tracker_(limits_) {
  if (!options_.history.empty()) history_.emplace(options_.history, source_->boot(), tracker_, series_);
}

void Watch::add(const Sample& sample) {
  tracker_.add(sample, container_, [this](int pid) { return source_->exists(pid); });
  add_points(series_, sample, kSeriesSpacing);
  ++count_;
}

/// The look that the first report is compared with; of a situation, all that leads to it.
void Watch::begin() {
  begun_at_ = source_->now();
  const double step = std::clamp(options_.played_s / kPlayedSteps, 1.0, 10.0);
  for (double at = 0; at < options_.played_s; at += step) {
    source_->wait(begun_at_ + at);
    before_ = source_->sample(tracker_.watched(), true);
    add(*before_);
  }
  if (!before_) {
    before_ = source_->sample({}, true);
    add(*before_);
  }
  due_ = options_.played_s > 0 ? begun_at_ + options_.played_s : before_->at + kGlance;
}

Report Watch::look() {
  if (!before_) begin();
  source_->wait(due_);
  Sample last = source_->sample(tracker_.watched(), looks_at_threads());
  add(last);
  Report report = conclude(*source_, limits_, tracker_,
                           {.first = *before_,
                            .last = last,
                            .count = count_,
                            .window_s = last.at - begun_at_,
                            .once = false,
                            .most_busy = kMostBusy,
                            .holders = [this](Sample& sample) { return holders(sample); }});
  show_the_last_look(report, last.driver);
  describe_series(report, series_, last.at);
  forget_the_ended(last);
  // A look that took long is not made up for.
  due_ = std::max(last.at + options_.interval_s, source_->now());
  const bool first = saved_at_ == 0;
  before_ = std::move(last);
  if (first || before_->at - saved_at_ >= kSaveEvery) try_to_save();
  if (!unsaved_.empty()) add_unsaved(report, unsaved_);
  return report;
}

/// A full disk may have room again; what is seen meanwhile is worth more than its past.
void Watch::try_to_save() {
  try {
    save();
    unsaved_.clear();
  } catch (const std::exception& error) {
    unsaved_ = error.what();
  }
}

void Watch::save() {
  if (!before_) return;
  saved_at_ = before_->at;
  if (history_) history_->save(tracker_, series_, before_->at);
}

/// Ranks of a training have hundreds of threads each, and to look at a thread costs as much as at a process: where
/// there are many, it is done in every fifth look. What matters there, matters after a minute. The first thread of each
/// process is seen in every look.
bool Watch::looks_at_threads() {
  std::size_t threads = 0;
  for (const auto& [pid, detail] : before_->host.details) {
    const ProcessBrief* const brief = find_process(before_->host, pid);
    if (brief != nullptr) threads += static_cast<std::size_t>(std::max(brief->threads, 1));
  }
  return threads <= kFewThreads || options_.interval_s >= kSeldom || count_ % kThreadsEvery == 0;
}

HolderScan Watch::holders(Sample& sample) {
  if (!holders_.done || sample.at - holders_at_ >= kHoldersEvery) {
    holders_ = source_->holders(sample);
    holders_at_ = sample.at;
    holder_starts_.clear();
    for (const Holder& holder : holders_.holders) holder_starts_[holder.pid] = start_of(sample.host, holder.pid);
    return holders_;
  }
  std::erase_if(holders_.holders, [&](const Holder& holder) {  // the number was used again
    return find_process(sample.host, holder.pid) != nullptr &&
           start_of(sample.host, holder.pid) != holder_starts_[holder.pid];
  });
  std::set<int> pids;
  for (const Holder& holder : holders_.holders) pids.insert(holder.pid);
  source_->describe_processes(sample, pids);
  return holders_;
}

/// The tracker keeps what it does not see any more for a day, as a run of cron may miss it. Here every process is seen,
/// and a machine that compiles would fill the memory with those that waited for a disk once.
void Watch::forget_the_ended(const Sample& last) {
  std::erase_if(tracker_.processes(), [&](const auto& entry) {
    if (last.at - entry.second.seen < kKeepEnded) return false;
    const ProcessBrief* const brief = find_process(last.host, entry.first.first);
    return brief == nullptr || brief->start_ticks != entry.first.second;
  });
}

}  // namespace drover::inline v1::health
