// SPDX-License-Identifier: Apache-2.0
#include "drover/health/scenario/situations.h"

namespace drover::inline v1::health {
namespace {

constexpr Situation kAll[] = {
    {"orphaned-job-idle", R"(
title The launcher was killed; its ranks belong to init now and wait for each other
window 180
expect R5 warning 4000
expect R5 warning 4001
gpu 0 power=70
gpu 1 power=70
proc 4000 ppid=1 group=90 cmd="python train.py" env="RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=29500" wchan=futex_wait_queue
proc 4001 ppid=1 group=90 cmd="python train.py" env="RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=29500" wchan=futex_wait_queue
on 0 4000 vram=30
on 1 4001 vram=30
)"},
    {"orphaned-job-missing-ranks", R"(
title Two of four ranks have died; the others spin in a collective
window 180
expect R5 warning 4000
expect R5 warning 4001
gpu 0 power=95
gpu 1 power=95
proc 100 name=torchrun cmd="torchrun --nproc-per-node 4 train.py"
proc 4000 ppid=100 cmd="python train.py" state=R cpu=1 env="RANK=0 WORLD_SIZE=4 LOCAL_WORLD_SIZE=4 MASTER_PORT=29500"
proc 4001 ppid=100 cmd="python train.py" state=R cpu=1 env="RANK=1 WORLD_SIZE=4 LOCAL_WORLD_SIZE=4 MASTER_PORT=29500"
on 0 4000 vram=30 sm=100 mem=1
on 1 4001 vram=30 sm=100 mem=1
)"},
    {"orphaned-job-slurm-gone", R"(
title Slurm has ended the job, but a rank escaped and keeps the GPU
window 180
expect R5 warning 4000
gpu 0 power=70
proc 50 name=slurmd uid=0 cmd="/usr/sbin/slurmd -D"
proc 51 ppid=50 name=slurmstepd uid=0 cmd="slurmstepd: [99.0]"
proc 4000 ppid=900 cmd="python train.py" env="RANK=0 WORLD_SIZE=1 LOCAL_WORLD_SIZE=1 SLURM_JOB_ID=77" wchan=futex_wait_queue
proc 900 ppid=1 name=bash
on 0 4000 vram=30
)"},
    {"orphaned-none-nohup", R"(
title A launcher under nohup belongs to init: its ranks do not, and they work
window 180
expect none
gpu 0 power=300 pcie=500
proc 100 ppid=1 name=torchrun cmd="torchrun train.py"
proc 4000 ppid=100 cmd="python train.py" state=R cpu=1 io=1e6 env="RANK=0 WORLD_SIZE=1 LOCAL_WORLD_SIZE=1"
on 0 4000 vram=30 sm=95 mem=50
)"},
    {"orphaned-none-busy", R"(
title The launcher is gone, but the ranks go on and write their results
window 180
expect none
gpu 0 power=300 pcie=500
proc 4000 ppid=1 cmd="python train.py" state=R cpu=1 io=1e6 env="RANK=0 WORLD_SIZE=1 LOCAL_WORLD_SIZE=1"
on 0 4000 vram=30 sm=95 mem=50
)"},
    {"orphaned-none-no-rank", R"(
title A script without ranks under nohup rests for ten minutes
window 600
expect none
gpu 0 power=70
proc 4000 ppid=1 cmd="python analyse.py"
on 0 4000 vram=30
)"},
    {"orphaned-none-server", R"(
title A server's tensor-parallel workers have ranks and init as their parent
window 900
expect none
gpu 0 power=70
proc 4000 ppid=1 name=vllm cmd="python -m vllm.entrypoints.openai.api_server" listen=1
proc 4001 ppid=4000 cmd="python -c from multiprocessing.spawn" env="RANK=0 LOCAL_RANK=0 WORLD_SIZE=1 LOCAL_WORLD_SIZE=1"
on 0 4001 vram=70
)"},
    {"orphaned-none-writes-checkpoint", R"(
title The other rank has ended; the last one writes the final checkpoint
window 180
expect none
gpu 0 power=70
proc 100 name=torchrun cmd="torchrun train.py"
proc 4000 ppid=100 cmd="python train.py" cpu=0.2 io=3e8 env="RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2"
on 0 4000 vram=30
)"},
    {"orphaned-none-container-launcher", R"(
title In a container the launcher is pid 1: its ranks are no orphans
window 180
container
expect none
gpu 0 power=70
proc 1 ppid=0 name=torchrun cmd="torchrun train.py"
proc 20 ppid=1 cmd="python train.py" env="RANK=0 WORLD_SIZE=1 LOCAL_WORLD_SIZE=1" wchan=futex_wait_queue
on 0 20 vram=30
)"},
    {"orphaned-none-hidden-launcher", R"(
title Another user's launcher is not shown by /proc (hidepid): it lives
window 180
expect none
gpu 0 power=70
proc 100 hidden=1 name=slurmstepd uid=0
proc 4000 ppid=100 cmd="python train.py" env="RANK=0 WORLD_SIZE=1 LOCAL_WORLD_SIZE=1" wchan=futex_wait_queue
on 0 4000 vram=30
)"},
    {"blocked-none-srun-shell", R"(
title An idle Python in an interactive shell of srun is no rank
window 900
expect none
gpu 0 power=62
proc 100 name=bash
proc 4000 ppid=100 cmd="python" env="SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 SLURM_JOB_ID=7" wchan=do_select
on 0 4000 vram=30
)"},
    {"spinning-none-polling-server", R"(
title A server waits for requests by spinning
window 900
expect none
gpu 0 power=98
proc 4000 ppid=1 cmd="python -m sglang.launch_server" state=R cpu=1 listen=1
on 0 4000 vram=60 sm=100 mem=0
)"},
    {"spinning-collective", R"(
title A collective that never ends: 100 % busy, at the power of an idle GPU
window 900
expect R6 warning 4000
expect R6 warning 4001
gpu 0 power=98 nvlink=0
gpu 1 power=97 nvlink=0
proc 100 name=torchrun cmd="torchrun train.py"
proc 4000 ppid=100 cmd="python train.py" state=R cpu=1 io=0 env="RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2"
proc 4001 ppid=100 cmd="python train.py" state=R cpu=1 io=0 env="RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2"
on 0 4000 vram=60 sm=100 mem=0
on 1 4001 vram=60 sm=100 mem=0
)"},
    {"spinning-counters-agree", R"(
title Hopper: 100 % busy, and the GPU's own counters say that nothing is computed
window 900
expect R6 warning 4000
gpu 0 name="NVIDIA H100 80GB HBM3" power=110 limit=700 gpm=1 tensor=0 occupancy=6 dram=0
proc 100 name=torchrun cmd="torchrun train.py"
proc 4000 ppid=100 cmd="python train.py" state=R cpu=1 io=0 env="RANK=0 WORLD_SIZE=1 LOCAL_WORLD_SIZE=1"
on 0 4000 vram=60 sm=100 mem=0
)"},
    {"spinning-odd-rank-out", R"(
title Three ranks spin and wait for the fourth, which sleeps
window 900
expect R6 warning 4000
expect R6 warning 4001
expect R6 warning 4002
expect R7 warning 4003
gpu 0 power=98
gpu 1 power=97
gpu 2 power=96
gpu 3 power=62
proc 100 name=torchrun cmd="torchrun train.py"
proc 4000 ppid=100 cmd="python train.py" state=R cpu=1 env="RANK=0 WORLD_SIZE=4 LOCAL_WORLD_SIZE=4"
proc 4001 ppid=100 cmd="python train.py" state=R cpu=1 env="RANK=1 WORLD_SIZE=4 LOCAL_WORLD_SIZE=4"
proc 4002 ppid=100 cmd="python train.py" state=R cpu=1 env="RANK=2 WORLD_SIZE=4 LOCAL_WORLD_SIZE=4"
proc 4003 ppid=100 cmd="python train.py" state=S cpu=0 env="RANK=3 WORLD_SIZE=4 LOCAL_WORLD_SIZE=4" wchan=futex_wait_queue
on 0 4000 vram=60 sm=100 mem=1
on 1 4001 vram=60 sm=100 mem=1
on 2 4002 vram=60 sm=100 mem=1
on 3 4003 vram=60
)"},
    {"spinning-h100", R"(
title The same on an H100, which draws more while it spins
window 400
expect R6 warning 4000
gpu 0 name="NVIDIA H100 80GB HBM3" power=155 limit=700
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" state=R cpu=1
on 0 4000 vram=60 sm=99 mem=0
)"},
    {"spinning-after-work", R"(
title A job works for ten minutes and then spins for ten
window 1200
expect R6 warning 4000
gpu 0 power=350 pcie=800
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" state=R cpu=1 io=2e6
on 0 4000 vram=60 sm=98 mem=60
at 600 gpu 0 power=95 pcie=0
at 600 proc 4000 io=0
at 600 on 0 4000 sm=100 mem=1
)"},
    {"spinning-none-small-kernels", R"(
title Many tiny kernels keep a GPU busy at low power, and PCIe with their launches
window 900
expect none
gpu 0 power=110 pcie=60
proc 100 name=bash
proc 4000 ppid=100 cmd="python reinforce.py" state=R cpu=1
on 0 4000 vram=10 sm=99 mem=2
)"},
    {"spinning-none-compute-bound", R"(
title All in registers: memory idle, power high
window 900
expect none
gpu 0 power=330 pcie=0.1
proc 100 name=bash
proc 4000 ppid=100 cmd="./fractal" state=S
on 0 4000 vram=4 sm=100 mem=1
)"},
    {"spinning-none-uneven-power", R"(
title Low power that goes up and down is work
window 900
expect none
gpu 0 power=100 swing=0.3
proc 100 name=bash
proc 4000 ppid=100 cmd="./solver" state=R cpu=1
on 0 4000 vram=4 sm=98 mem=3
)"},
    {"spinning-none-tensor-cores", R"(
title Low and even power, but the GPU's own counters say that tensor cores work
window 900
expect none
gpu 0 power=98 gpm=1 tensor=40 occupancy=30 dram=3
proc 100 name=bash
proc 4000 ppid=100 cmd="python infer.py" state=R cpu=1 io=0
on 0 4000 vram=60 sm=100 mem=0
)"},
    {"spinning-none-short", R"(
title A hundred seconds of waiting in a collective: not long enough
window 100
expect none
gpu 0 power=98
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" state=R cpu=1
on 0 4000 vram=60 sm=100 mem=0
)"},
    {"spinning-none-writes-log", R"(
title Looks like spinning, but the process writes its log
window 900
expect none
gpu 0 power=98
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" state=R cpu=1 io=50000
on 0 4000 vram=60 sm=100 mem=1
)"},
    {"spinning-none-pipeline-bubble", R"(
title A pipeline stage waits, works, waits
window 900
expect none
gpu 0 power=98
proc 100 name=bash
proc 4000 ppid=100 cmd="python pipeline.py" state=R cpu=1
on 0 4000 vram=60 sm=100 mem=0
at 200 gpu 0 power=340 pcie=700
at 200 on 0 4000 sm=97 mem=50
at 320 gpu 0 power=98 pcie=0
at 320 on 0 4000 sm=100 mem=0
at 520 gpu 0 power=340 pcie=700
at 520 on 0 4000 sm=97 mem=50
at 640 gpu 0 power=98 pcie=0
at 640 on 0 4000 sm=100 mem=0
)"},
    {"blocked-job", R"(
title A rank waits for its data workers, which died: nothing moves
window 900
expect R7 warning 4000
gpu 0 power=62
proc 100 name=torchrun cmd="torchrun train.py"
proc 4000 ppid=100 cmd="python train.py" wchan=futex_wait_queue env="RANK=0 WORLD_SIZE=1 LOCAL_WORLD_SIZE=1"
on 0 4000 vram=30
)"},
    {"blocked-after-work", R"(
title A rank that was busy has been asleep for a quarter of an hour
window 1500
expect R7 warning 4000
gpu 0 power=300 pcie=500
proc 100 name=torchrun cmd="torchrun train.py"
proc 4000 ppid=100 cmd="python train.py" state=R cpu=1 io=1e6 env="RANK=0 WORLD_SIZE=1 LOCAL_WORLD_SIZE=1"
on 0 4000 vram=30 sm=90 mem=40
at 500 gpu 0 power=62 pcie=0
at 500 proc 4000 state=S cpu=0 io=0 wchan=pipe_read
at 500 on 0 4000 sm=0 mem=0
)"},
    {"blocked-many-threads", R"(
title A rank that was busy sleeps, and has more threads than are looked at
window 1500
expect R7 warning 4000
gpu 0 power=300 pcie=500
proc 100 name=torchrun cmd="torchrun train.py"
proc 4000 ppid=100 cmd="python train.py" threads=3000 state=R cpu=1 io=1e6 env="RANK=0 WORLD_SIZE=1 LOCAL_WORLD_SIZE=1"
on 0 4000 vram=30 sm=90 mem=40
at 500 gpu 0 power=62 pcie=0
at 500 proc 4000 state=S cpu=0 io=0 wchan=pipe_read
at 500 on 0 4000 sm=0 mem=0
)"},
    {"blocked-small-memory", R"(
title A blocked rank that holds too little to be called idle
window 900
expect R7 warning 4000
gpu 0 power=62
proc 100 name=mpirun cmd="mpirun -n 2 solver"
proc 4000 ppid=100 name=solver cmd="solver" wchan=do_epoll_wait env="OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2"
on 0 4000 vram=0.6
)"},
    {"blocked-none-stopped", R"(
title Somebody has stopped the job with ^Z, ten minutes ago
window 900
expect none
gpu 0 power=62
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" state=T env="RANK=0 WORLD_SIZE=1"
on 0 4000 vram=30
)"},
    {"blocked-none-debugger", R"(
title A debugger holds the rank
window 900
expect none
gpu 0 power=62
proc 100 name=gdb
proc 4000 ppid=100 cmd="python train.py" state=t tracer=100 env="RANK=0 WORLD_SIZE=1"
on 0 4000 vram=30
)"},
    {"blocked-none-checkpoint", R"(
title A checkpoint is written for a quarter of an hour: the GPU rests, the disk does not
window 900
expect none
gpu 0 power=62
proc 100 name=torchrun cmd="torchrun train.py"
proc 4000 ppid=100 cmd="python train.py" cpu=0.004 io=4e8 env="RANK=0 WORLD_SIZE=1"
on 0 4000 vram=30
)"},
    {"blocked-none-data-loading", R"(
title The rank waits for data workers that are hard at work
window 900
expect none
gpu 0 power=62
proc 100 name=torchrun cmd="torchrun train.py"
proc 4000 ppid=100 cmd="python train.py" env="RANK=0 WORLD_SIZE=1"
proc 4010 ppid=4000 name=pt_data_worker state=R cpu=0.9
proc 4011 ppid=4000 name=pt_data_worker state=R cpu=0.9
on 0 4000 vram=30
)"},
    {"blocked-none-evaluation", R"(
title Rank 0 evaluates alone for five minutes, the other waits for it
window 300
expect none
gpu 0 power=300 pcie=300
gpu 1 power=62
proc 100 name=torchrun cmd="torchrun train.py"
proc 4000 ppid=100 cmd="python train.py" state=R cpu=1 io=1e6 env="RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2"
proc 4001 ppid=100 cmd="python train.py" env="RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2" wchan=do_epoll_wait
on 0 4000 vram=30 sm=90 mem=40
on 1 4001 vram=30
)"},
    {"blocked-none-starting", R"(
title A job that has just started loads its model
window 200
expect none
gpu 0 power=62
proc 100 name=torchrun cmd="torchrun train.py" age=30
proc 4000 ppid=100 cmd="python train.py" age=20 env="RANK=0 WORLD_SIZE=1"
on 0 4000 vram=30
)"},
};

}  // namespace

std::vector<Situation> job_situations() { return {std::begin(kAll), std::end(kAll)}; }

}  // namespace drover::inline v1::health
