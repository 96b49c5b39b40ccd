// SPDX-License-Identifier: Apache-2.0
#include "drover/health/rules/identity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace {

using namespace drover::health;

/// A host with a process for each line, by ascending pid.
class Host {
 public:
  Host& add(int pid, int parent, std::string name, std::string command = {},
            std::map<std::string, std::string> environment = {}) {
    ProcessBrief brief;
    brief.pid = pid;
    brief.parent = parent;
    brief.state = 'S';
    brief.name = std::move(name);
    brief.start_ticks = 1000;
    ProcessDetail& detail = host.details[pid];
    detail.uid = 1000;
    detail.command = command.empty() ? brief.name : std::move(command);
    detail.environment = std::move(environment);
    host.processes.push_back(std::move(brief));
    return *this;
  }
  ProcessBrief& brief(int pid) {
    return *std::find_if(host.processes.begin(), host.processes.end(),
                         [&](const ProcessBrief& one) { return one.pid == pid; });
  }
  Kind kind(int pid) { return kind_of(host, brief(pid), find_detail(host, pid)); }
  std::string group(int pid) { return job_of(host, brief(pid), *find_detail(host, pid)).group; }

  HostSample host;
};

Kind kind_of_command(const std::string& command) { return Host().add(10, 5, "python", command).kind(10); }

TEST(Kind, OnlyTheProgramItsScriptOrModuleMakeAServer) {
  for (const char* const command :
       {"python -m vllm.entrypoints.openai.api_server --port 1", "/opt/bin/python3 /opt/bin/vllm serve m",
        "python -u -X dev serve.py", "/usr/bin/tritonserver --x", "python /opt/bin/lmdeploy serve m",
        "/opt/llama/llama-server -m x", "python /opt/bin/trtllm-serve m", "ray::ServeReplica:app:Chat",
        "ray::RayWorkerWrapper.execute_method", "python /venv/ts/model_service_worker.py --sock-type unix",
        "python /opt/bin/dask worker", "dask-cuda-worker", "gunicorn: worker [app]", "celery -A app worker",
        "python -m sglang.launch_server", "text-generation-launcher", "mpi/pvserver"})
    EXPECT_EQ(kind_of_command(command), Kind::kServer) << command;
  for (const char* const command :
       {"python train.py --server vllm", "python /home/ada/vllm-fork/train.py", "/opt/vllm/bin/python train.py",
        "python observe.py", "python -c from vllm import x", "./train --data /srv/ollama", "ray::RayTrainWorker",
        "python train_grpo_vllm.py", "python vllm.py", "python rollout_sglang_train.py", "python vllm-train.py",
        "./celery_train", "node /x/server-main.js", "ray::IDLE", "python", ""})
    EXPECT_EQ(kind_of_command(command), Kind::kPlain) << command;
}

TEST(Kind, APersonsShellEndsANotebookAndAShellWithACommandDoesNot) {
  const auto below = [](const char* shell) {
    return Host().add(10, 1, "jupyter-lab").add(11, 10, "bash", shell).add(12, 11, "python", "python a.py").kind(12);
  };
  for (const char* const shell : {"bash", "-bash", "/bin/bash -l", "bash --rcfile /x/y -i"})
    EXPECT_EQ(below(shell), Kind::kPlain) << shell;
  for (const char* const shell : {"bash -c python a.py", "bash run.sh"})
    EXPECT_EQ(below(shell), Kind::kNotebook) << shell;
}

TEST(Kind, AServerIsWhoListensForAServiceAndItsWorkers) {
  const std::string spawned = "python -c from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5)";
  Host host;
  host.add(10, 5, "python", "python app.py").add(11, 10, "python", spawned).add(12, 11, "python", spawned);
  host.add(13, 10, "python", "python app.py").add(14, 10, "python", "python train.py");
  EXPECT_EQ(host.kind(12), Kind::kPlain);
  host.host.details[10].listens = true;
  for (const int pid : {10, 11, 12, 13}) EXPECT_EQ(host.kind(pid), Kind::kServer) << pid;
  EXPECT_EQ(host.kind(14), Kind::kPlain) << "another program";
  host.host.details[12].environment = {{"RANK", "0"}};
  EXPECT_EQ(host.kind(12), Kind::kPlain) << "a rank";
}

TEST(Kind, AnEngineIsAServerWhileItsServerLives) {
  Host host;
  host.add(1, 0, "systemd").add(10, 1, "python", "python offline.py").add(11, 10, "VLLM::EngineCor");
  host.add(12, 11, "VLLM::Worker_TP").add(20, 1, "VLLM::EngineCor").add(21, 20, "VLLM::Worker_TP");
  host.add(22, 1, "VLLM::APIServer").add(30, 1, "raylet").add(31, 30, "ray::ServeRepli").add(32, 1, "ray::ServeRepli");
  for (const int pid : {11, 12, 22, 31}) EXPECT_EQ(host.kind(pid), Kind::kServer) << pid;
  for (const int pid : {20, 21, 32}) EXPECT_EQ(host.kind(pid), Kind::kPlain) << pid;
  host.brief(1).name = "vllm";
  EXPECT_EQ(host.kind(20), Kind::kServer) << "the first process of a container may be its server";
}

TEST(Kind, WhatAPersonTypesIntoOrDebugsIsNoForgottenProgram) {
  Host host;
  host.add(10, 5, "bash", "-bash").add(11, 10, "python", "python3").add(12, 10, "python", "python -i a.py");
  host.add(13, 10, "python", "python a.py -i").add(14, 10, "python", "python -c input()");
  host.add(20, 5, "bash", "bash run.sh").add(21, 20, "python", "python -");
  host.add(30, 5, "node", "node /x/server-main.js").add(31, 30, "python", "python a.py");
  host.add(32, 30, "python", "python /x/debugpy/launcher 4 -- a.py").add(33, 32, "python", "python a.py");
  for (const int pid : {11, 12}) EXPECT_EQ(host.kind(pid), Kind::kNotebook) << pid;
  for (const int pid : {13, 14, 21, 31}) EXPECT_EQ(host.kind(pid), Kind::kPlain) << pid;
  EXPECT_EQ(host.kind(33), Kind::kDebugged);
  for (const char* const command :
       {"python /usr/bin/ipython", "python -m spyder_kernels.console -f k",
        "python3 /opt/pycharm/pydevconsole.py --mode=client", "python -m ipykernel_launcher"})
    EXPECT_EQ(kind_of_command(command), Kind::kNotebook) << command;
  EXPECT_EQ(kind_of_command("python marimo_train.py"), Kind::kPlain);
}

TEST(Group, TellsJobsApartByUserNamespaceAndLauncher) {
  const std::map<std::string, std::string> mpi = {{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}};
  const std::map<std::string, std::string> pmix = {{"OMPI_COMM_WORLD_RANK", "0"}, {"PMIX_NAMESPACE", "a"}};
  Host host;
  host.add(10, 5, "mpiexec")
      .add(11, 10, "sh", "sh wrap.sh", mpi)
      .add(12, 11, "cfd", {}, mpi)
      .add(13, 10, "cfd", {}, mpi);
  host.add(20, 5, "mpiexec").add(21, 20, "cfd", {}, mpi).add(22, 20, "cfd", {}, pmix).add(23, 10, "cfd", {}, pmix);
  EXPECT_EQ(host.group(12), host.group(13));
  EXPECT_EQ(host.group(12), host.group(11)) << "a wrapper";
  EXPECT_NE(host.group(12), host.group(21)) << "another launcher";
  EXPECT_EQ(host.group(22), host.group(23)) << "the namespace says it";
  host.host.details[23].uid = 1001;
  EXPECT_NE(host.group(22), host.group(23)) << "another user";
}

TEST(Unit, IsAJobsOwnOnlyWhereItHasNoOthersProcesses) {
  Host host;
  host.add(10, 1, "hub").add(11, 10, "python").add(12, 10, "python").add(20, 1, "cron").add(21, 20, "python");
  host.add(30, 1, "python").add(31, 30, "python").add(40, 5, "python");
  for (const int pid : {10, 11, 12}) host.host.details[pid].cgroup = "/system.slice/hub.service";
  for (const int pid : {20, 21}) host.host.details[pid].cgroup = "/system.slice/cron.service";
  for (const int pid : {30, 31}) host.host.details[pid].cgroup = "/system.slice/fit.service";
  host.host.details[40].cgroup = "/user.slice/user-1000.slice/user@1000.service/app.slice/fit.service";
  host.host.details[10].uid = 0;
  const auto job = [&](int pid) { return job_of(host.host, host.brief(pid), *find_detail(host.host, pid)); };
  EXPECT_EQ(job(11).label, "") << "of a hub that root began";
  EXPECT_EQ(job(21).label, "") << "of cron, all the same whose";
  EXPECT_EQ(job(31).label, "unit fit.service");
  EXPECT_FALSE(job(31).of_user);
  EXPECT_TRUE(job(40).of_user);
}

TEST(Unit, OfTerminalsAndDesktopsIsNoJobsOwn) {
  const std::string apps = "/user.slice/user-1000.slice/user@1000.service/app.slice/";
  Host host;  // orphans: no shell above them tells
  host.add(10, 1, "python");
  const auto label = [&](const std::string& cgroup) {
    host.host.details[10].cgroup = cgroup;
    return job_of(host.host, host.brief(10), *find_detail(host.host, 10)).label;
  };
  for (const char* const unit :
       {"gnome-terminal-server.service", "tmux.service", "tmux-spawn-1.service", "screen.service",
        "app-org.kde.konsole@a1.service", "emacs.service", "dbus.service", "dbus-broker.service"})
    EXPECT_EQ(label(apps + unit), "") << unit;
  for (const char* const unit : {"vncserver@:1.service", "xrdp.service", "xrdp-sesman.service"})
    EXPECT_EQ(label(std::string("/system.slice/") + unit), "") << unit;
  EXPECT_EQ(label(apps + "fit.service"), "unit fit.service");
  host.add(20, 1, "mux-server").add(21, 20, "bash", "-bash").add(22, 21, "python", "python a.py");
  for (const int pid : {20, 21, 22}) host.host.details[pid].cgroup = apps + "mux.service";
  const auto job = [&] { return job_of(host.host, host.brief(22), *find_detail(host.host, 22)); };
  EXPECT_EQ(job().label, "") << "a person types there";
  host.host.details[21].command = "bash run.sh";
  EXPECT_EQ(job().label, "unit mux.service");
}

TEST(Unit, OfARunnerOfJobsIsNotThatOfWhatWasLeftThere) {
  ProcessDetail detail;
  for (const char* const unit :
       {"pbs_mom.service", "actions.runner.org-repo.gpu01.service", "code-server@alice.service", "k3s-agent.service",
        "buildkite-agent.service", "containerd.service"}) {
    detail.cgroup = std::string("/system.slice/") + unit;
    EXPECT_EQ(job_of(detail).label, "") << unit;
  }
  Host host;
  host.add(1, 0, "systemd").add(10, 1, "python").add(11, 10, "python").add(20, 1, "python").add(21, 20, "python");
  for (const int pid : {10, 11, 20, 21}) host.host.details[pid].cgroup = "/system.slice/fit.service";
  host.brief(10).session = host.brief(11).session = 10;
  host.brief(20).session = host.brief(21).session = 7;
  const auto job = [&](int pid) { return job_of(host.host, host.brief(pid), *find_detail(host.host, pid)); };
  for (const int pid : {10, 11}) EXPECT_FALSE(job(pid).left_in_unit) << pid;
  for (const int pid : {20, 21}) EXPECT_TRUE(job(pid).left_in_unit) << "what systemd started leads a session";
}

TEST(Job, OfSlurmIsAlsoKnownByTheCgroupThatSlurmMade) {
  ProcessDetail detail;
  const auto label = [&](const char* cgroup) {
    detail.cgroup = cgroup;
    return job_of(detail).label;
  };
  for (const char* const cgroup :
       {"/system.slice/slurmstepd.scope/job_77/step_extern/user/task_0", "/slurm/uid_1000/job_77/step_0",
        "/system.slice/n1_slurmstepd.scope/job_77/step_0/user/task_0", "/slurm_n1/uid_1000/job_77/step_batch"})
    EXPECT_EQ(label(cgroup), "slurm 77") << cgroup;
  for (const char* const cgroup :
       {"/system.slice/slurmstepd.scope/system", "/system.slice/slurmd.service", "/slurm/uid_1000/job_7;reboot",
        "/user.slice/user-1000.slice/user@1000.service/slurm/uid_0/job_77",
        "/user.slice/user-1000.slice/user@1000.service/slurmstepd.scope/job_77", "/system.slice/fit.scope/job_77"})
    EXPECT_EQ(label(cgroup), "") << cgroup;
  detail.environment["SLURM_JOB_ID"] = "76";
  EXPECT_EQ(label("/slurm/uid_1000/job_77/step_0"), "slurm 77") << "the environment is that of another job";
  detail.environment["SLURM_JOB_ID_HET_GROUP_1"] = "77";
  EXPECT_EQ(label("/slurm/uid_1000/job_77/step_0"), "slurm 76") << "the first part of a heterogeneous job";
}

TEST(Job, OfAContainerHasTheEnginesNameAndThePodsUid) {
  ProcessDetail detail;
  detail.cgroup = "/user.slice/user-1.slice/user@1.service/user.slice/libpod-0123456789abcdef.scope/container";
  EXPECT_EQ(job_of(detail).scheduler, "podman");
  EXPECT_EQ(job_of(detail).id, "0123456789ab");
  detail.cgroup = "/kubepods.slice/kubepods-pod12ab34cd_11ee_4b2a.slice/cri-containerd-aa.scope";
  EXPECT_EQ(job_of(detail).id, "12ab34cd-11ee-4b2a");
}

/// A user may call a folder below his own user@N.service what he likes, and commands are to be pasted by root.
TEST(Unit, AndContainerWithANameThatAShellWouldTakeApartAreNone) {
  for (const char* const cgroup :
       {"/user@1.service/x;reboot;.service", "/user@1.service/$(reboot).service", "/user@1.service/-x.service",
        "/user@1.service/docker-a;reboot;", "/user@1.service/kubepods/pod;reboot;", "/user@1.service/a b.service"}) {
    ProcessDetail detail;
    detail.cgroup = cgroup;
    EXPECT_EQ(job_of(detail).id, "") << cgroup;
    EXPECT_EQ(job_of(detail).label, "") << cgroup;
  }
  ProcessDetail detail;
  detail.cgroup = "/system.slice/fit-a_b.c@x:1.service";
  EXPECT_EQ(job_of(detail).id, "fit-a_b.c@x:1.service");
}

TEST(Rank, OfLightningIsKnownOnTheFirstNode) {
  Host host;
  std::map<std::string, std::string> environment = {{"LOCAL_RANK", "1"}, {"NODE_RANK", "0"}, {"WORLD_SIZE", "4"}};
  host.add(10, 5, "python", {}, environment);
  environment["NODE_RANK"] = "1";
  host.add(11, 5, "python", {}, environment);
  EXPECT_EQ(job_of(*find_detail(host.host, 10)).rank, 1);
  EXPECT_FALSE(job_of(*find_detail(host.host, 11)).ranked()) << "how many ranks are on the first one is not told";
}

TEST(Rank, OfHorovodWithoutMpiIsKnown) {
  ProcessDetail detail;
  detail.environment = {{"HOROVOD_RANK", "1"}, {"HOROVOD_SIZE", "4"}, {"HOROVOD_LOCAL_SIZE", "2"}};
  const Job job = job_of(detail);
  EXPECT_EQ(job.rank, 1);
  EXPECT_EQ(job.world_size, 4);
  EXPECT_EQ(job.local_world_size, 2);
  EXPECT_TRUE(job.launched);
  ProcessDetail other = detail;
  detail.environment["HOROVOD_GLOO_RENDEZVOUS_PORT"] = "1";
  other.environment["HOROVOD_GLOO_RENDEZVOUS_PORT"] = "2";
  EXPECT_NE(job_of(detail).group, job_of(other).group);
}

TEST(Rank, AloneInItsWorldMayHaveBeenStartedByHand) {
  ProcessDetail detail;
  detail.environment = {{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"LOCAL_WORLD_SIZE", "1"}};
  EXPECT_FALSE(job_of(detail).launched);
  detail.environment["TORCHELASTIC_RUN_ID"] = "none";
  EXPECT_TRUE(job_of(detail).launched);
}

TEST(Adopted, ReapersHaveExactNamesAndAnInitStartsOneProcessItself) {
  Host host;
  host.add(10, 1, "init_train.sh").add(11, 10, "python").add(20, 1, "containerd-shim").add(21, 20, "python");
  host.add(30, 1, "tini").add(31, 30, "python").add(32, 30, "python").add(40, 1, "systemd").add(41, 40, "python");
  host.brief(32).start_ticks += 100'000;
  const auto adopted = [&](int pid) { return is_adopted(host.host, host.brief(pid), false); };
  EXPECT_FALSE(adopted(11));
  EXPECT_FALSE(adopted(21));
  EXPECT_FALSE(adopted(31)) << "began with its init";
  EXPECT_TRUE(adopted(32));
  EXPECT_TRUE(adopted(41)) << "systemd is there for more than one process";
  EXPECT_TRUE(adopted(40)) << "pid 1";
}

TEST(Launcher, IsKnownByItsProgramAndNotByItsOptions) {
  const auto launches = [](const char* command) {
    Host host;
    host.add(10, 5, "python", command);
    return is_launcher(host.brief(10), find_detail(host.host, 10));
  };
  for (const char* const command :
       {"python -m torch.distributed.run a.py", "python /opt/bin/accelerate launch a.py",
        "/usr/bin/drover launch -n 2 a", "/usr/bin/mpirun -n 2 a", "python -m deepspeed.launcher.launch a.py",
        "/opt/mpich/bin/mpiexec.hydra a", "orted -mca ess env", "prted", "/usr/bin/hydra_bstrap_proxy --x",
        "/usr/bin/accelerate-launch a.py"})
    EXPECT_TRUE(launches(command)) << command;
  for (const char* const command :
       {"python train.py --deepspeed ds.json", "python train.py accelerate", "drover inspect",
        "python train_deepspeed.py", "python run_accelerate.py", "python deepspeed.py", "python deepspeed-train.py"})
    EXPECT_FALSE(launches(command)) << command;
}

}  // namespace
