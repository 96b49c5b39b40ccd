// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "drover/health/sample.h"

/// Who a process is: its job and its kind. Pure.
namespace drover::inline v1::health {

/// What the environment and the cgroup say about the job.
struct Job {
  std::string label;          ///< "slurm 4711", "pbs 12.n1", "container 3f2a9c…", "unit jupyter.service"; empty: none
  std::string scheduler;      ///< "slurm", "pbs", "lsf", "kubernetes", "docker", "podman", "systemd" or empty
  std::string id;             ///< of an array's task in PBS and LSF "12[3].n1", "12[3]"
  std::string array_task;     ///< "11_3" of Slurm: the one task that has the number of its whole array
  std::string step;           ///< "2" of Slurm: of one step; empty: not known, or the job's script
  bool of_user = false;       ///< a unit of the user's own systemd, or a container of his own engine
  bool left_in_unit = false;  ///< what began it there is gone, for systemd's own child leads a session: the unit may be
                              ///< that of others, as that of a runner of jobs
  std::vector<std::string>
      components;  ///< Slurm's numbers of the parts of a heterogeneous job, whose `id` is the first
  std::optional<int> rank, world_size, local_world_size;
  bool launched = false;      ///< a launcher set what says its rank, and no person
  bool of_lightning = false;  ///< PyTorch Lightning started it: its parent is the first rank, which has no number
  bool one_node = false;      ///< the ranks meet on this node's loopback, so there are none on others
  std::string group;          ///< equal for the ranks of one job on this node; empty without a rank
  /// Equal for the ranks of one job on all its nodes, and different from that of every other job: "slurm 4711.0",
  /// "master n01:29500"; empty when nothing tells.
  std::string wide_group;

  bool ranked() const noexcept { return rank.has_value(); }
};
Job job_of(const ProcessDetail& detail);
/// Without the rank of the raylet that started it; with the batch job of who started it, where its own environment is
/// not known; with a group that also tells jobs apart of which only the launcher differs, as without PMIx; and without
/// a unit in which other processes are, of several users as in that of a JupyterHub, or of a person as in that of a
/// terminal: to stop it would end them all.
Job job_of(const HostSample& host, const ProcessBrief& process, const ProcessDetail& detail);

/// Whether its unit is that of a program which runs services for others, as supervisord does.
bool is_run_by_supervisor(const ProcessDetail& detail);

enum class Kind { kPlain, kNotebook, kServer, kStopped, kDebugged, kSystem };
const char* to_text(Kind kind) noexcept;

/// kSystem: a display server, MPS, the vendor's daemons, a virtual machine: what holds memory by design. A notebook or
/// server counts also when it is an ancestor, unless a person's shell lies between, as in a terminal of JupyterLab; the
/// interpreter that a person types into is a notebook, too. The port of a service, its own or of the program that it is
/// a worker of, makes a server only of what is no rank of a job and no worker of Ray, all of which listen. An engine of
/// vLLM or SGLang is what the program is that uses it. What a worker of a queue starts serves, but no job. Only the
/// name, the program, its script or module count, no other argument, and never a part of a script's name, as in
/// train_vllm.py. What is left of a server that is gone is none.
Kind kind_of(const HostSample& host, const ProcessBrief& process, const ProcessDetail* detail);

/// Whether it is a reaper that orphans get as their parent: systemd, tini and the like, and pid 1, which in a container
/// may also be the very launcher. A parent that /proc does not show lives all the same.
bool is_reaper(const HostSample& host, int pid, bool container);

/// Whether its parent started it as a part of the same program: by Python's multiprocessing or a fork.
bool is_worker_of_parent(const HostSample& host, const ProcessBrief& process, const ProcessDetail& detail);

/// Whether both run the same program, and of an interpreter the same script, with whatever arguments.
bool is_same_program(const ProcessDetail& one, const ProcessDetail& other);

/// Whether it is the first process of a container, which ends with it.
bool is_first_of_container(const HostSample& host, int pid);

/// Whether its parent is a reaper that did not start it: the first process of a container begins together with its
/// init.
bool is_adopted(const HostSample& host, const ProcessBrief& process, bool container);

/// Whether it can do nothing without the process that started it, which is gone: an engine of vLLM or SGLang, a worker
/// of Ray.
bool has_lost_its_server(const HostSample& host, const ProcessBrief& process);

/// The program that an engine of vLLM or SGLang works for. nullptr: it is not seen, or it is no such engine, or Ray's.
const ProcessBrief* user_of_engine(const HostSample& host, const ProcessBrief& process);

/// Whether it starts and watches what ends by itself: the ranks of a job, as torchrun, mpirun and the like do, or their
/// daemon on this node, or a task of Airflow. A shell does not.
bool is_launcher(const ProcessBrief& process, const ProcessDetail* detail);

/// A shell that a person types into: it runs no script and no given command, and its input is no file, as that of the
/// login shell is to which PBS gives a job's script.
bool is_terminal(const ProcessBrief& process, const ProcessDetail* detail);

/// A worker of Ray: one that trains, or an actor that waits for calls. Nothing tells which.
bool is_ray_worker(const ProcessBrief& process);

bool is_python(const ProcessBrief& process, const ProcessDetail* detail);

/// Seconds since it was started.
double age_of(const ProcessBrief& process, double now);

}  // namespace drover::inline v1::health
