// SPDX-License-Identifier: Apache-2.0
#include "drover/health/scenario/situations.h"

namespace drover::inline v1::health {
namespace {

constexpr Situation kAll[] = {
    {"orphaned-job-slurm-notebook", R"(
title A notebook's kernel was left by an ended Slurm job
window 900
expect R5 warning 4000
gpu 0 power=62
proc 50 name=slurmd uid=0 cmd="/usr/sbin/slurmd -D"
proc 51 ppid=50 name=slurmstepd uid=0 cmd="slurmstepd: [99.extern]"
proc 4000 ppid=1 cmd="python -m ipykernel_launcher -f k.json" wchan=do_epoll_wait listen=1 env="SLURM_JOB_ID=77 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1"
on 0 4000 vram=40
)"},
    {"orphaned-job-slurm-server", R"(
title A server's engine was left by an ended Slurm job
window 900
expect R5 warning 4001
gpu 0 power=62
proc 50 name=slurmd uid=0 cmd="/usr/sbin/slurmd -D"
proc 51 ppid=50 name=slurmstepd uid=0 cmd="slurmstepd: [99.extern]"
proc 4001 ppid=1 name=VLLM::EngineCor cmd="VLLM::EngineCore" wchan=futex_wait_queue env="SLURM_JOB_ID=77 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1"
on 0 4001 vram=70
)"},
    {"orphaned-job-cron", R"(
title The launcher of a nightly job was killed; its ranks are in cron's own unit
window 200
expect R5 warning 4000
expect R5 warning 4001
gpu 0 power=62
gpu 1 power=62
proc 70 name=cron uid=0 cmd="/usr/sbin/cron -f" cgroup=/system.slice/cron.service
proc 4000 ppid=1 cmd="python train.py" wchan=futex_wait_queue cgroup=/system.slice/cron.service env="RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=29500"
proc 4001 ppid=1 cmd="python train.py" wchan=futex_wait_queue cgroup=/system.slice/cron.service env="RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=29500"
on 0 4000 vram=30
on 1 4001 vram=30
)"},
    {"spinning-ray-train", R"(
title Two workers of Ray Train spin in a collective
window 900
expect R6 warning 4000
expect R6 warning 4001
gpu 0 power=95 nvlink=0
gpu 1 power=95 nvlink=0
proc 100 name=raylet cmd="/opt/ray/raylet" listen=1
proc 4000 ppid=100 name=ray::RayTrainWo cmd="ray::RayTrainWorker._RayTrainWorker__execute" titled=1 state=R cpu=1 listen=1
proc 4001 ppid=100 name=ray::RayTrainWo cmd="ray::RayTrainWorker._RayTrainWorker__execute" titled=1 state=R cpu=1 listen=1
on 0 4000 vram=60 sm=100 mem=0
on 1 4001 vram=60 sm=100 mem=0
)"},
    {"blocked-lightning", R"(
title PyTorch Lightning started the ranks, which have no RANK; one died, and the others wait for it
window 900
expect R7 warning 4001
gpu 0 power=62
gpu 1 power=62
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" wchan=futex_wait_queue
proc 4001 ppid=4000 cmd="/usr/bin/python train.py" wchan=futex_wait_queue env="LOCAL_RANK=1 NODE_RANK=0 WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 MASTER_PORT=41000"
on 0 4000 vram=30
on 1 4001 vram=30
)"},
    {"orphaned-none-salloc", R"(
title What salloc's own shell started rests; the job runs, without a step
window 200
expect none
gpu 0 power=62
proc 50 name=slurmd uid=0 cmd="/usr/sbin/slurmd -D"
proc 60 ppid=900 name=salloc cmd="salloc --gres=gpu:1" session=900
proc 61 ppid=60 name=bash cmd="/bin/bash" session=900
proc 900 name=bash
proc 4000 ppid=61 cmd="python fit.py" wchan=futex_wait_queue session=900 env="SLURM_JOB_ID=77 SLURM_NTASKS=1"
on 0 4000 vram=12
)"},
    {"orphaned-none-salloc-background", R"(
title The same of what a script there has left in the background
window 200
expect none
gpu 0 power=62
proc 50 name=slurmd uid=0 cmd="/usr/sbin/slurmd -D"
proc 60 ppid=900 name=salloc cmd="salloc --gres=gpu:1" session=900
proc 61 ppid=60 name=bash cmd="/bin/bash" session=900
proc 900 name=bash
proc 4000 ppid=1 cmd="python fit.py" wchan=futex_wait_queue session=900 env="SLURM_JOB_ID=77 SLURM_NTASKS=1"
on 0 4000 vram=12
)"},
    {"orphaned-none-heterogeneous", R"(
title Second part of a heterogeneous job: its step is [78.0], and its environment has the number of the first part, 77
window 200
expect none
gpu 0 power=62
proc 50 name=slurmd uid=0 cmd="/usr/sbin/slurmd -D"
proc 51 ppid=1 name=slurmstepd uid=0 cmd="slurmstepd: [78.0]"
proc 4000 ppid=51 cmd="python fit.py" wchan=futex_wait_queue env="SLURM_JOB_ID=77 SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2"
on 0 4000 vram=12
)"},
    {"orphaned-none-heterogeneous-background", R"(
title The same of a process that has left its step's tree
window 200
expect none
gpu 0 power=62
proc 50 name=slurmd uid=0 cmd="/usr/sbin/slurmd -D"
proc 51 ppid=1 name=slurmstepd uid=0 cmd="slurmstepd: [78.0]"
proc 4000 ppid=1 cmd="python fit.py" wchan=futex_wait_queue env="SLURM_JOB_ID=77 SLURM_JOB_ID_HET_GROUP_0=77 SLURM_JOB_ID_HET_GROUP_1=78"
on 0 4000 vram=12
)"},
    {"orphaned-none-last-rank-copies", R"(
title Three of four ranks have ended well; a process of the last one copies the checkpoint
window 900
expect none
gpu 0 power=70
proc 100 name=torchrun cmd="python /usr/bin/torchrun --nproc-per-node 4 train.py"
proc 4000 ppid=100 cmd="python train.py" wchan=do_wait env="RANK=0 LOCAL_RANK=0 WORLD_SIZE=4 LOCAL_WORLD_SIZE=4 MASTER_PORT=29500"
proc 4100 ppid=4000 name=cp cmd="cp -r out /nfs/out" cpu=0.03 io=6e7 state=D wchan=rpc_wait_bit_killable
on 0 4000 vram=30
)"},
    {"orphaned-none-last-rank-sends", R"(
title Three of four ranks have ended well; the last one sends its results through sockets, with little CPU
window 180
expect none
gpu 0 power=70
proc 100 name=mpirun cmd="mpirun -n 4 ./sim"
proc 4000 ppid=100 name=sim cmd=./sim cpu=0.03 wchan=sk_stream_wait_memory env="OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_SIZE=4 PMIX_NAMESPACE=b2"
on 0 4000 vram=30
)"},
    {"blocked-none-child-fetches", R"(
title A rank waits for its data, which a process of it fetches slowly
window 720
expect none
gpu 0 power=62
proc 100 name=torchrun cmd="python /usr/bin/torchrun --nproc-per-node 1 train.py"
proc 4000 ppid=100 cmd="python train.py" wchan=do_wait env="RANK=0 LOCAL_RANK=0 WORLD_SIZE=1 LOCAL_WORLD_SIZE=1"
proc 4100 ppid=4000 name=rsync cmd="rsync -a store:/data ." cpu=0.006 io=8e6
on 0 4000 vram=10
)"},
    {"spinning-none-peer-child-copies", R"(
title Rank 1 waits at 100 % while a process of rank 0 copies a large checkpoint
window 900
expect none
gpu 0 power=64
gpu 1 power=92
proc 100 name=torchrun cmd="torchrun fit.py"
proc 4000 ppid=100 cmd="python fit.py" wchan=do_wait env="RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=29511"
proc 4001 ppid=100 cmd="python fit.py" state=R cpu=1 env="RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=29511"
proc 4100 ppid=4000 name=cp cmd="cp -r out /nfs/out" cpu=0.03 io=9e7
on 0 4000 vram=20
on 1 4001 vram=20 sm=100 mem=0
)"},
    {"orphaned-none-by-hand", R"(
title A rank that was started by hand with nohup waits for the other node; no launcher has been there
window 200
expect none
gpu 0 power=62
proc 4000 ppid=1 group=4000 session=3900 cmd="python train.py" wchan=do_epoll_wait env="RANK=1 WORLD_SIZE=2 MASTER_ADDR=n01 MASTER_PORT=29500"
on 0 4000 vram=10
)"},
    {"orphaned-none-by-hand-collective", R"(
title The same at work: it waits in a collective while the other node writes its checkpoint
window 300
expect none
gpu 0 power=330 pcie=800
proc 4000 ppid=1 group=4000 session=3900 cmd="python train.py" cpu=1.1 io=3e6 state=R env="RANK=1 WORLD_SIZE=2 MASTER_ADDR=n01 MASTER_PORT=29500"
on 0 4000 vram=60 sm=95 mem=40
at 190 gpu 0 power=95 pcie=0
at 190 on 0 4000 sm=100 mem=0
at 190 proc 4000 cpu=1 io=0
)"},
    {"orphaned-none-titled", R"(
title One of two ranks has written a title over its environment, and both wait for a slow store
window 660
set r7.hold=20m
expect none
gpu 0 power=62
gpu 1 power=62
proc 100 name=torchrun cmd="python /usr/bin/torchrun --nproc-per-node 2 train.py"
proc 4000 ppid=100 name="rank 0: step 7" cmd="rank 0: step 7" titled=1 wchan=futex_wait_queue
proc 4001 ppid=100 cmd="python train.py" wchan=futex_wait_queue env="RANK=1 LOCAL_RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=29500"
on 0 4000 vram=30
on 1 4001 vram=30
)"},
    {"idle-none-torchserve", R"(
title A worker of TorchServe, which gets its requests by a Unix socket, waits for hours
window 10800
expect none
gpu 0 power=62
proc 90 name=containerd-shim uid=0
proc 100 ppid=90 name=java cmd="java -cp .:ts/frontend/* org.pytorch.serve.ModelServer -f config.properties" listen=1 cgroup=/docker/0f3c9d5a7b1e
proc 4000 ppid=100 cmd="/venv/bin/python /venv/lib/python3.9/site-packages/ts/model_service_worker.py --sock-type unix" wchan=unix_stream_data_wait cgroup=/docker/0f3c9d5a7b1e
on 0 4000 vram=20
)"},
    {"idle-none-marimo", R"(
title The kernel of a marimo notebook rests for three hours
window 10800
expect none
gpu 0 power=62
proc 100 ppid=1 name=marimo cmd="python /home/a/.venv/bin/marimo edit nb.py" listen=1
proc 4000 ppid=100 cmd="python -c from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=8) --multiprocessing-fork" wchan=futex_wait_queue
on 0 4000 vram=20
)"},
    {"blocked-none-lightning-prepares", R"(
title PyTorch Lightning: the other rank waits while the first one, which has no RANK, prepares the data
window 900
expect none
gpu 0 power=62
gpu 1 power=62
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" state=R cpu=1
proc 4001 ppid=4000 cmd="/usr/bin/python train.py" wchan=futex_wait_queue env="LOCAL_RANK=1 NODE_RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=41000"
on 0 4000 vram=30
on 1 4001 vram=30
)"},
    {"spinning-none-lightning-validates", R"(
title PyTorch Lightning: the other rank waits in a collective while the first one computes alone
window 900
expect none
gpu 0 power=330 pcie=800
gpu 1 power=92
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" state=R cpu=1.1
proc 4001 ppid=4000 cmd="/usr/bin/python train.py" state=R cpu=1 env="LOCAL_RANK=1 NODE_RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=41000"
on 0 4000 vram=60 sm=95 mem=40
on 1 4001 vram=60 sm=100 mem=0
)"},
    {"spinning-lightning", R"(
title PyTorch Lightning: the first rank rests, and the other one waits for it at 100 %, which is no work of the first
window 900
expect R6 warning 4001
gpu 0 power=62
gpu 1 power=92
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" wchan=futex_wait_queue
proc 4001 ppid=4000 cmd="/usr/bin/python train.py" state=R cpu=1 env="LOCAL_RANK=1 NODE_RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=41000"
on 0 4000 vram=1
on 1 4001 vram=60 sm=100 mem=0
)"},
    {"orphaned-job-terminal", R"(
title The launcher was killed; its ranks are in the unit that all terminals of the desktop are in
window 200
expect R5 warning 4000
expect R5 warning 4001
gpu 0 power=62
gpu 1 power=62
proc 900 name=systemd cmd="/lib/systemd/systemd --user"
proc 4000 ppid=900 cmd="python train.py" wchan=futex_wait_queue cgroup=/user.slice/user-1000.slice/user@1000.service/app.slice/gnome-terminal-server.service env="RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=29500"
proc 4001 ppid=900 cmd="python train.py" wchan=futex_wait_queue cgroup=/user.slice/user-1000.slice/user@1000.service/app.slice/gnome-terminal-server.service env="RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=29500"
on 0 4000 vram=30
on 1 4001 vram=30
)"},
    {"orphaned-none-salloc-tmux", R"(
title What was started in a tmux inside of salloc rests; it is below the server of tmux
window 200
expect none
gpu 0 power=62
proc 50 name=slurmd uid=0 cmd="/usr/sbin/slurmd -D"
proc 60 ppid=900 name=salloc cmd="salloc --gres=gpu:1" session=900
proc 61 ppid=60 name=bash cmd="/bin/bash" session=900
proc 900 name=bash
proc 950 ppid=1 name="tmux: server" cmd="tmux"
proc 951 ppid=950 name=bash cmd="-bash"
proc 4000 ppid=951 cmd="python fit.py" wchan=futex_wait_queue session=951 env="SLURM_JOB_ID=77 SLURM_NTASKS=1"
on 0 4000 vram=12
)"},
    {"orphaned-job-slurm-others-salloc", R"(
title The salloc of another user keeps nobody's ended job
window 200
expect R5 warning 4000
gpu 0 power=62
proc 50 name=slurmd uid=0 cmd="/usr/sbin/slurmd -D"
proc 60 ppid=900 name=salloc uid=1001 cmd="salloc --gres=gpu:1" session=900
proc 900 name=bash uid=1001
proc 4000 ppid=1 cmd="python fit.py" wchan=futex_wait_queue env="SLURM_JOB_ID=77 SLURM_NTASKS=1"
on 0 4000 vram=12
)"},
    {"idle-none-ray-actor", R"(
title An actor of Ray, which listens as all workers of Ray do, waits for calls for three hours
window 10800
expect none
gpu 0 power=62
proc 100 name=raylet cmd="/opt/ray/raylet" listen=1
proc 4000 ppid=100 name=ray::Embedder cmd="ray::Embedder.embed" titled=1 listen=1 wchan=futex_wait_queue
on 0 4000 vram=40
)"},
    {"idle-in-array-of-slurm", R"(
title An idle task of an array, whose number is also that of the whole array
window 7500
expect R8 warning 4000
gpu 0 power=64
proc 50 name=slurmd uid=0 cmd="/usr/sbin/slurmd -D"
proc 51 name=slurmstepd uid=0 cmd="slurmstepd: [34567890.batch]"
proc 90 ppid=51 name=slurm_script cmd="/bin/bash /var/spool/slurmd/job34567890/slurm_script"
proc 4000 ppid=90 cmd="python look.py" wchan=futex_wait_queue env="SLURM_JOB_ID=34567890 SLURM_ARRAY_JOB_ID=34567890 SLURM_ARRAY_TASK_ID=1"
on 0 4000 vram=12
)"},
    {"idle-below-array-of-slurm", R"(
title An idle job that a task of an array has submitted, whose variables it has inherited
window 7500
expect R8 warning 4000
gpu 0 power=64
proc 50 name=slurmd uid=0 cmd="/usr/sbin/slurmd -D"
proc 51 name=slurmstepd uid=0 cmd="slurmstepd: [99.batch]"
proc 4000 ppid=51 cmd="python look.py" wchan=futex_wait_queue env="SLURM_JOB_ID=99 SLURM_ARRAY_JOB_ID=36 SLURM_ARRAY_TASK_ID=1"
on 0 4000 vram=12
)"},
    {"idle-in-array-of-lsf", R"(
title An idle task of an array of LSF
window 7500
expect R8 warning 4000
gpu 0 power=64
proc 80 name=res uid=0 cmd="/opt/lsf/etc/res"
proc 90 ppid=80 name=bash cmd="/bin/bash /home/u/.lsbatch/1700000000.77"
proc 4000 ppid=90 cmd="python look.py" wchan=futex_wait_queue env="LSB_JOBID=77 LSB_JOBINDEX=3"
on 0 4000 vram=12
)"},
    {"idle-in-pbs", R"(
title An idle script of a PBS job, whose script a login shell reads
window 7500
expect R8 warning 4000
gpu 0 power=64
proc 80 name=pbs_mom uid=0 cmd="/opt/pbs/sbin/pbs_mom"
proc 90 ppid=80 name=bash cmd="-bash" batch=1 env="PBS_JOBID=1234.head1"
proc 4000 ppid=90 cmd="python look.py" wchan=futex_wait_queue env="PBS_JOBID=1234.head1"
on 0 4000 vram=12
)"},
};

}  // namespace

std::vector<Situation> owner_situations() { return {std::begin(kAll), std::end(kAll)}; }

}  // namespace drover::inline v1::health
