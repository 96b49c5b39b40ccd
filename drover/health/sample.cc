// SPDX-License-Identifier: Apache-2.0
#include "drover/health/sample.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace drover::inline v1::health {

std::string Reading::why() const {
  switch (code) {
    case kOk:
      return {};
    case kNotAsked:
      return "not asked";
    case kNoValue:
    case kNotSupported:
      return "not supported by this GPU or driver";
    case kAsleep:
      return "the GPU is powered down, and was left so (--wake)";
    case kOneLook:
      return "needs a second look";
    case kUntold:
      return "the GPU works, and its driver does not tell for which process";
    case kMig:
      return "not available under MIG";
    case kMachineMemory:
      return "it uses the machine's memory";
    case kNoPermission:
      return "needs root";
    case kNotFound:
      return "no samples";
    case kNoPower:
      return "the power cables of the GPU are not attached rightly (the driver's error 8)";
    case kTimeout:
      return "the driver waited for the GPU in vain (its error 10)";
    case kBadInforom:
      return "the GPU's InfoROM is damaged (the driver's error 14)";
    case kInternal:
      return "the driver failed within (its error 999)";
    case kNoFunction:
      return "this driver has no such function";
    case kGpuLost:
      return "the GPU is lost";
    case kResetRequired:
      return "the GPU needs a reset";
    default:
      return "the driver's error " + std::to_string(code);
  }
}

const char* metric_name(Metric metric) noexcept {
  static constexpr std::array<const char*, kMetrics> kNames = {"memory_total_bytes",
                                                               "memory_used_bytes",
                                                               "memory_reserved_bytes",
                                                               "util_cores_percent",
                                                               "util_memory_percent",
                                                               "power_mw",
                                                               "power_limit_mw",
                                                               "energy_mj",
                                                               "temperature_c",
                                                               "clock_cores_mhz",
                                                               "clock_memory_mhz",
                                                               "clock_reasons",
                                                               "pcie_send_kbs",
                                                               "pcie_receive_kbs",
                                                               "nvlink_send_kib",
                                                               "nvlink_receive_kib",
                                                               "ecc_uncorrected",
                                                               "remap_pending",
                                                               "remap_failed",
                                                               "recovery_action",
                                                               "mig",
                                                               "occupancy_percent",
                                                               "tensor_percent",
                                                               "memory_traffic_percent",
                                                               "minor"};
  return kNames[static_cast<std::size_t>(metric)];
}

const ProcessBrief* find_process(const HostSample& host, int pid) noexcept {
  const auto at = std::lower_bound(host.processes.begin(), host.processes.end(), pid,
                                   [](const ProcessBrief& process, int wanted) { return process.pid < wanted; });
  return at != host.processes.end() && at->pid == pid ? &*at : nullptr;
}

const ProcessDetail* find_detail(const HostSample& host, int pid) noexcept {
  const auto at = host.details.find(pid);
  return at == host.details.end() ? nullptr : &at->second;
}

namespace {

constexpr auto kJobVariables = std::to_array<std::string_view>({"RANK",
                                                                "LOCAL_RANK",
                                                                "WORLD_SIZE",
                                                                "LOCAL_WORLD_SIZE",
                                                                "NODE_RANK",
                                                                "CROSS_SIZE",
                                                                "MASTER_ADDR",
                                                                "MASTER_PORT",
                                                                "SLURM_JOB_ID",
                                                                "SLURM_STEP_ID",
                                                                "SLURM_PROCID",
                                                                "SLURM_STEP_NUM_TASKS",
                                                                "SLURM_STEP_TASKS_PER_NODE",
                                                                "SLURM_ARRAY_JOB_ID",
                                                                "SLURM_ARRAY_TASK_ID",
                                                                "SLURM_JOB_ID_HET_GROUP_0",
                                                                "SLURM_JOB_ID_HET_GROUP_1",
                                                                "SLURM_JOB_ID_HET_GROUP_2",
                                                                "SLURM_JOB_ID_HET_GROUP_3",
                                                                "SLURM_JOB_ID_HET_GROUP_4",
                                                                "SLURM_JOB_ID_HET_GROUP_5",
                                                                "SLURM_JOB_ID_HET_GROUP_6",
                                                                "SLURM_JOB_ID_HET_GROUP_7",
                                                                "PBS_JOBID",
                                                                "LSB_JOBID",
                                                                "LSB_JOBINDEX",
                                                                "OMPI_COMM_WORLD_RANK",
                                                                "PMI_RANK",
                                                                "PMI_SIZE",
                                                                "PMIX_NAMESPACE",
                                                                "OMPI_COMM_WORLD_SIZE",
                                                                "OMPI_COMM_WORLD_LOCAL_SIZE",
                                                                "MPI_LOCALNRANKS",
                                                                "MV2_COMM_WORLD_LOCAL_SIZE",
                                                                "TORCHELASTIC_RUN_ID",
                                                                "HOROVOD_RANK",
                                                                "HOROVOD_SIZE",
                                                                "HOROVOD_LOCAL_SIZE",
                                                                "HOROVOD_GLOO_RENDEZVOUS_ADDR",
                                                                "HOROVOD_GLOO_RENDEZVOUS_PORT",
                                                                "KUBERNETES_SERVICE_HOST",
                                                                "CUDA_MPS_PIPE_DIRECTORY"});

}  // namespace

const std::vector<std::string>& job_variables() {
  static const std::vector<std::string> names(kJobVariables.begin(), kJobVariables.end());
  return names;
}

}  // namespace drover::inline v1::health
