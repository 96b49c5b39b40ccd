// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>

#include "drover/health/rules/rules.h"

namespace drover::inline v1::health {
namespace {

using enum Limit;

/// What NVIDIA's catalog (docs.nvidia.com/deploy/xid-errors) says about the common ones, in short.
struct Xid {
  std::uint64_t number;
  Severity severity;
  const char* meaning;
  std::optional<Metric> state = {};  ///< where the driver tells what it has led to: then that counts, see add_faults
};
constexpr std::array kXids = {
    Xid{13, Severity::kInfo, "an application's illegal access"},
    Xid{31, Severity::kInfo, "an application's page fault"},
    Xid{43, Severity::kInfo, "an application's kernel was stopped"},
    Xid{45, Severity::kInfo, "a channel was removed while its application ended"},
    Xid{46, Severity::kCritical, "the GPU stopped processing"},
    Xid{48, Severity::kCritical, "a double-bit memory error"},
    Xid{61, Severity::kWarning, "the power management unit met a breakpoint"},
    Xid{62, Severity::kCritical, "the power management unit halted"},
    Xid{63, Severity::kWarning, "the remapping of a row was recorded", Metric::kRemapPending},
    Xid{64, Severity::kCritical, "remapping a row failed"}, Xid{74, Severity::kCritical, "an NVLink error"},
    Xid{79, Severity::kCritical, "the GPU has fallen off the bus"},
    Xid{92, Severity::kWarning, "many corrected memory errors"},
    Xid{94, Severity::kWarning, "a memory error that was contained to one application"},
    Xid{95, Severity::kCritical, "a memory error that was not contained"},
    Xid{110, Severity::kCritical, "a security fault"},
    Xid{119, Severity::kCritical, "the GPU's system processor does not answer"},
    Xid{120, Severity::kCritical, "the GPU's system processor failed"},
    Xid{140, Severity::kCritical, "an uncorrected memory error"},
    Xid{143, Severity::kCritical, "the GPU was not initialized"},
    // NVLink 5: the text of the log tells whether it was fatal.
    Xid{144, Severity::kWarning, "an NVLink error"}, Xid{145, Severity::kWarning, "an NVLink error"},
    Xid{146, Severity::kWarning, "an NVLink error"}, Xid{147, Severity::kWarning, "an NVLink error"},
    Xid{148, Severity::kWarning, "an NVLink error"}, Xid{149, Severity::kWarning, "an NVLink error"},
    Xid{150, Severity::kWarning, "an NVLink error"},
    Xid{154, Severity::kWarning, "the recovery action changed", Metric::kRecoveryAction}};

const Xid* find_xid(std::uint64_t number) {
  const auto at = std::find_if(kXids.begin(), kXids.end(), [&](const Xid& xid) { return xid.number == number; });
  return at == kXids.end() ? nullptr : &*at;
}

/// "Xid 79 (the GPU has fallen off the bus)"
std::string name_of_xid(std::uint64_t number) {
  const Xid* const known = find_xid(number);
  return "Xid " + std::to_string(number) + " (" + (known != nullptr ? known->meaning : "not known here") + ")";
}

std::string recovery_text(std::uint64_t action) {
  static constexpr std::array<const char*, 8> kTexts = {"none",
                                                        "reset the GPU",
                                                        "reboot the node",
                                                        "drain peer to peer",
                                                        "drain and reset",
                                                        "the GPU is unavailable",
                                                        "reset the bus",
                                                        "reboot the system"};
  return std::to_string(action) + (action < kTexts.size() ? std::string(" (") + kTexts[action] + ")" : "");
}

std::string names_of_xids(const std::set<std::uint64_t>& xids) {
  std::string text;
  for (const std::uint64_t xid : xids) text += (text.empty() ? "" : ", ") + name_of_xid(xid);
  return text;
}

struct LoggedGroup {
  int count = 0;
  const LoggedXid* last = nullptr;
};

/// "Xid 79 (the GPU has fallen off the bus) in the kernel's log, 3 times, the last 5 min ago, of pid 1234 (python)"
std::string text_of(const LoggedGroup& group, double age) {
  std::string text = name_of_xid(group.last->xid) + " in the kernel's log, ";
  if (group.count > 1) text += std::to_string(group.count) + " times, the last ";
  text += duration_text(age) + " ago";
  if (group.last->pid > 0) text += ", of pid " + std::to_string(group.last->pid);
  if (!group.last->name.empty()) text += " (" + group.last->name + ")";
  return text;
}

void raise(Finding& finding, Severity severity, std::string why) {
  finding.severity = std::max(finding.severity, severity);
  finding.because.push_back(std::move(why));
}

bool answered(const GpuSample& gpu, int code) {
  return gpu.processes.code == code || std::any_of(gpu.readings.begin(), gpu.readings.end(),
                                                   [&](const Reading& reading) { return reading.code == code; });
}

void advise_reset(Finding& finding, const GpuSample* gpu) {
  const bool nvidia = gpu == nullptr || gpu->vendor == "nvidia";
  finding.action.push_back("read the kernel's log: " + how_to_read_log(gpu) +
                           (nvidia ? "; the numbers: docs.nvidia.com/deploy/xid-errors" : ""));
  finding.action.push_back(std::string("drain the node; when nobody uses the GPU") +
                           (nvidia ? " (all peers of an NVSwitch together)" : "") + ": " + how_to_reset(gpu) +
                           ", as root; if that fails, reboot");
}

/// What a finding says that is no fault.
struct XidNotes {
  bool past = false;     ///< there is one that only a look at the past shows
  bool unknown = false;  ///< there is one that the table does not have: nobody can tell how bad it is
  bool settled = false;  ///< there is one of which the driver says that nothing has come of it, or what, see add_faults
};

struct JudgedXid {
  Severity severity = Severity::kInfo;
  bool unknown = false, settled = false;  ///< as in XidNotes

  void add_to(XidNotes& notes) const {
    notes.unknown = notes.unknown || unknown;
    notes.settled = notes.settled || settled;
  }
};

/// One that has come `count` times of late. What the driver answers now settles it: the recovery action however often
/// it changed, a row's remapping only when it came once, as memory that fails again and again is worn. `gpu` is null
/// when the driver does not list it.
JudgedXid judge_xid(std::uint64_t number, int count, const GpuSample* gpu) {
  const Xid* const known = find_xid(number);
  if (known == nullptr) return {.unknown = true};
  const bool settles = known->state && (count == 1 || *known->state == Metric::kRecoveryAction);
  if (settles && gpu != nullptr && (*gpu)[*known->state].ok()) return {.settled = true};
  return {.severity = known->severity};
}

/// Xids of the kernel's log: what is recent counts as if it had been seen, what is older is a note, and an
/// application's old mistake is nothing. `seen`: those that arrived while watching, and are told already.
void add_logged(const Scene& scene, const GpuSample* gpu, const std::vector<LoggedXid>& logged,
                const std::set<std::uint64_t>& seen, Severity most, Finding& finding, XidNotes& notes) {
  std::map<std::uint64_t, LoggedGroup> groups;
  for (const LoggedXid& xid : logged) {
    LoggedGroup& group = groups[xid.xid];
    ++group.count;
    if (group.last == nullptr || group.last->at <= xid.at) group.last = &xid;
  }
  for (const auto& [number, group] : groups) {
    const double age = std::max(0.0, scene.last.at - group.last->at);
    const JudgedXid judged = judge_xid(number, group.count, gpu);
    const bool recent = age <= scene.limits[kR1Recent];
    if ((recent && seen.count(number) > 0) || (!recent && judged.severity < Severity::kWarning)) continue;
    raise(finding, std::min(most, recent ? judged.severity : Severity::kInfo), text_of(group, age));
    notes.past = notes.past || !recent;
    judged.add_to(notes);
    if (finding.limits.empty()) finding.limits.push_back(scene.limits.text(kR1Recent));
  }
}

/// Those that arrived while watching.
void add_arrived(const GpuSample& gpu, const std::set<std::uint64_t>& xids, Finding& finding, XidNotes& notes) {
  if (xids.empty()) return;
  Severity worst = Severity::kInfo;
  for (const std::uint64_t xid : xids) {
    const JudgedXid judged = judge_xid(xid, 1, &gpu);
    worst = std::max(worst, judged.severity);
    judged.add_to(notes);
  }
  raise(finding, worst, names_of_xids(xids) + " arrived while watching");
}

/// The verdict over Xids that are no fault, and where to read about those that are not known.
void name_notes(const XidNotes& notes, Finding& finding) {
  finding.verdict = notes.past      ? "EARLIER XID"
                    : notes.unknown ? "XID NOT KNOWN HERE"
                    : notes.settled ? "XID WITHOUT A FAULT"
                                    : "XID OF AN APPLICATION";
  if (notes.settled) finding.not_because.emplace_back("the driver says that nothing is left to be done after it");
  if (!notes.unknown) return;
  finding.not_because.emplace_back("a fault of the GPU is not ruled out: the number is not in this program's table");
  finding.action.emplace_back(
      "read what it means: docs.nvidia.com/deploy/xid-errors; and the kernel's log: dmesg | grep -i -e xid -e nvrm");
}

/// Xids of a GPU that the driver does not list: it may have fallen off the bus before the driver was asked.
void judge_elsewhere(const Scene& scene, std::vector<Finding>& findings) {
  std::map<std::string, std::vector<LoggedXid>> by_bus;
  for (const LoggedXid& xid : scene.last.driver.logged_elsewhere) by_bus[xid.bus].push_back(xid);
  for (const auto& [bus, logged] : by_bus) {
    Finding finding;
    finding.rule = Rule::kR1;
    XidNotes notes;
    add_logged(scene, nullptr, logged, {}, scene.container ? Severity::kInfo : Severity::kCritical, finding, notes);
    if (finding.because.empty()) continue;
    finding.verdict = "FAULT";
    if (finding.severity < Severity::kWarning) name_notes(notes, finding);
    finding.confidence = Confidence::kMedium;
    const bool asked = scene.last.driver.state == DriverState::kOk;
    finding.because.push_back("it is of the GPU at " + bus + (asked ? ", which the driver does not list" : ""));
    if (finding.severity >= Severity::kWarning) advise_reset(finding, nullptr);
    findings.push_back(std::move(finding));
  }
}

bool is_set(const Reading& reading) { return reading.ok() && reading.value != 0; }

/// What the driver itself calls a fault.
void add_faults(const Scene& scene, const GpuSample& gpu, Finding& finding) {
  if (!gpu.stuck_in.empty()) {
    raise(finding, Severity::kCritical, "the driver did not answer within its deadline (in " + gpu.stuck_in + ")");
    finding.limits.push_back(scene.limits.text(kR1Call));
  }
  if (answered(gpu, Reading::kGpuLost)) raise(finding, Severity::kCritical, "the driver says that the GPU is lost");
  if (answered(gpu, Reading::kResetRequired))
    raise(finding, Severity::kCritical, "the driver says that the GPU needs a reset");
  const Reading recovery = gpu[Metric::kRecoveryAction];
  if (is_set(recovery)) {
    raise(finding, Severity::kCritical, "the driver asks for recovery action " + recovery_text(recovery.value));
  }
  if (is_set(gpu[Metric::kRemapFailed])) {
    raise(finding, Severity::kCritical, "remapping a memory row failed");
  }
  if (is_set(gpu[Metric::kRemapPending])) {
    raise(finding, Severity::kWarning, "a memory row waits to be remapped at the next reset");
  }
  // Where rows are remapped, that tells what came of them.
  const Reading ecc = gpu[Metric::kEccUncorrected];
  if (gpu.vendor == "nvidia" && is_set(ecc) && !gpu[Metric::kRemapPending].ok()) {
    raise(finding, Severity::kWarning,
          "its memory has had " + std::to_string(ecc.value) +
              " errors that could not be corrected since it was last reset, and it does not tell of remapped rows");
  }
}

void judge_gpu(const Scene& scene, const GpuSample& gpu, std::vector<Finding>& findings) {
  Finding finding = about(Rule::kR1, gpu, "FAULT");
  add_faults(scene, gpu, finding);
  XidNotes notes;
  if (const GpuTrack* const track = scene.tracker.gpu(gpu.uuid)) {
    add_arrived(gpu, track->xids, finding, notes);
    add_logged(scene, &gpu, track->logged, track->xids, Severity::kCritical, finding, notes);
  }
  if (finding.because.empty()) return;
  if (finding.severity == Severity::kInfo) name_notes(notes, finding);
  if (finding.severity == Severity::kWarning) finding.verdict = "DEGRADED";
  finding.confidence = finding.severity == Severity::kInfo && notes.unknown ? Confidence::kLow : Confidence::kHigh;
  const bool worn = is_set(gpu[Metric::kRemapFailed]);
  if (finding.severity >= Severity::kWarning && !(worn && finding.because.size() == 1)) advise_reset(finding, &gpu);
  if (worn) {
    finding.action.emplace_back(
        "drain the node: no reset mends a failed remapping; have the vendor's field diagnostics run, and the board "
        "replaced");
  }
  findings.push_back(std::move(finding));
}

Finding fault_at_start(const DriverSample& driver) {
  Finding finding;
  finding.rule = Rule::kR1;
  finding.verdict = "FAULT";
  finding.severity = Severity::kCritical;
  finding.confidence = Confidence::kHigh;
  finding.because.push_back(driver.problem);
  advise_reset(finding, nullptr);
  return finding;
}

/// Without the driver: a device that nobody can look at is unknown; one that hangs, or keeps the driver from starting,
/// is a fault.
void judge_state(const Scene& scene, std::vector<Finding>& findings) {
  const DriverSample& driver = scene.last.driver;
  const DriverState state = driver.state;
  if (state == DriverState::kOk || state == DriverState::kNoGpu || state == DriverState::kAsleep) return;
  if (state == DriverState::kGpuFault) {
    findings.push_back(fault_at_start(driver));
    return;
  }
  Finding finding;
  const bool hangs = state == DriverState::kNotAnswering;
  finding.rule = hangs ? Rule::kR1 : Rule::kG0;
  finding.verdict = hangs ? "DRIVER DOES NOT ANSWER" : "CANNOT SEE THE GPUS";
  finding.severity = !hangs ? Severity::kUnknown : driver.uninterruptible ? Severity::kCritical : Severity::kWarning;
  finding.confidence = !hangs ? Confidence::kNone : driver.uninterruptible ? Confidence::kHigh : Confidence::kLow;
  finding.because.push_back(driver.problem);
  if (hangs) {
    finding.limits.push_back(scene.limits.text(kR1Call));
    finding.action.emplace_back("read the kernel's log: dmesg | grep -i -e xid -e nvrm");
    finding.action.emplace_back(
        "a driver that hangs is ended by a reset of the GPU or a reboot only; drain the node first");
  }
  findings.push_back(std::move(finding));
}

/// "0000:3b:00.0" of the kernel, "00000000:3B:00.0" of the driver.
bool is_at(const GpuSample& gpu, const std::string& device) {
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  return gpu.bus.size() >= device.size() && std::equal(device.rbegin(), device.rend(), gpu.bus.rbegin(),
                                                       [&](char ours, char theirs) { return same(theirs, ours); });
}

/// GPUs that the kernel's module has and the driver does not list: they failed at the start, or were lost since.
void judge_not_listed(const Scene& scene, std::vector<Finding>& findings) {
  const DriverSample& driver = scene.last.driver;
  if (driver.state != DriverState::kOk) return;
  std::string absent;
  int count = 0;
  for (const std::string& device : driver.devices) {
    const auto here = [&](const GpuSample& gpu) { return is_at(gpu, device); };
    if (std::any_of(driver.gpus.begin(), driver.gpus.end(), here)) continue;
    absent += (count++ > 0 ? ", " : "") + device;
  }
  const auto listed = std::count_if(driver.gpus.begin(), driver.gpus.end(),
                                    [](const GpuSample& gpu) { return gpu.vendor == "nvidia"; });
  const auto known = static_cast<std::ptrdiff_t>(driver.devices.size());
  if (count == 0 || listed + count > known) return;
  Finding finding;
  finding.rule = Rule::kR1;
  finding.verdict = "GPU NOT LISTED";
  finding.severity = driver.by_root ? Severity::kWarning : Severity::kInfo;
  finding.confidence = driver.by_root ? Confidence::kMedium : Confidence::kLow;
  finding.because.push_back("NVIDIA's kernel module has " + count_text(static_cast<int>(known), "GPU", "GPUs") +
                            ", and the driver lists " + std::to_string(listed) + " of them: not " + absent);
  if (driver.by_root) {
    advise_reset(finding, nullptr);
  } else {
    finding.not_because.emplace_back("GPUs that this user is kept from; root sees all");
  }
  findings.push_back(std::move(finding));
}

/// G0: a GPU that nobody asked. Where NVIDIA's driver says nothing at all, its state is the finding.
void judge_not_asked(const GpuSample& gpu, std::vector<Finding>& findings) {
  if (gpu.not_asked.empty()) return;
  Finding finding = about(Rule::kG0, gpu, "CANNOT SEE THE GPU");
  finding.severity = Severity::kUnknown;
  finding.because.push_back(gpu.not_asked);
  finding.not_because.emplace_back("whether it is well, and what its processes do, is not known");
  findings.push_back(std::move(finding));
}

/// G0: there is something to judge, and no way to judge it.
void judge_gate(const Scene& scene, const GpuSample& gpu, std::vector<Finding>& findings) {
  const GpuTrack* const track = scene.tracker.gpu(gpu.uuid);
  if (track == nullptr || track->cannot_judge.empty() || !gpu.stuck_in.empty() || !gpu.not_asked.empty() ||
      answered(gpu, Reading::kGpuLost))
    return;
  const double enough =
      std::max(scene.limits[kR8Vram], scene.limits[kR8VramShare] * gpu[Metric::kMemoryTotal].number().value_or(0));
  double held = gpu[Metric::kMemoryUsed].number().value_or(0);
  for (const GpuProcessRow& row : gpu.rows) {
    if (row.memory.code != Reading::kMachineMemory) held = std::max(held, row.memory.number().value_or(enough));
  }
  if (held < enough) return;  // nobody holds enough to matter
  Finding finding = about(Rule::kG0, gpu, "CANNOT JUDGE");
  finding.severity = Severity::kUnknown;
  finding.because.push_back(track->cannot_judge);
  finding.not_because.emplace_back("whether its processes are idle, spinning or blocked is not known");
  if (scene.container) finding.action.emplace_back("run it on the machine itself, outside the container");
  findings.push_back(std::move(finding));
}

}  // namespace

void judge_driver(const Scene& scene, std::vector<Finding>& findings) {
  judge_state(scene, findings);
  judge_elsewhere(scene, findings);
  judge_not_listed(scene, findings);
  for (const GpuSample& gpu : scene.last.driver.gpus) {
    judge_gpu(scene, gpu, findings);
    judge_not_asked(gpu, findings);
    judge_gate(scene, gpu, findings);
  }
}

}  // namespace drover::inline v1::health
