// SPDX-License-Identifier: Apache-2.0
#include "drover/health/report_json.h"

#include <nlohmann/json.hpp>

namespace drover::inline v1::health {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

/// NAME, and NAME_reason when there is none.
template <class T>
void put(Json& json, const std::string& name, const Maybe<T>& value) {
  json[name] = or_null(value.value);
  if (!value) json[name + "_reason"] = value.reason.empty() ? "not known" : value.reason;
}

Json to_json(const Stall& stall) {
  return {
      {"some_10s", stall.some10}, {"some_60s", stall.some60}, {"full_10s", stall.full10}, {"full_60s", stall.full60}};
}
void put(Json& json, const std::string& name, const Maybe<Stall>& value) {
  json[name] = value ? to_json(*value) : Json(nullptr);
  if (!value) json[name + "_reason"] = value.reason;
}

Json to_json(const CpuReport& cpu) {
  Json json{{"model", or_null(cpu.model)},
            {"logical", cpu.logical},
            {"physical", cpu.physical},
            {"sockets", cpu.sockets},
            {"numa_nodes", cpu.numa_nodes},
            {"hyperthreading", cpu.hyperthreading},
            {"performance_cores", cpu.performance_cores},
            {"efficiency_cores", cpu.efficiency_cores},
            {"allowed", cpu.allowed},
            {"quota_cpus", or_null(cpu.quota)},
            {"load_1min", cpu.load1}};
  put(json, "busy", cpu.busy);
  put(json, "iowait", cpu.iowait);
  put(json, "steal", cpu.steal);
  put(json, "cgroup_busy", cpu.cgroup_busy);
  put(json, "throttled", cpu.throttled);
  put(json, "pressure", cpu.pressure);
  json["each_busy"] = Json::array();
  for (const auto& busy : cpu.each) json["each_busy"].push_back(or_null(busy));
  return json;
}

Json to_json(const MemoryReport& memory) {
  Json json{{"total_bytes", memory.total},
            {"available_bytes", memory.available},
            {"swap_total_bytes", memory.swap_total},
            {"swap_free_bytes", memory.swap_free},
            {"shared_bytes", memory.shared},
            {"huge_total_bytes", memory.huge_total},
            {"huge_free_bytes", memory.huge_free},
            {"limit_bytes", or_null(memory.limit)},
            {"limit_used_bytes", or_null(memory.limit_used)},
            {"oom_kills", or_null(memory.oom_kills)}};
  put(json, "pressure", memory.pressure);
  put(json, "io_pressure", memory.io_pressure);
  return json;
}

Json to_json(const ProcessReport& process) {
  return {{"pid", process.pid},
          {"parent", process.parent},
          {"inner_pid", or_null(process.inner_pid)},
          {"user", or_null(process.user)},
          {"name", or_null(process.name)},
          {"command", or_null(process.command)},
          {"job", or_null(process.job)},
          {"container", or_null(process.container)},
          {"state", process.state == '-' ? Json(nullptr) : Json(std::string(1, process.state))},
          {"start_ticks", or_null(process.start_ticks)},
          {"age_s", or_null(process.age_s)},
          {"cpu_share", or_null(process.cpu_share)},
          {"rank", or_null(process.rank)},
          {"world_size", or_null(process.world_size)},
          {"job_group", or_null(process.job_group)},
          {"environment_unread", process.environment_unread}};
}

Json to_json(const GpuProcessReport& process) {
  Json json = to_json(process.process);
  json["uses"] = process.uses;
  json["gpu_instance"] = or_null(process.gpu_instance);
  json["compute_instance"] = or_null(process.compute_instance);
  put(json, "memory_bytes", process.memory_bytes);
  put(json, "cores_share", process.cores);
  put(json, "memory_share", process.memory);
  return json;
}

/// A column for each quantity: shorter than an object for each point.
Json to_json(const std::vector<GpuPoint>& series) {
  if (series.empty()) return nullptr;
  Json json{{"unix_time", Json::array()},
            {"cores_share", Json::array()},
            {"memory_used_bytes", Json::array()},
            {"power_w", Json::array()}};
  for (const GpuPoint& point : series) {
    json["unix_time"].push_back(point.at);
    json["cores_share"].push_back(or_null(point.cores));
    json["memory_used_bytes"].push_back(or_null(point.memory_used));
    json["power_w"].push_back(or_null(point.power_w));
  }
  return json;
}

Json to_json(const LoggedXidReport& xid) {
  return {{"xid", xid.xid}, {"age_s", xid.age_s}, {"pid", or_null(xid.pid)}, {"name", or_null(xid.name)}};
}

Json to_json(const GpuInstanceReport& instance) {
  Json json{{"gpu_instance", instance.gpu_instance},
            {"compute_instance", instance.compute_instance},
            {"name", or_null(instance.name)},
            {"uuid", or_null(instance.uuid)}};
  put(json, "memory_total_bytes", instance.memory_total);
  put(json, "memory_used_bytes", instance.memory_used);
  put(json, "cores_share", instance.cores);
  return json;
}

Json to_json(const GpuReport& gpu) {
  Json json{{"index", gpu.index},        {"vendor", or_null(gpu.vendor)}, {"name", or_null(gpu.name)},
            {"uuid", or_null(gpu.uuid)}, {"bus", or_null(gpu.bus)},       {"problem", or_null(gpu.problem)},
            {"mig", or_null(gpu.mig)},   {"slowed_by", gpu.slowed_by},    {"xids", gpu.xids}};
  put(json, "memory_total_bytes", gpu.memory_total);
  put(json, "memory_used_bytes", gpu.memory_used);
  put(json, "memory_reserved_bytes", gpu.memory_reserved);
  put(json, "cores_share", gpu.cores);
  put(json, "memory_share", gpu.memory);
  put(json, "power_w", gpu.power_w);
  put(json, "power_limit_w", gpu.power_limit_w);
  put(json, "temperature_c", gpu.temperature_c);
  put(json, "clock_mhz", gpu.clock_mhz);
  put(json, "clock_memory_mhz", gpu.clock_memory_mhz);
  put(json, "ecc_uncorrected", gpu.ecc_uncorrected);
  put(json, "remap_pending", gpu.remap_pending);
  put(json, "remap_failed", gpu.remap_failed);
  put(json, "occupancy_share", gpu.occupancy);
  put(json, "tensor_share", gpu.tensor);
  put(json, "memory_traffic_share", gpu.memory_traffic);
  json["logged_xids"] = Json::array();
  for (const LoggedXidReport& xid : gpu.logged_xids) json["logged_xids"].push_back(to_json(xid));
  json["instances"] = Json::array();
  for (const GpuInstanceReport& instance : gpu.instances) json["instances"].push_back(to_json(instance));
  json["series"] = to_json(gpu.series);
  json["processes"] = Json::array();
  for (const GpuProcessReport& process : gpu.processes) json["processes"].push_back(to_json(process));
  return json;
}

Json to_json(const Finding& finding) {
  return {{"rule", to_text(finding.rule)},
          {"severity", to_text(finding.severity)},
          {"confidence", to_text(finding.confidence)},
          {"verdict", finding.verdict},
          {"node", or_null(finding.node)},
          {"gpu", or_null(finding.gpu)},
          {"gpu_uuid", or_null(finding.gpu_uuid)},
          {"pid", or_null(finding.pid)},
          {"user", or_null(finding.user)},
          {"command", or_null(finding.command)},
          {"job", or_null(finding.job)},
          {"age_s", or_null(finding.age_s)},
          {"held_s", or_null(finding.held_s)},
          {"memory_bytes", or_null(finding.memory_bytes)},
          {"because", finding.because},
          {"not_because", finding.not_because},
          {"do", finding.action},
          {"limits", finding.limits}};
}

Json states_of(const Report& report) {
  Json json = Json::object();
  for (const auto& [state, count] : report.states) json[std::string(1, state)] = count;
  return json;
}

std::string dump(const Json& json, int indent) {
  return json.dump(indent, ' ', true, Json::error_handler_t::replace) + "\n";
}

Json to_json_value(const Report& report) {
  Json json{{"schema", "drover.inspect"},
            {"version", kReportVersion},
            {"host", or_null(report.host)},
            {"kernel", or_null(report.kernel)},
            {"node", or_null(report.node)},
            {"rank", or_null(report.rank)},
            {"world_size", or_null(report.world_size)},
            {"job", or_null(report.job)},
            {"unix_time", report.unix_time},
            {"window_s", report.window_s},
            {"samples", report.samples},
            {"once", report.once},
            {"container", report.container},
            {"demo", or_null(report.demo)},
            {"exit_code", report.exit_code()},
            {"verdict", report.verdict()},
            {"findings", Json::array()},
            {"cpu", to_json(report.cpu)},
            {"memory", to_json(report.memory)},
            {"process_count", report.processes},
            {"process_states", states_of(report)},
            {"busiest", Json::array()},
            {"driver",
             {{"state", report.driver.state},
              {"version", or_null(report.driver.version)},
              {"cuda", or_null(report.driver.cuda)},
              {"problem", or_null(report.driver.problem)},
              {"log_problem", or_null(report.driver.log_problem)}}},
            {"gpus", Json::array()},
            {"warnings", report.warnings},
            {"limits", report.limits}};
  for (const Finding& finding : report.findings) json["findings"].push_back(to_json(finding));
  for (const ProcessReport& process : report.busiest) json["busiest"].push_back(to_json(process));
  for (const GpuReport& gpu : report.gpus) json["gpus"].push_back(to_json(gpu));
  return json;
}

Json to_json(const MergedNode& node) {
  Json json{{"name", node.name},
            {"place", or_null(node.place)},
            {"problem", or_null(node.problem)},
            {"note", or_null(node.note)},
            {"exit_code", node.report ? Json(node.report->exit_code()) : Json(nullptr)},
            {"verdict", node.report ? Json(node.report->verdict()) : Json(nullptr)}};
  json["report"] = node.report ? to_json_value(*node.report) : Json(nullptr);
  return json;
}

Json to_json(const UserRow& user) {
  return {{"user", or_null(user.user)},
          {"nodes", user.nodes},
          {"gpus", user.gpus},
          {"processes", user.processes},
          {"memory_bytes", user.memory_bytes},
          {"busy_gpus", user.busy_gpus},
          {"held_gpu_hours", or_null(user.held_gpu_hours)}};
}

Json to_json(const JobRank& rank) {
  return {{"rank", rank.rank},
          {"node", rank.node},
          {"pid", rank.pid},
          {"gpu", or_null(rank.gpu)},
          {"does", to_text(rank.does)},
          {"verdict", or_null(rank.verdict)},
          {"cores_share", or_null(rank.cores)},
          {"power_w", or_null(rank.power_w)}};
}

Json to_json(const JobRow& job) {
  Json json{{"job", job.label},
            {"user", or_null(job.user)},
            {"world_size", or_null(job.world_size)},
            {"not_compared", or_null(job.not_compared)},
            {"ranks", Json::array()}};
  for (const JobRank& rank : job.ranks) json["ranks"].push_back(to_json(rank));
  return json;
}

}  // namespace

std::string to_json(const Report& report, int indent) { return dump(to_json_value(report), indent); }

std::string to_json(const MergedReport& merged, int indent) {
  Json json{{"schema", "drover.inspect.merged"},
            {"version", kMergedVersion},
            {"unix_time", merged.unix_time},
            {"exit_code", merged.exit_code()},
            {"verdict", merged.verdict()},
            {"findings", Json::array()},
            {"jobs", Json::array()},
            {"users", Json::array()},
            {"nodes", Json::array()}};
  for (const Finding& finding : merged.findings) json["findings"].push_back(to_json(finding));
  for (const JobRow& job : merged.jobs) json["jobs"].push_back(to_json(job));
  for (const UserRow& user : merged.users) json["users"].push_back(to_json(user));
  for (const MergedNode& node : merged.nodes) json["nodes"].push_back(to_json(node));
  return dump(json, indent);
}

}  // namespace drover::inline v1::health
