// SPDX-License-Identifier: Apache-2.0
#include "drover/health/scenario/situations.h"

namespace drover::inline v1::health {
namespace {

constexpr Situation kAll[] = {
    {"idle-kernel-beside-busy-one", R"(
title A kernel of a JupyterLab in a Slurm job has rested for 15 h; in another one, on no GPU, its owner computes
window 54000
expect R8 warning 4000
gpu 0 power=60
proc 50 name=slurmd uid=0 cmd="/usr/sbin/slurmd -D"
proc 51 name=slurmstepd uid=0 cmd="slurmstepd: [77.batch]"
proc 90 ppid=51 name=slurm_script cmd="/bin/bash /var/spool/slurmd/job77/slurm_script" env="SLURM_JOB_ID=77"
proc 100 ppid=90 name=jupyter-lab cmd="python /usr/bin/jupyter-lab" listen=8888 env="SLURM_JOB_ID=77"
proc 4000 ppid=100 name=python cmd="python -m ipykernel_launcher -f a.json" age=100000 env="SLURM_JOB_ID=77" wchan=do_epoll_wait
proc 4001 ppid=100 name=python cmd="python -m ipykernel_launcher -f b.json" age=100000 env="SLURM_JOB_ID=77" state=R cpu=12 io=5e6
on 0 4000 vram=20
)"},
    {"idle-step-of-sweep", R"(
title A sweep runs as steps of one task, one on each of its four nodes: that of this node has rested for two hours
window 7600
expect R8 warning 4000
gpu 0 power=60
proc 50 name=slurmd uid=0 cmd="/usr/sbin/slurmd -D"
proc 51 name=slurmstepd uid=0 cmd="slurmstepd: [77.2]"
proc 4000 ppid=51 cmd="python sweep.py --part 2" wchan=futex_wait_queue cgroup=/system.slice/slurmstepd.scope/job_77/step_2/user/task_0 env="SLURM_JOB_ID=77 SLURM_STEP_ID=2 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 SLURM_STEP_TASKS_PER_NODE=1"
on 0 4000 vram=20
)"},
    {"idle-titled-in-array", R"(
title A task of an array, which has written a title over its environment, rests; its number is that of the whole array
window 7600
expect R8 warning 4000
gpu 0 power=60
proc 50 name=slurmd uid=0 cmd="/usr/sbin/slurmd -D"
proc 51 name=slurmstepd uid=0 cmd="slurmstepd: [34567890.batch]"
proc 90 ppid=51 name=slurm_script cmd="/bin/bash /var/spool/slurmd/job34567890/slurm_script" cgroup=/system.slice/slurmstepd.scope/job_34567890/step_batch/user/task_0 env="SLURM_JOB_ID=34567890 SLURM_ARRAY_JOB_ID=34567890 SLURM_ARRAY_TASK_ID=7"
proc 4000 ppid=90 name=exp7 cmd="exp7: lr=0.1" titled=1 wchan=futex_wait_queue cgroup=/system.slice/slurmstepd.scope/job_34567890/step_batch/user/task_0
on 0 4000 vram=20
)"},
    {"idle-beside-titled-engine", R"(
title A PBS job runs a server at work, whose engine has written over its environment, and a script that has rested for two hours
window 7600
expect R8 warning 4000
gpu 0 power=60
gpu 1 power=300
proc 50 name=pbs_mom uid=0 cmd="/opt/pbs/sbin/pbs_mom"
proc 90 ppid=50 name=bash cmd="/bin/bash /var/spool/pbs/mom_priv/jobs/12.n1.SC" env="PBS_JOBID=12.n1"
proc 100 ppid=90 name=vllm cmd="python /usr/bin/vllm serve m" listen=8000 env="PBS_JOBID=12.n1"
proc 4001 ppid=100 name=VLLM::EngineCor cmd="VLLM::EngineCore" titled=1 state=R cpu=1 io=1e4
proc 4000 ppid=90 cmd="python look.py" wchan=futex_wait_queue env="PBS_JOBID=12.n1"
on 0 4000 vram=20
on 1 4001 vram=70 sm=80 mem=40
)"},
    {"idle-executor-of-yarn", R"(
title An executor of YARN has rested for two hours; another one computes on the CPU, in the same unit
window 7600
expect R8 warning 4000
gpu 0 power=60
proc 80 name=java uid=1500 cmd="/usr/lib/jvm/bin/java -Dproc_nodemanager org.apache.hadoop.yarn.server.nodemanager.NodeManager" cgroup=/system.slice/hadoop-yarn-nodemanager.service listen=8040
proc 90 ppid=80 name=bash uid=1500 cmd="/bin/bash -c java CoarseGrainedExecutorBackend" cgroup=/system.slice/hadoop-yarn-nodemanager.service
proc 91 ppid=80 name=bash uid=1500 cmd="/bin/bash -c java CoarseGrainedExecutorBackend" cgroup=/system.slice/hadoop-yarn-nodemanager.service
proc 4000 ppid=90 name=java uid=1500 cmd="java org.apache.spark.executor.YarnCoarseGrainedExecutorBackend --app-id 1" cgroup=/system.slice/hadoop-yarn-nodemanager.service wchan=futex_wait_queue
proc 4001 ppid=91 name=java uid=1500 cmd="java org.apache.spark.executor.YarnCoarseGrainedExecutorBackend --app-id 2" cgroup=/system.slice/hadoop-yarn-nodemanager.service state=S cpu=8 io=1e7
on 0 4000 vram=10
)"},
    {"idle-task-of-prefect", R"(
title A worker of Prefect, which is a unit, has started two flows: one of them has rested for two hours, the other computes on the CPU
window 7600
expect R8 warning 4000
gpu 0 power=60
proc 80 name=python uid=1500 cmd="python /opt/prefect/bin/prefect worker start" cgroup=/system.slice/prefect-worker.service session=80
proc 90 ppid=80 name=python uid=1500 cmd="python -m prefect.engine a" cgroup=/system.slice/prefect-worker.service session=80
proc 91 ppid=80 name=python uid=1500 cmd="python -m prefect.engine b" cgroup=/system.slice/prefect-worker.service session=80 state=R cpu=8 io=1e7
proc 4000 ppid=90 name=python uid=1500 cmd="python flow_train.py" cgroup=/system.slice/prefect-worker.service session=80 wchan=futex_wait_queue
on 0 4000 vram=10
)"},
    {"idle-container-of-user", R"(
title A user's own engine has a container that rests; or it is only called like another's
window 7600
expect R8 warning 4000
gpu 0 power=60
proc 90 name=bash uid=1001 cmd=-bash
proc 4000 ppid=90 uid=1001 cmd="python look.py" wchan=futex_wait_queue cgroup=/user.slice/user-1001.slice/user@1001.service/docker-0123456789abcdef0123.scope
on 0 4000 vram=20
)"},
    {"idle-cgroup-like-a-pod", R"(
title A cgroup that a user made himself is called like another's pod
window 7600
expect R8 warning 4000
gpu 0 power=60
proc 90 name=bash uid=1001 cmd=-bash
proc 4000 ppid=90 uid=1001 cmd="python look.py" wchan=futex_wait_queue cgroup=/user.slice/user-1001.slice/user@1001.service/kubepods/pod11111111-2222-3333-4444-555555555555
on 0 4000 vram=20
)"},
    {"idle-escaped-unit", R"(
title A unit with a dash in its instance, which systemd escapes, rests
window 7600
expect R8 warning 4000
gpu 0 power=60
proc 4000 ppid=1 uid=1001 session=4000 cmd="python /opt/embed.py" wchan=futex_wait_queue cgroup=/system.slice/system-embed.slice/embed@llama\x2d3.service
on 0 4000 vram=20
)"},
    {"idle-environment-of-other-job", R"(
title A script has rested for two hours; its environment tells another job than the cgroup that Slurm made
window 7600
expect R8 warning 4000
gpu 0 power=60
proc 50 name=slurmd uid=0 cmd="/usr/sbin/slurmd -D"
proc 51 name=slurmstepd uid=0 cmd="slurmstepd: [77.extern]"
proc 52 name=slurmstepd uid=0 cmd="slurmstepd: [70.batch]"
proc 90 name=bash uid=1001 cmd=-bash
proc 4000 ppid=90 uid=1001 cmd="python look.py" wchan=futex_wait_queue cgroup=/system.slice/slurmstepd.scope/job_77/step_extern/user/task_special env="SLURM_JOB_ID=70"
on 0 4000 vram=20
)"},
    {"idle-ranks-of-two-nodes", R"(
title The ranks of this node, with threads that wake now and then, have rested for two hours; two more are on another node
window 8000
expect R8 warning 4000
expect R8 warning 4001
gpu 0 power=60
gpu 1 power=60
proc 50 name=slurmd uid=0 cmd="/usr/sbin/slurmd -D"
proc 51 name=slurmstepd uid=0 cmd="slurmstepd: [77.0]"
proc 100 ppid=51 name=torchrun cmd="python /usr/bin/torchrun --nnodes 2 --nproc-per-node 2 train.py" env="SLURM_JOB_ID=77 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=1"
proc 4000 ppid=100 cmd="python train.py" cpu=0.03 io=10 wchan=futex_wait_queue env="RANK=2 LOCAL_RANK=0 WORLD_SIZE=4 LOCAL_WORLD_SIZE=2 MASTER_ADDR=n1 MASTER_PORT=29500 SLURM_JOB_ID=77 SLURM_STEP_ID=0"
proc 4001 ppid=100 cmd="python train.py" cpu=0.03 io=10 wchan=futex_wait_queue env="RANK=3 LOCAL_RANK=1 WORLD_SIZE=4 LOCAL_WORLD_SIZE=2 MASTER_ADDR=n1 MASTER_PORT=29500 SLURM_JOB_ID=77 SLURM_STEP_ID=0"
on 0 4000 vram=40
on 1 4001 vram=40
)"},
    {"idle-rank-beside-busy-one", R"(
title Rank 0 polls or computes with one core, rank 1 has rested for two hours
window 7900
expect R8 warning 4001
gpu 0 power=60
gpu 1 power=60
proc 50 name=slurmd uid=0 cmd="/usr/sbin/slurmd -D"
proc 51 name=slurmstepd uid=0 cmd="slurmstepd: [77.0]"
proc 100 ppid=51 name=torchrun cmd="python /usr/bin/torchrun --nproc-per-node 2 train.py" env="SLURM_JOB_ID=77"
proc 4000 ppid=100 cmd="python train.py" cpu=1 io=0 state=R env="RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=n1 MASTER_PORT=29500 SLURM_JOB_ID=77 SLURM_STEP_ID=0"
proc 4001 ppid=100 cmd="python train.py" cpu=0.03 io=10 wchan=futex_wait_queue env="RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=n1 MASTER_PORT=29500 SLURM_JOB_ID=77 SLURM_STEP_ID=0"
on 0 4000 vram=40
on 1 4001 vram=40
)"},
    {"idle-below-gnome-terminal", R"(
title A script was started by gnome-terminal, which has "server" in its name, and has rested for two days
window 172800
expect R8 warning 4000
gpu 0 power=60
proc 80 name=systemd cmd="/usr/lib/systemd/systemd --user"
proc 90 ppid=80 name=gnome-terminal- cmd="/usr/libexec/gnome-terminal-server" cgroup=/user.slice/user-1000.slice/user@1000.service/app.slice/gnome-terminal-server.service
proc 100 ppid=90 name=bash cmd="bash -c python train.py; exec bash" cgroup=/user.slice/user-1000.slice/user@1000.service/app.slice/vte-spawn-1.scope
proc 4000 ppid=100 cmd="python train.py" age=200000 wchan=futex_wait_queue
on 0 4000 vram=30
)"},
    {"idle-renders-in-batch", R"(
title A simulator that renders on no screen in a Slurm job has rested for three days
window 259200
expect R8 warning 4000
gpu 0 power=60
proc 50 name=slurmd uid=0 cmd="/usr/sbin/slurmd -D"
proc 51 name=slurmstepd uid=0 cmd="slurmstepd: [77.batch]"
proc 90 ppid=51 name=slurm_script cmd="/bin/bash /var/spool/slurmd/job77/slurm_script" env="SLURM_JOB_ID=77"
proc 4000 ppid=90 age=400000 name=CarlaUE4-Linux- cmd="./CarlaUE4-Linux-Shipping -RenderOffScreen" wchan=futex_wait_queue env="SLURM_JOB_ID=77"
on 0 4000 vram=20 uses=G
)"},
    {"resting-stopped-on-mig", R"(
title On a part of a GPU without counters a process has been stopped for 13 hours
window 46800
expect R8 warning 2500
expect G0 unknown
gpu 0 power=180 mig=1 instances=1:0:20,2:0:20
proc 90 name=bash cmd=-bash
proc 2500 ppid=90 name=python age=100000 cmd="python train.py" state=T wchan=do_signal_stop
on 0 2500 vram=17 gi=1 ci=0
)"},
    {"spinning-below-training-ui", R"(
title A training UI, which is a server, has started torchrun, whose ranks have hung for three hours
window 10800
expect R7 warning 4000
expect R6 warning 4001
gpu 0 power=60
gpu 1 power=80 nvlink=0
proc 90 name=bash cmd=-bash
proc 95 ppid=90 name=streamlit cmd="python /usr/bin/streamlit run ui.py" listen=8501
proc 100 ppid=95 name=torchrun cmd="python /usr/bin/torchrun --nproc-per-node 2 train.py"
proc 4000 ppid=100 cmd="python train.py" wchan=futex_wait_queue env="RANK=0 LOCAL_RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500"
proc 4001 ppid=100 cmd="python train.py" state=R cpu=1 io=0 env="RANK=1 LOCAL_RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500"
on 0 4000 vram=40
on 1 4001 vram=40 sm=100 mem=0
)"},
    {"slowed-heat-lets-go", R"(
title Heat makes the hardware cut the clocks, and lets go for some seconds now and then
window 900
expect R1 warning
gpu 0 power=95 temp=96 clock=300 reasons=0x48
proc 100 name=bash
proc 4000 ppid=100 cmd="gmx mdrun -deffnm prod" state=R cpu=8
on 0 4000 vram=1 sm=99 mem=4
at 110 gpu 0 reasons=0
at 120 gpu 0 reasons=0x48
at 230 gpu 0 reasons=0
at 240 gpu 0 reasons=0x48
at 350 gpu 0 reasons=0
at 360 gpu 0 reasons=0x48
at 470 gpu 0 reasons=0
at 480 gpu 0 reasons=0x48
at 590 gpu 0 reasons=0
at 600 gpu 0 reasons=0x48
at 710 gpu 0 reasons=0
at 720 gpu 0 reasons=0x48
at 830 gpu 0 reasons=0
at 840 gpu 0 reasons=0x48
)"},
    {"dead-beside-device-plugin", R"(
title A trainer of a pod was killed and its memory is still held; the device plugin of Kubernetes looks at the GPU
window 120
expect R4 warning 4000
gpu 0 power=63
proc 700 ppid=1 name=containerd-shim uid=0 cmd="containerd-shim-runc-v2 -namespace k8s.io" cgroup=/system.slice/containerd.service
proc 900 ppid=700 name=nvidia-device-p uid=0 cmd="nvidia-device-plugin --pass-device-specs" inner=1 open=0 uvm=0 cgroup=/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod11111111_2222_3333_4444_555555555555.slice/cri-containerd-aa.scope
proc 901 ppid=700 name=gpu-feature-dis uid=0 cmd="gpu-feature-discovery" inner=1 open=0 uvm=0 cgroup=/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod11111111_2222_3333_4444_666666666666.slice/cri-containerd-ab.scope
on 0 4000 vram=33
)"},
    {"leak-beside-monitor", R"(
title A person's monitor looks at a GPU while its driver leaks memory
window 120
expect R9 warning
gpu 0 power=63 extra=8
proc 90 name=bash cmd=-bash
proc 500 ppid=90 name=btop cmd=btop open=0 uvm=0
)"},
    {"defunct-below-busy-parent", R"(
title A sweep that computes on eight cores itself has not collected its last trial yet
window 60
expect R3 warning 4000
gpu 0 power=63
proc 90 name=bash cmd=-bash
proc 100 ppid=90 name=python cmd="python sweep.py" state=R cpu=8
proc 4000 ppid=100 state=Z
on 0 4000 vram=20
)"},
    {"defunct-below-batch-script", R"(
title The script of a batch job has not collected a helper yet, and runs a solver on eight cores
window 60
expect R3 warning 4000
gpu 0 power=63
proc 50 name=slurmd uid=0 cmd="/usr/sbin/slurmd -D"
proc 51 name=slurmstepd uid=0 cmd="slurmstepd: [77.batch]"
proc 100 ppid=51 name=slurm_script cmd="/bin/bash /var/spool/slurmd/job77/slurm_script" env="SLURM_JOB_ID=77" cgroup=/system.slice/slurmstepd.scope/job_77/step_batch/user/task_0
proc 101 ppid=100 name=solver cmd="./solver" cpu=8 state=R env="SLURM_JOB_ID=77" cgroup=/system.slice/slurmstepd.scope/job_77/step_batch/user/task_0
proc 4000 ppid=100 state=Z cgroup=/system.slice/slurmstepd.scope/job_77/step_batch/user/task_0
on 0 4000 vram=20
)"},
    {"spinning-none-ray-train-saves", R"(
title Workers of Ray Train spin for twelve minutes while one of them writes a checkpoint
window 760
expect none
gpu 0 power=70
gpu 1 power=80 nvlink=0
gpu 2 power=80 nvlink=0
proc 100 name=raylet cmd="/opt/ray/raylet" listen=1
proc 4000 ppid=100 name=ray::RayTrainWo cmd="ray::RayTrainWorker.run" titled=1 listen=1 state=R cpu=1 io=8e8
proc 4001 ppid=100 name=ray::RayTrainWo cmd="ray::RayTrainWorker.run" titled=1 listen=1 state=R cpu=1 io=0
proc 4002 ppid=100 name=ray::RayTrainWo cmd="ray::RayTrainWorker.run" titled=1 listen=1 state=R cpu=1 io=0
on 0 4000 vram=40
on 1 4001 vram=40 sm=100 mem=0
on 2 4002 vram=40 sm=100 mem=0
)"},
    {"spinning-none-ranks-by-arguments", R"(
title Ranks that a project's own launcher has told their number by arguments: one spins while the other writes a checkpoint
window 500
expect none
gpu 0 power=70
gpu 1 power=80 nvlink=0
proc 90 name=bash cmd=-bash
proc 100 ppid=90 name=python cmd="python launch.py"
proc 4000 ppid=100 name=python cmd="python train.py --rank 0 --master tcp://127.0.0.1:23456" state=R cpu=1 io=8e8
proc 4001 ppid=100 name=python cmd="python train.py --rank 1 --master tcp://127.0.0.1:23456" state=R cpu=1 io=0
on 0 4000 vram=40
on 1 4001 vram=40 sm=100 mem=0
)"},
    {"spinning-none-other-gpu-computes", R"(
title One process with two GPUs: the second spins for a quarter of an hour while it computes on the first
window 900
expect none
gpu 0 power=300
gpu 1 power=95 nvlink=0
proc 90 name=bash
proc 4000 ppid=90 cmd="python tf_train.py" state=R cpu=1 io=0
on 0 4000 vram=40 sm=90 mem=40
on 1 4000 vram=40 sm=100 mem=0
)"},
    {"idle-none-alone-by-pmi", R"(
title Alone in its world by PMI2, as by srun -n1, a script asks a service for twelve minutes
window 760
expect none
gpu 0 power=60
proc 50 name=slurmd uid=0 cmd="/usr/sbin/slurmd -D"
proc 51 name=slurmstepd uid=0 cmd="slurmstepd: [77.0]"
proc 4000 ppid=51 cmd="python judge.py" wchan=do_epoll_wait cpu=0.002 io=100 env="SLURM_JOB_ID=77 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 PMI_RANK=0 PMI_SIZE=1"
on 0 4000 vram=20
)"},
    {"idle-none-solver-on-mig", R"(
title On a part of a GPU without counters a solver with long kernels uses 3 % of a core for 13 hours
window 46800
expect G0 unknown
gpu 0 power=280 mig=1 instances=1:0:20,2:0:20
proc 90 name=bash
proc 50 name=slurmd uid=0 cmd="/usr/sbin/slurmd -D"
proc 51 name=slurmstepd uid=0 cmd="slurmstepd: [77.batch]"
proc 2500 ppid=51 name=fdtd age=100000 cmd="./fdtd run.in" wchan=poll_schedule_timeout cpu=0.03 io=5e4 env="SLURM_JOB_ID=77"
on 0 2500 vram=17 gi=1 ci=0
)"},
    {"orphaned-none-last-rank", R"(
title Three of four ranks have ended well, and the last one converts the result on one core for a quarter of an hour
window 840
expect none
gpu 0 power=80
proc 90 name=bash cmd=-bash
proc 100 ppid=90 name=torchrun cmd="python /usr/bin/torchrun --nproc-per-node 4 train.py"
proc 4000 ppid=100 cmd="python train.py" state=R cpu=1 io=0 env="RANK=0 LOCAL_RANK=0 WORLD_SIZE=4 LOCAL_WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 TORCHELASTIC_RUN_ID=none"
on 0 4000 vram=20
)"},
    {"orphaned-none-launched-by-ssh", R"(
title Ranks on the second node of a Slurm job, whose launcher came by ssh, spin for two minutes
window 130
expect none
gpu 0 power=80 nvlink=0
gpu 1 power=80 nvlink=0
proc 50 name=slurmd uid=0 cmd="/usr/sbin/slurmd -D"
proc 60 name=sshd uid=0 cmd="sshd: ada"
proc 99 ppid=60 name=hydra_bstrap_pr cmd="/opt/intel/mpi/bin/hydra_bstrap_proxy --upstream-host n1" env="SLURM_JOB_ID=77"
proc 100 ppid=99 name=hydra_pmi_proxy cmd="/opt/intel/mpi/bin/hydra_pmi_proxy" env="SLURM_JOB_ID=77"
proc 4000 ppid=100 cmd="python train.py" state=R cpu=1 io=0 env="SLURM_JOB_ID=77 PMI_RANK=2 PMI_SIZE=4 MPI_LOCALNRANKS=2 MASTER_ADDR=n1 MASTER_PORT=29500"
proc 4001 ppid=100 cmd="python train.py" state=R cpu=1 io=0 env="SLURM_JOB_ID=77 PMI_RANK=3 PMI_SIZE=4 MPI_LOCALNRANKS=2 MASTER_ADDR=n1 MASTER_PORT=29500"
on 0 4000 vram=40 sm=100 mem=0
on 1 4001 vram=40 sm=100 mem=0
)"},
};

}  // namespace

std::vector<Situation> beside_situations() { return {std::begin(kAll), std::end(kAll)}; }

}  // namespace drover::inline v1::health
