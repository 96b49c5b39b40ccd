// SPDX-License-Identifier: Apache-2.0
#include "drover/health/report_read.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "drover/base/errors.h"
#include "drover/health/report_json.h"
#include "drover/os/terminal.h"

namespace drover::inline v1::health {
namespace {

using Json = nlohmann::json;

constexpr double kMostNumber = 1e18, kMostShare = 1000, kMostCpus = 65'536;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 60U;

bool is_share(std::string_view name) {
  static constexpr std::array<std::string_view, 5> kMarks = {"_share", "busy", "iowait", "steal", "throttled"};
  return std::any_of(kMarks.begin(), kMarks.end(), [&](std::string_view mark) { return name.find(mark) != name.npos; });
}
/// A share of CPU time is of one core: a process may keep all cores busy.
double most_of(std::string_view name) {
  return name == "cpu_share" ? kMostCpus : is_share(name) ? kMostShare : kMostNumber;
}
bool may_be_negative(std::string_view name) {
  return name.substr(0, 13) == "temperature_c" || name.substr(0, 9) == "unix_time";
}

/// An object of the report with its path, which errors name. A member that is missing is not known, as one that is
/// null: older programs wrote fewer.
class Object {
 public:
  Object(const Json& json, std::string path) : json_(json), path_(std::move(path)) {
    if (!json.is_object()) fail("", "is no object");
  }

  [[noreturn]] void fail(const std::string& name, const std::string& what) const {
    const std::string path = path_ + (path_.empty() || name.empty() ? "" : ".") + name;
    throw InvalidArgument((path.empty() ? "it" : path) + " " + what);
  }
  const Json* find(const char* name) const {
    const auto at = json_.find(name);
    return at == json_.end() || at->is_null() ? nullptr : &*at;
  }
  std::string text(const char* name) const {
    const Json* const value = find(name);
    if (value == nullptr) return {};
    if (!value->is_string()) fail(name, "is no text");
    return value->get<std::string>();
  }
  bool flag(const char* name) const {
    const Json* const value = find(name);
    if (value != nullptr && !value->is_boolean()) fail(name, "is neither true nor false");
    return value != nullptr && value->get<bool>();
  }
  std::optional<double> real(const char* name) const {
    const Json* const value = find(name);
    return value == nullptr ? std::nullopt : std::optional(real_of(*value, name));
  }
  std::optional<std::uint64_t> count(const char* name) const {
    const Json* const value = find(name);
    return value == nullptr ? std::nullopt : std::optional(count_of(*value, name));
  }
  std::optional<int> small(const char* name) const {
    const auto value = count(name);
    if (value && *value > static_cast<std::uint64_t>(std::numeric_limits<int>::max())) fail(name, "is too large");
    return value ? std::optional(static_cast<int>(*value)) : std::nullopt;
  }
  double real_of(const Json& value, const char* name) const {
    if (!value.is_number()) fail(name, "is no number");
    const auto number = value.get<double>();
    if (!std::isfinite(number) || std::fabs(number) > most_of(name)) fail(name, "is too large");
    if (number < 0 && !may_be_negative(name)) fail(name, "is less than 0");
    return number;
  }
  std::uint64_t count_of(const Json& value, const char* name) const {
    if (!value.is_number_unsigned()) fail(name, "is no whole number from 0 on");
    const auto number = value.get<std::uint64_t>();
    if (number > kMostBytes && std::string_view(name).find("_bytes") != std::string_view::npos)
      fail(name, "is too large");
    return number;
  }
  template <class T>
  Maybe<T> maybe(const char* name) const {
    Maybe<T> result;
    if constexpr (std::is_same_v<T, double>) {
      result.value = real(name);
    } else {
      result.value = count(name);
    }
    if (!result) result.reason = text((std::string(name) + "_reason").c_str());
    return result;
  }
  /// Calls `each` with every item and its name; a list that is missing is empty.
  template <class Each>
  void list(const char* name, const Each& each) const {
    const Json* const value = find(name);
    if (value == nullptr) return;
    if (!value->is_array()) fail(name, "is no list");
    std::size_t index = 0;
    for (const Json& item : *value) each(item, std::string(name) + "[" + std::to_string(index++) + "]");
  }
  template <class Each>
  void objects(const char* name, const Each& each) const {
    list(name, [&](const Json& item, const std::string& item_name) { each(Object(item, path(item_name))); });
  }
  std::vector<std::string> texts(const char* name) const {
    std::vector<std::string> result;
    list(name, [&](const Json& item, const std::string& item_name) {
      if (!item.is_string()) fail(item_name, "is no text");
      result.push_back(item.get<std::string>());
    });
    return result;
  }
  std::optional<Object> object(const char* name) const {
    const Json* const value = find(name);
    return value == nullptr ? std::nullopt : std::optional(Object(*value, path(name)));
  }
  const Json& json() const { return json_; }

 private:
  std::string path(const std::string& name) const { return path_ + (path_.empty() ? "" : ".") + name; }

  const Json& json_;
  std::string path_;
};

/// The value whose text is that of the member.
template <class Enum>
Enum one_of(const Object& object, const char* name, Enum last) {
  const std::string text = object.text(name);
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    if (text == to_text(static_cast<Enum>(i))) return static_cast<Enum>(i);
  }
  object.fail(name, "'" + os::sanitize(text.substr(0, 40)) + "' is not known to this version of drover");
}

Finding read_finding(const Object& object) {
  Finding finding;
  finding.rule = one_of(object, "rule", Rule::kRanks);
  finding.severity = one_of(object, "severity", Severity::kCritical);
  finding.confidence = one_of(object, "confidence", Confidence::kHigh);
  finding.verdict = object.text("verdict");
  finding.node = object.text("node");
  finding.gpu = object.small("gpu");
  finding.gpu_uuid = object.text("gpu_uuid");
  finding.pid = object.small("pid");
  finding.user = object.text("user");
  finding.command = object.text("command");
  finding.job = object.text("job");
  finding.age_s = object.real("age_s");
  finding.held_s = object.real("held_s");
  finding.memory_bytes = object.count("memory_bytes");
  finding.because = object.texts("because");
  finding.not_because = object.texts("not_because");
  finding.action = object.texts("do");
  finding.limits = object.texts("limits");
  return finding;
}

Maybe<Stall> read_stall(const Object& parent, const char* name) {
  const auto object = parent.object(name);
  if (!object) return {std::nullopt, parent.text((std::string(name) + "_reason").c_str())};
  return {Stall{object->real("some_10s").value_or(0), object->real("some_60s").value_or(0),
                object->real("full_10s").value_or(0), object->real("full_60s").value_or(0)},
          {}};
}

CpuReport read_cpu(const Object& object) {
  CpuReport cpu;
  cpu.model = object.text("model");
  cpu.logical = object.count("logical").value_or(0);
  cpu.physical = object.count("physical").value_or(0);
  cpu.sockets = object.count("sockets").value_or(0);
  cpu.numa_nodes = object.count("numa_nodes").value_or(0);
  cpu.hyperthreading = object.flag("hyperthreading");
  cpu.performance_cores = object.count("performance_cores").value_or(0);
  cpu.efficiency_cores = object.count("efficiency_cores").value_or(0);
  cpu.allowed = object.count("allowed").value_or(0);
  cpu.quota = object.real("quota_cpus");
  cpu.load1 = object.real("load_1min").value_or(0);
  cpu.busy = object.maybe<double>("busy");
  cpu.iowait = object.maybe<double>("iowait");
  cpu.steal = object.maybe<double>("steal");
  cpu.cgroup_busy = object.maybe<double>("cgroup_busy");
  cpu.throttled = object.maybe<double>("throttled");
  cpu.pressure = read_stall(object, "pressure");
  object.list("each_busy", [&](const Json& item, const std::string& name) {
    cpu.each.push_back(item.is_null() ? std::nullopt : std::optional(object.real_of(item, name.c_str())));
  });
  return cpu;
}

MemoryReport read_memory(const Object& object) {
  MemoryReport memory;
  memory.total = object.count("total_bytes").value_or(0);
  memory.available = object.count("available_bytes").value_or(0);
  memory.swap_total = object.count("swap_total_bytes").value_or(0);
  memory.swap_free = object.count("swap_free_bytes").value_or(0);
  memory.shared = object.count("shared_bytes").value_or(0);
  memory.huge_total = object.count("huge_total_bytes").value_or(0);
  memory.huge_free = object.count("huge_free_bytes").value_or(0);
  memory.limit = object.count("limit_bytes");
  memory.limit_used = object.count("limit_used_bytes");
  memory.oom_kills = object.count("oom_kills");
  memory.pressure = read_stall(object, "pressure");
  memory.io_pressure = read_stall(object, "io_pressure");
  return memory;
}

ProcessReport read_process(const Object& object) {
  ProcessReport process;
  process.pid = object.small("pid").value_or(0);
  process.parent = object.small("parent").value_or(0);
  process.inner_pid = object.small("inner_pid");
  process.user = object.text("user");
  process.name = object.text("name");
  process.command = object.text("command");
  process.job = object.text("job");
  process.container = object.text("container");
  process.state = (object.text("state") + '-').front();
  process.start_ticks = object.count("start_ticks");
  process.age_s = object.real("age_s");
  process.cpu_share = object.real("cpu_share");
  process.rank = object.small("rank");
  process.world_size = object.small("world_size");
  process.job_group = object.text("job_group");
  process.environment_unread = object.flag("environment_unread");
  return process;
}

std::vector<GpuPoint> read_series(const Object& parent) {
  std::vector<GpuPoint> points;
  const auto object = parent.object("series");
  if (!object) return points;
  object->list("unix_time", [&](const Json& item, const std::string& name) {
    points.emplace_back().at = object->real_of(item, name.c_str());
  });
  const auto column = [&](const char* list, const auto& put) {
    std::size_t index = 0;
    object->list(list, [&](const Json& item, const std::string& name) {
      if (index >= points.size()) object->fail(list, "has more items than unix_time");
      if (!item.is_null()) put(points[index], item, name.c_str());
      ++index;
    });
  };
  column("cores_share",
         [&](GpuPoint& point, const Json& item, const char* name) { point.cores = object->real_of(item, name); });
  column("memory_used_bytes", [&](GpuPoint& point, const Json& item, const char* name) {
    point.memory_used = object->count_of(item, name);
  });
  column("power_w",
         [&](GpuPoint& point, const Json& item, const char* name) { point.power_w = object->real_of(item, name); });
  return points;
}

GpuProcessReport read_gpu_process(const Object& object) {
  GpuProcessReport process;
  process.process = read_process(object);
  process.uses = object.text("uses");
  process.memory_bytes = object.maybe<std::uint64_t>("memory_bytes");
  process.cores = object.maybe<double>("cores_share");
  process.memory = object.maybe<double>("memory_share");
  process.gpu_instance = object.small("gpu_instance");
  process.compute_instance = object.small("compute_instance");
  return process;
}

GpuInstanceReport read_instance(const Object& object) {
  GpuInstanceReport instance;
  instance.gpu_instance = static_cast<std::uint32_t>(object.small("gpu_instance").value_or(0));
  instance.compute_instance = static_cast<std::uint32_t>(object.small("compute_instance").value_or(0));
  instance.name = object.text("name");
  instance.uuid = object.text("uuid");
  instance.memory_total = object.maybe<std::uint64_t>("memory_total_bytes");
  instance.memory_used = object.maybe<std::uint64_t>("memory_used_bytes");
  instance.cores = object.maybe<double>("cores_share");
  return instance;
}

LoggedXidReport read_logged_xid(const Object& object) {
  return {.xid = object.count("xid").value_or(0),
          .age_s = object.real("age_s").value_or(0),
          .pid = object.small("pid"),
          .name = object.text("name")};
}

GpuReport read_gpu(const Object& object) {
  GpuReport gpu;
  gpu.vendor = object.text("vendor");
  gpu.index = object.small("index").value_or(0);
  gpu.name = object.text("name");
  gpu.uuid = object.text("uuid");
  gpu.bus = object.text("bus");
  gpu.problem = object.text("problem");
  if (object.find("mig") != nullptr) gpu.mig = object.flag("mig");
  gpu.slowed_by = object.texts("slowed_by");
  object.list("xids", [&](const Json& item, const std::string& name) {
    gpu.xids.push_back(object.count_of(item, name.c_str()));
  });
  gpu.memory_total = object.maybe<std::uint64_t>("memory_total_bytes");
  gpu.memory_used = object.maybe<std::uint64_t>("memory_used_bytes");
  gpu.memory_reserved = object.maybe<std::uint64_t>("memory_reserved_bytes");
  gpu.cores = object.maybe<double>("cores_share");
  gpu.memory = object.maybe<double>("memory_share");
  gpu.power_w = object.maybe<double>("power_w");
  gpu.power_limit_w = object.maybe<double>("power_limit_w");
  gpu.temperature_c = object.maybe<double>("temperature_c");
  gpu.clock_mhz = object.maybe<double>("clock_mhz");
  gpu.clock_memory_mhz = object.maybe<double>("clock_memory_mhz");
  gpu.ecc_uncorrected = object.maybe<std::uint64_t>("ecc_uncorrected");
  gpu.remap_pending = object.maybe<std::uint64_t>("remap_pending");
  gpu.remap_failed = object.maybe<std::uint64_t>("remap_failed");
  gpu.occupancy = object.maybe<double>("occupancy_share");
  gpu.tensor = object.maybe<double>("tensor_share");
  gpu.memory_traffic = object.maybe<double>("memory_traffic_share");
  gpu.series = read_series(object);
  object.objects("logged_xids", [&](const Object& item) { gpu.logged_xids.push_back(read_logged_xid(item)); });
  object.objects("instances", [&](const Object& item) { gpu.instances.push_back(read_instance(item)); });
  object.objects("processes", [&](const Object& item) { gpu.processes.push_back(read_gpu_process(item)); });
  return gpu;
}

void check_kind(const Object& object) {
  const std::string schema = object.text("schema");
  if (schema == "drover.inspect.merged") object.fail("", "is a merged report; merge the reports it was made of");
  if (schema != "drover.inspect") object.fail("schema", "is not \"drover.inspect\": this is no report");
  const auto version = object.count("version");
  if (version && *version == kReportVersion) return;
  object.fail("version", "is " + (version ? std::to_string(*version) : "missing") + ", and this drover reads version " +
                             std::to_string(kReportVersion) + "; use the same drover on all nodes");
}

void read_lists(const Object& object, Report& report) {
  if (object.find("findings") == nullptr) object.fail("findings", "is missing");
  if (object.find("gpus") == nullptr) object.fail("gpus", "is missing");
  object.objects("findings", [&](const Object& item) { report.findings.push_back(read_finding(item)); });
  object.objects("gpus", [&](const Object& item) { report.gpus.push_back(read_gpu(item)); });
  object.objects("busiest", [&](const Object& item) { report.busiest.push_back(read_process(item)); });
  report.warnings = object.texts("warnings");
  report.limits = object.texts("limits");
  const auto states = object.object("process_states");
  if (!states) return;
  for (const auto& [key, value] : states->json().items()) {
    if (key.size() == 1) report.states[key.front()] = states->count_of(value, key.c_str());
  }
}

Report read_whole(const Object& object) {
  check_kind(object);
  Report report;
  report.host = object.text("host");
  report.kernel = object.text("kernel");
  report.node = object.text("node");
  report.rank = object.small("rank");
  report.world_size = object.small("world_size");
  report.job = object.text("job");
  if (object.find("unix_time") == nullptr) object.fail("unix_time", "is missing");
  report.unix_time = object.real("unix_time").value_or(0);
  report.window_s = object.real("window_s").value_or(0);
  report.samples = object.small("samples").value_or(0);
  report.once = object.flag("once");
  report.container = object.flag("container");
  report.demo = object.text("demo");
  if (const auto cpu = object.object("cpu")) report.cpu = read_cpu(*cpu);
  if (const auto memory = object.object("memory")) report.memory = read_memory(*memory);
  report.processes = object.count("process_count").value_or(0);
  if (const auto driver = object.object("driver")) {
    report.driver.state = driver->text("state");
    report.driver.version = driver->text("version");
    report.driver.cuda = driver->text("cuda");
    report.driver.problem = driver->text("problem");
    report.driver.log_problem = driver->text("log_problem");
  }
  read_lists(object, report);
  // The only trace of the threshold unknown.exit: something unknown, and yet all is well.
  report.unknown_counts = object.count("exit_code").value_or(0) != 0 || report.exit_code() != 3;
  return report;
}

}  // namespace

Report read_report(std::string_view text) {
  if (text.size() > kMostReportBytes) throw InvalidArgument("it is longer than 8 MiB");
  try {
    const Json json = Json::parse(text);
    return read_whole(Object(json, ""));
  } catch (const Json::exception& error) {
    const std::string what = error.what();  // "[json.exception.parse_error.101] parse error at line 1, column 2: ..."
    const std::size_t end = what.find("] ");
    throw InvalidArgument("it is no JSON: " + os::sanitize(end == what.npos ? what : what.substr(end + 2)));
  }
}

}  // namespace drover::inline v1::health
