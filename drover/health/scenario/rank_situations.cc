// SPDX-License-Identifier: Apache-2.0
#include "drover/health/scenario/situations.h"

namespace drover::inline v1::health {
namespace {

constexpr Situation kAll[] = {
    {"orphaned-job-beside-unread", R"(
title Two of four ranks have died; another process of the node hangs, and its environment cannot be read
window 180
expect R5 warning 4000
expect R5 warning 4001
gpu 0 power=95
gpu 1 power=95
proc 90 uid=1001 name=python locked=1
proc 100 name=torchrun cmd="torchrun --nproc-per-node 4 train.py"
proc 101 ppid=100 name=tee locked=1
proc 4000 ppid=100 cmd="python train.py" state=R cpu=1 env="RANK=0 WORLD_SIZE=4 LOCAL_WORLD_SIZE=4 MASTER_PORT=29500"
proc 4001 ppid=100 cmd="python train.py" state=R cpu=1 env="RANK=1 WORLD_SIZE=4 LOCAL_WORLD_SIZE=4 MASTER_PORT=29500"
on 0 4000 vram=30 sm=100 mem=1
on 1 4001 vram=30 sm=100 mem=1
)"},
    {"orphaned-none-rank-unread", R"(
title Four ranks rest; the kernel does not give away the environment of one of them, which lives
window 180
expect none
gpu 0 power=70
gpu 1 power=70
gpu 2 power=70
gpu 3 power=70
proc 100 name=torchrun cmd="torchrun --nproc-per-node 4 train.py"
proc 4000 ppid=100 cmd="python train.py" env="RANK=0 WORLD_SIZE=4 LOCAL_WORLD_SIZE=4" wchan=futex_wait_queue
proc 4001 ppid=100 cmd="python train.py" env="RANK=1 WORLD_SIZE=4 LOCAL_WORLD_SIZE=4" wchan=futex_wait_queue
proc 4002 ppid=100 cmd="python train.py" env="RANK=2 WORLD_SIZE=4 LOCAL_WORLD_SIZE=4" wchan=futex_wait_queue
proc 4003 ppid=100 cmd="python train.py" locked=1 wchan=futex_wait_queue
on 0 4000 vram=30
on 1 4001 vram=30
on 2 4002 vram=30
on 3 4003 vram=30
)"},
    {"orphaned-none-step-unread", R"(
title Slurm's step of the job lives, but the kernel does not give away its command
window 180
expect none
gpu 0 power=70
proc 50 name=slurmd uid=0 cmd="/usr/sbin/slurmd -D"
proc 51 ppid=50 name=slurmstepd uid=0 locked=1
proc 4000 ppid=51 cmd="python train.py" env="SLURM_JOB_ID=77 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1" wchan=futex_wait_queue
on 0 4000 vram=30
)"},
    {"orphaned-job-beside-other-user", R"(
title A rank of one user's MPI job died; another user's job of the same size is well
window 240
expect R5 warning 4000
gpu 0 power=90
gpu 1 power=280 pcie=400
gpu 2 power=280 pcie=400
proc 100 name=mpiexec uid=2001
proc 101 name=mpiexec uid=2002
proc 4000 ppid=100 uid=2001 name=climate cmd="./climate" state=R cpu=1 env="PMI_RANK=0 PMI_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=2"
proc 4100 ppid=101 uid=2002 name=protein cmd="./protein" state=R cpu=1 io=2e6 env="PMI_RANK=0 PMI_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=2"
proc 4101 ppid=101 uid=2002 name=protein cmd="./protein" state=R cpu=1 io=2e6 env="PMI_RANK=1 PMI_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=2"
on 0 4000 vram=20 sm=100 mem=0
on 1 4100 vram=20 sm=85 mem=40
on 2 4101 vram=20 sm=85 mem=40
)"},
    {"orphaned-job-beside-own-other", R"(
title Two runs of one user under two launchers; in the first, a rank died
window 660
expect R5 warning 4000
gpu 0 power=64
gpu 1 power=280 pcie=400
gpu 2 power=280 pcie=400
proc 100 name=mpirun
proc 101 name=mpirun
proc 4000 ppid=100 name=climate cmd="./climate" wchan=do_poll env="OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=2"
proc 4100 ppid=101 name=climate cmd="./climate" state=R cpu=1 io=2e6 env="OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=2"
proc 4101 ppid=101 name=climate cmd="./climate" state=R cpu=1 io=2e6 env="OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=2"
on 0 4000 vram=20
on 1 4100 vram=20 sm=85 mem=40
on 2 4101 vram=20 sm=85 mem=40
)"},
    {"orphaned-job-in-container", R"(
title In a container with an init the launcher died; the init has its ranks now
window 180
expect R5 warning 4000
gpu 0 power=66
proc 90 name=containerd-shim uid=0
proc 91 ppid=90 name=docker-init age=7300
proc 4000 ppid=91 cmd="python fit.py" age=7280 wchan=futex_wait_queue cgroup=/system.slice/docker-77aa88bb99cc.scope env="RANK=0 WORLD_SIZE=1 LOCAL_WORLD_SIZE=1 TORCHELASTIC_RUN_ID=none"
on 0 4000 vram=12
)"},
    {"orphaned-job-wrapped", R"(
title A shell around each rank has its number, too; two of four ranks died
window 660
expect R5 warning 4000
expect R5 warning 4001
gpu 0 power=66
gpu 1 power=66
proc 100 name=mpirun
proc 300 ppid=100 name=sh cmd="sh bind.sh ./cfd" env="OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_SIZE=4 PMIX_NAMESPACE=prterun-7@1"
proc 301 ppid=100 name=sh cmd="sh bind.sh ./cfd" env="OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_SIZE=4 PMIX_NAMESPACE=prterun-7@1"
proc 4000 ppid=300 name=cfd cmd="./cfd" wchan=do_epoll_wait env="OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_SIZE=4 PMIX_NAMESPACE=prterun-7@1"
proc 4001 ppid=301 name=cfd cmd="./cfd" wchan=do_epoll_wait env="OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_SIZE=4 PMIX_NAMESPACE=prterun-7@1"
on 0 4000 vram=8
on 1 4001 vram=8
)"},
    {"orphaned-job-worker-left-behind", R"(
title A rank died and left a data worker with its number; the other rank waits
window 660
expect R5 warning 4000
gpu 0 power=66
proc 100 name=torchrun cmd="torchrun --nproc-per-node 2 fit.py"
proc 4000 ppid=100 cmd="python fit.py" wchan=futex_wait_queue env="RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=29511"
proc 4050 ppid=1 name=pt_data_worker wchan=pipe_write env="RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=29511"
on 0 4000 vram=12
)"},
    {"orphaned-job-slurm-one-task", R"(
title An ended Slurm job of one task, which has no rank, left a process behind
window 180
expect R5 warning 4000
gpu 0 power=66
proc 50 name=slurmd uid=0 cmd="/usr/sbin/slurmd -D"
proc 51 ppid=50 name=slurmstepd uid=0 cmd="slurmstepd: [502.extern]"
proc 4000 ppid=1 cmd="python fit.py" wchan=futex_wait_queue env="SLURM_JOB_ID=501 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1"
on 0 4000 vram=12
)"},
    {"orphaned-job-slurm-unreaped", R"(
title What ran the step of an ended Slurm job has ended too, but pid 1 of this container reaps nobody
window 180
expect R5 warning 4000
gpu 0 power=66
proc 50 name=slurmd uid=0 cmd="/usr/sbin/slurmd -D"
proc 51 ppid=1 name=slurmstepd uid=0 state=Z
proc 4000 ppid=1 cmd="python fit.py" wchan=futex_wait_queue env="SLURM_JOB_ID=501 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1"
on 0 4000 vram=12
)"},
    {"orphaned-job-polls", R"(
title The launcher was killed; MPI's ranks wait for each other by polling, a core each
window 840
expect R5 warning 4000
expect R5 warning 4001
gpu 0 power=64
gpu 1 power=64
proc 4000 ppid=1 name=climate cmd="./climate" state=R cpu=1 io=0 env="OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_NAMESPACE=prterun-9@1"
proc 4001 ppid=1 name=climate cmd="./climate" state=R cpu=1 io=0 env="OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_NAMESPACE=prterun-9@1"
on 0 4000 vram=8
on 1 4001 vram=8
)"},
    {"orphaned-none-calculates", R"(
title The launcher is gone, and the ranks sum up on the CPU for some minutes
window 400
expect none
gpu 0 power=64
proc 4000 ppid=1 name=climate cmd="./climate" state=R cpu=1 io=0 env="OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 PMIX_NAMESPACE=prterun-9@1"
on 0 4000 vram=8
)"},
    {"orphaned-none-container-init", R"(
title The init of a container started the only process of it, together with itself
window 180
expect none
gpu 0 power=66
proc 90 name=containerd-shim uid=0
proc 91 ppid=90 name=tini age=7300
proc 4000 ppid=91 cmd="python fit.py" age=7300 wchan=futex_wait_queue cgroup=/system.slice/docker-77aa88bb99cc.scope env="RANK=1 WORLD_SIZE=4 LOCAL_WORLD_SIZE=1"
on 0 4000 vram=12
)"},
    {"orphaned-none-pod", R"(
title The rank is the first process of its pod: the parent, a shim, is no reaper
window 180
expect none
gpu 0 power=95
proc 90 name=containerd-shim uid=0
proc 4000 ppid=90 cmd="python fit.py" state=R cpu=1 cgroup=/kubepods/burstable/pod9f/1a2b env="RANK=2 WORLD_SIZE=4 LOCAL_WORLD_SIZE=1"
on 0 4000 vram=12 sm=100 mem=0
)"},
    {"orphaned-none-unit", R"(
title A unit of systemd is a rank and waits for the other nodes
window 180
expect none
gpu 0 power=66
proc 4000 ppid=1 cmd="python fit.py" wchan=do_epoll_wait cgroup=/system.slice/fit.service env="RANK=1 WORLD_SIZE=3 LOCAL_WORLD_SIZE=1"
on 0 4000 vram=12
)"},
    {"orphaned-none-user-unit", R"(
title The same of a user's own systemd
window 180
expect none
gpu 0 power=66
proc 800 ppid=1 name=systemd cmd="/usr/lib/systemd/systemd --user"
proc 4000 ppid=800 cmd="python fit.py" wchan=do_epoll_wait cgroup=/user.slice/user-1000.slice/user@1000.service/app.slice/fit.service env="RANK=1 WORLD_SIZE=3 LOCAL_WORLD_SIZE=1"
on 0 4000 vram=12
)"},
    {"orphaned-none-init-script", R"(
title The script that starts the ranks is called init_fit: it is no init
window 180
expect none
gpu 0 power=66
proc 100 name=init_fit.sh cmd="bash ./init_fit.sh"
proc 4000 ppid=100 cmd="python fit.py" wchan=futex_wait_queue env="RANK=0 WORLD_SIZE=1 LOCAL_WORLD_SIZE=1"
on 0 4000 vram=12
)"},
    {"orphaned-none-late-ranks", R"(
title One of two ranks is not on its GPU yet, and calls itself otherwise
window 180
expect none
gpu 0 power=66
gpu 1 power=60
proc 100 name=torchrun cmd="torchrun --nproc-per-node 2 fit.py"
proc 300 ppid=100 name=sh cmd="sh bind.sh"
proc 4000 ppid=100 name=fit-0 cmd="fit-0" wchan=futex_wait_queue env="RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=29511"
proc 4001 ppid=300 name=fit-1 cmd="fit-1" state=R cpu=1 env="RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=29511"
on 0 4000 vram=12
)"},
    {"orphaned-none-late-ranks-in-container", R"(
title The same in a container, of which the launcher is the first process
window 180
container
expect none
gpu 0 power=66
gpu 1 power=60
proc 1 ppid=0 name=python cmd="python /opt/bin/torchrun --nproc-per-node 2 fit.py"
proc 40 ppid=1 name=fit-0 cmd="fit-0" wchan=futex_wait_queue env="RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=29511"
proc 41 ppid=1 name=fit-1 cmd="fit-1" state=R cpu=1 env="RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=29511"
on 0 40 vram=12
)"},
    {"spinning-beside-other-user", R"(
title One user's MPI job spins, another user's works
window 800
expect R6 warning 4000
expect R6 warning 4001
gpu 0 power=92
gpu 1 power=92
gpu 2 power=290 pcie=300
proc 100 name=mpirun uid=2001
proc 101 name=mpirun uid=2002
proc 4000 ppid=100 uid=2001 name=climate cmd="./climate" state=R cpu=1 env="OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 PMIX_NAMESPACE=prterun-7@1"
proc 4001 ppid=100 uid=2001 name=climate cmd="./climate" state=R cpu=1 env="OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 PMIX_NAMESPACE=prterun-7@1"
proc 4100 ppid=101 uid=2002 name=protein cmd="./protein" state=R cpu=1 io=2e6 env="OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 PMIX_NAMESPACE=prterun-8@1"
on 0 4000 vram=20 sm=100 mem=0
on 1 4001 vram=20 sm=100 mem=0
on 2 4100 vram=20 sm=90 mem=40
)"},
    {"spinning-odd-rank-loops", R"(
title Two ranks spin; the third runs in circles on its CPU for longer than any evaluation
window 900
expect R6 warning 4000
expect R6 warning 4001
gpu 0 power=92
gpu 1 power=92
gpu 2 power=64
proc 100 name=torchrun cmd="torchrun fit.py"
proc 4000 ppid=100 cmd="python fit.py" state=R cpu=1 env="RANK=0 WORLD_SIZE=3 LOCAL_WORLD_SIZE=3 MASTER_PORT=29511"
proc 4001 ppid=100 cmd="python fit.py" state=R cpu=1 env="RANK=1 WORLD_SIZE=3 LOCAL_WORLD_SIZE=3 MASTER_PORT=29511"
proc 4002 ppid=100 cmd="python fit.py" state=R cpu=1 io=0 env="RANK=2 WORLD_SIZE=3 LOCAL_WORLD_SIZE=3 MASTER_PORT=29511"
on 0 4000 vram=20 sm=100 mem=0
on 1 4001 vram=20 sm=100 mem=0
on 2 4002 vram=20
)"},
    {"spinning-none-peer-evaluates", R"(
title Rank 1 waits at 100 % while rank 0 evaluates on its GPU for a quarter of an hour
window 900
expect none
gpu 0 power=260 pcie=200
gpu 1 power=92
proc 100 name=torchrun cmd="torchrun fit.py"
proc 4000 ppid=100 cmd="python fit.py" state=R cpu=1 io=3e5 env="RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=29511"
proc 4001 ppid=100 cmd="python fit.py" state=R cpu=1 env="RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=29511"
on 0 4000 vram=20 sm=80 mem=30
on 1 4001 vram=20 sm=100 mem=0
)"},
    {"spinning-none-peer-checkpoint", R"(
title Rank 1 waits at 100 % while rank 0 writes a large checkpoint
window 900
expect none
gpu 0 power=64
gpu 1 power=92
proc 100 name=torchrun cmd="torchrun fit.py"
proc 4000 ppid=100 cmd="python fit.py" cpu=0.2 io=9e7 env="RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=29511"
proc 4001 ppid=100 cmd="python fit.py" state=R cpu=1 env="RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=29511"
on 0 4000 vram=20
on 1 4001 vram=20 sm=100 mem=0
)"},
    {"spinning-none-peer-loads", R"(
title Rank 1 waits at 100 % while rank 0, on no GPU yet, prepares its data
window 500
expect none
gpu 0 power=60
gpu 1 power=92
proc 100 name=torchrun cmd="torchrun fit.py"
proc 4000 ppid=100 cmd="python fit.py" state=R cpu=4 env="RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=29511"
proc 4001 ppid=100 cmd="python fit.py" state=R cpu=1 env="RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=29511"
on 1 4001 vram=20 sm=100 mem=0
)"},
    {"spinning-none-peer-debugged", R"(
title Somebody debugs rank 0, and rank 1 waits for it at 100 %
window 900
expect none
gpu 0 power=64
gpu 1 power=92
proc 90 name=gdb cmd="gdb -p 4000"
proc 100 name=torchrun cmd="torchrun fit.py"
proc 4000 ppid=100 cmd="python fit.py" state=t tracer=90 env="RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=29511"
proc 4001 ppid=100 cmd="python fit.py" state=R cpu=1 env="RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=29511"
on 0 4000 vram=20
on 1 4001 vram=20 sm=100 mem=0
)"},
    {"orphan-srun-one-died", R"(
title One of four tasks of an srun on one node died, and the others spin
window 600
expect R5 warning 4020
expect R5 warning 4030
expect R5 warning 4040
gpu 0 power=80
gpu 1 power=80
gpu 2 power=80
gpu 3 power=80
proc 90 name=slurmd uid=0 cmd="slurmd -D"
proc 100 name=slurmstepd uid=0 cmd="slurmstepd: [51.0]"
proc 4020 ppid=100 cmd="python train.py" cpu=1 state=R env="SLURM_JOB_ID=51 SLURM_STEP_ID=0 SLURM_PROCID=1 MASTER_ADDR=n1 SLURM_STEP_NUM_TASKS=4 SLURM_STEP_TASKS_PER_NODE=4"
proc 4030 ppid=100 cmd="python train.py" cpu=1 state=R env="SLURM_JOB_ID=51 SLURM_STEP_ID=0 SLURM_PROCID=2 MASTER_ADDR=n1 SLURM_STEP_NUM_TASKS=4 SLURM_STEP_TASKS_PER_NODE=4"
proc 4040 ppid=100 cmd="python train.py" cpu=1 state=R env="SLURM_JOB_ID=51 SLURM_STEP_ID=0 SLURM_PROCID=3 MASTER_ADDR=n1 SLURM_STEP_NUM_TASKS=4 SLURM_STEP_TASKS_PER_NODE=4"
on 1 4020 vram=12 sm=100
on 2 4030 vram=12 sm=100
on 3 4040 vram=12 sm=100
)"},
    {"spinning-srun-two-nodes", R"(
title The two tasks that an srun of two nodes has here spin
window 600
expect R6 warning 4020
expect R6 warning 4030
gpu 0 power=80
gpu 1 power=80
gpu 2 power=80
gpu 3 power=80
proc 90 name=slurmd uid=0 cmd="slurmd -D"
proc 100 name=slurmstepd uid=0 cmd="slurmstepd: [51.0]"
proc 4020 ppid=100 cmd="python train.py" cpu=1 state=R env="SLURM_JOB_ID=51 SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_STEP_TASKS_PER_NODE=2(x2) SLURM_STEP_NUM_TASKS=4"
proc 4030 ppid=100 cmd="python train.py" cpu=1 state=R env="SLURM_JOB_ID=51 SLURM_STEP_ID=0 SLURM_PROCID=2 SLURM_STEP_TASKS_PER_NODE=2(x2) SLURM_STEP_NUM_TASKS=4"
on 1 4020 vram=12 sm=100
on 2 4030 vram=12 sm=100
)"},
};

}  // namespace

std::vector<Situation> rank_situations() { return {std::begin(kAll), std::end(kAll)}; }

}  // namespace drover::inline v1::health
