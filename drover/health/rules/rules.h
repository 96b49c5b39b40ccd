// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drover/health/report.h"
#include "drover/health/rules/identity.h"
#include "drover/health/rules/tracker.h"
#include "drover/health/sample.h"
#include "drover/health/thresholds.h"

namespace drover::inline v1::health {

/// All that a verdict may depend on. Refers to its parts.
struct Scene {
  const Sample& last;
  const Tracker& tracker;
  const HolderScan& holders;
  const Thresholds& limits;
  bool once = true;
  bool container = false;
  double window_s = 0;
  std::function<std::string(std::uint32_t)> user;
};

/// Findings of all rules, the worst first. One process gets one verdict about what it does: the most specific.
std::vector<Finding> judge(const Scene& scene);

/// A process on GPUs, with all that is known about it.
struct Subject {
  int pid = 0;
  const ProcessBrief* brief = nullptr;  ///< nullptr: it is not in the table
  const ProcessDetail* detail = nullptr;
  const ProcessTrack* track = nullptr;
  Job job;
  Kind kind = Kind::kPlain;
  struct On {
    const GpuSample* gpu;
    const GpuProcessRow* row;
    const HoldTrack* hold;
    const GpuTrack* track;
  };
  std::vector<On> gpus;  ///< in order of index

  std::optional<double> memory() const;  ///< on all GPUs; nullopt when none tells
  double age(double now) const { return brief != nullptr ? age_of(*brief, now) : 0; }
};

/// The processes on GPUs, by pid.
std::vector<Subject> subjects(const Scene& scene);

// The rules, a file a family. Each appends what it finds.
void judge_driver(const Scene& scene, std::vector<Finding>& findings);                                   // R1, G0
void judge_clocks(const Scene& scene, std::vector<Finding>& findings);                                   // R1
void judge_memory(const Scene& scene, std::vector<Finding>& findings);                                   // R9
void judge_stuck(const Scene& scene, const std::vector<Subject>& all, std::vector<Finding>& findings);   // R2, R3
void judge_absent(const Scene& scene, const std::vector<Subject>& all, std::vector<Finding>& findings);  // R4, G0
void judge_jobs(const Scene& scene, const std::vector<Subject>& all, std::vector<Finding>& findings);    // R5 to R8
void judge_host(const Report& report, const Thresholds& limits, std::vector<Finding>& findings);

/// Names of programs that look after processes of others, which would end or lose them: of containers, schedulers,
/// sessions and services.
bool is_supervisor(std::string_view name);

/// Who has a GPU's device file open, and is not in the driver's list.
struct UnlistedHolders {
  std::vector<int> pids;  ///< who may hold memory of it
  /// Who holds none of it, by the reason: services of the machine, and what belongs to a process that is listed and
  /// lives. Nobody is to end them.
  std::map<std::string, std::vector<int>> others;
};
/// The vendor's own daemons are left out. `uid`: of whom the memory is, when that is known. nullopt: the driver does
/// not tell the number of the device.
std::optional<UnlistedHolders> unlisted_holders(const Scene& scene, const GpuSample& gpu,
                                                std::optional<std::uint32_t> uid = {});
/// Those that the driver lists on it and that live.
std::vector<int> listed_and_alive(const Scene& scene, const GpuSample& gpu);
/// Memory that one of these imported from a process that ended is still used, and is nobody's in the lists: they are to
/// be asked before anything is reset. Nothing where there are none.
void note_importers(const Scene& scene, const GpuSample& gpu, Finding& finding);
/// A note about those who have it open and are left alone; nothing where there are none.
void note_others(const Scene& scene, const UnlistedHolders& holders, Finding& finding);
/// "1 other rank", "3 other ranks"
std::string count_text(int count, const char* one, const char* many);

/// "4000 (python)"
std::string name_of(const HostSample& host, int pid);
std::string names_of(const HostSample& host, const std::vector<int>& pids);
/// Says that they are not known, and how to find them.
void explain_unknown_holders(const Scene& scene, const GpuSample& gpu, Finding& finding);

/// A finding about a process, or about a GPU, with who and what filled in.
Finding about(const Scene& scene, Rule rule, const Subject& subject, const char* verdict);
Finding about(Rule rule, const GpuSample& gpu, const char* verdict);

/// For a condition that needs time: a warning only when it held for `enough`; a single look says which window tells
/// more.
void grade(const Scene& scene, Finding& finding, double held_s, double enough_s, Severity severity,
           Confidence confidence, int looks = std::numeric_limits<int>::max());

// Advice, in the order in which it is to be followed.
void advise_asking(Finding& finding, const Job& job);
/// The same about `subject`; but what its scheduler or engine ends as a whole is not advised while something else on a
/// GPU that belongs to it, and not to the subject's own job, does not rest.
void advise_asking(const Scene& scene, const std::vector<Subject>& all, const Subject& subject, Finding& finding);
/// For one that is stopped, or paused by its cgroup.
void advise_continuing(Finding& finding, const Subject& subject);
/// `collective`: NCCL may know more; `python`: its tools fit. For one whose memory's map is locked see the next.
void advise_evidence(Finding& finding, int pid, bool collective, bool python = true);
/// For one whose memory's map is locked: tools that read its memory would hang.
void advise_careful_evidence(Finding& finding, int pid);
/// `launcher`: 0 when there is none; `pids`: all that may have to be killed in the end.
void advise_ending(Finding& finding, int launcher, const std::vector<int>& pids);
std::string pid_list(const std::vector<int>& pids);
/// Commands, by the GPU's vendor; nullptr: NVIDIA's, of no certain GPU.
std::string how_to_reset(const GpuSample* gpu);
std::string how_to_read_log(const GpuSample* gpu);

}  // namespace drover::inline v1::health
