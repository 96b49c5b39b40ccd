// SPDX-License-Identifier: Apache-2.0
#include "drover/health/scenario/situations.h"

namespace drover::inline v1::health {
namespace {

constexpr Situation kAll[] = {
    {"blocked-server-in-arguments", R"(
title A blocked rank that has a server's name in its arguments and path only
window 900
expect R7 warning 4000
gpu 0 power=64
proc 100 name=torchrun cmd="torchrun rl.py"
proc 4000 ppid=100 cmd="python /home/ada/vllm-try/rl.py --rollout vllm --server none" wchan=futex_wait_queue env="RANK=0 WORLD_SIZE=1 LOCAL_WORLD_SIZE=1"
on 0 4000 vram=12
)"},
    {"blocked-in-notebook-terminal", R"(
title A job that was started in a terminal of JupyterLab is blocked
window 900
expect R7 warning 4000
gpu 0 power=64
proc 80 name=jupyter-lab cmd="/usr/bin/python3 /usr/bin/jupyter-lab" listen=1
proc 90 ppid=80 name=bash cmd="/bin/bash -l"
proc 100 ppid=90 name=torchrun cmd="torchrun fit.py"
proc 4000 ppid=100 cmd="python fit.py" wchan=futex_wait_queue env="RANK=0 WORLD_SIZE=1 LOCAL_WORLD_SIZE=1"
on 0 4000 vram=12
)"},
    {"idle-in-notebook-terminal", R"(
title A script that was started in a terminal of JupyterLab has been idle for two hours
window 7500
expect R8 warning 4000
gpu 0 power=64
proc 80 name=jupyter-lab cmd="/usr/bin/python3 /usr/bin/jupyter-lab" listen=1
proc 90 ppid=80 name=zsh cmd="zsh"
proc 4000 ppid=90 cmd="python look.py --data /srv/ollama" wchan=futex_wait_queue
on 0 4000 vram=12
)"},
    {"blocked-none-notebook-cell", R"(
title A command in a cell of a notebook, through a shell that runs just that, belongs to the notebook
window 900
expect none
gpu 0 power=64
proc 80 name=python cmd="python -m ipykernel_launcher -f k.json" listen=1
proc 90 ppid=80 name=bash cmd="bash -c cd x; python fit.py"
proc 4000 ppid=90 cmd="python fit.py" wchan=futex_wait_queue env="RANK=0 WORLD_SIZE=1 LOCAL_WORLD_SIZE=1"
on 0 4000 vram=12
)"},
    {"blocked-none-ranked-server", R"(
title A server of two ranks waits for requests; only one of them listens
window 900
expect none
gpu 0 power=64
gpu 1 power=64
proc 100 name=mpirun
proc 4000 ppid=100 cmd="python /opt/bin/llmkit-serve model" wchan=do_epoll_wait listen=1 env="OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 PMIX_NAMESPACE=prterun-7@1"
proc 4001 ppid=100 cmd="python /opt/bin/llmkit serve model" wchan=futex_wait_queue env="OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 PMIX_NAMESPACE=prterun-7@1"
on 0 4000 vram=12
on 1 4001 vram=12
)"},
    {"blocked-none-peer-evaluates", R"(
title Rank 1 sleeps in a barrier while rank 0 evaluates on its GPU for a quarter of an hour
window 900
expect none
gpu 0 power=260 pcie=200
gpu 1 power=64
proc 100 name=torchrun cmd="torchrun fit.py"
proc 4000 ppid=100 cmd="python fit.py" state=R cpu=1 io=3e5 env="RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=29511"
proc 4001 ppid=100 cmd="python fit.py" wchan=do_epoll_wait env="RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=29511"
on 0 4000 vram=20 sm=80 mem=30
on 1 4001 vram=20
)"},
    {"blocked-none-peer-stopped", R"(
title Somebody has stopped rank 0, and rank 1 waits for it
window 900
expect none
gpu 0 power=64
gpu 1 power=64
proc 100 name=torchrun cmd="torchrun fit.py"
proc 4000 ppid=100 cmd="python fit.py" state=T env="RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=29511"
proc 4001 ppid=100 cmd="python fit.py" wchan=do_epoll_wait env="RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=29511"
on 0 4000 vram=20
on 1 4001 vram=20
)"},
    {"blocked-none-helper-of-rank", R"(
title A rank works; its helper with a context on the GPU has the same number, and rests
window 900
expect none
gpu 0 power=300 pcie=300
proc 100 name=torchrun cmd="torchrun fit.py"
proc 4000 ppid=100 cmd="python fit.py" state=R cpu=1 io=2e6 env="RANK=0 WORLD_SIZE=1 LOCAL_WORLD_SIZE=1"
proc 4010 ppid=4000 cmd="python -c from multiprocessing.spawn" wchan=futex_wait_queue env="RANK=0 WORLD_SIZE=1 LOCAL_WORLD_SIZE=1"
on 0 4000 vram=20 sm=90 mem=40
on 0 4010 vram=0.6
)"},
    {"blocked-beside-busy-script", R"(
title One script with a rank, of one, is blocked; another of the same user works
window 900
expect R7 warning 4000
gpu 0 power=64
gpu 1 power=300 pcie=300
proc 90 name=bash
proc 4000 ppid=90 cmd="python fit.py" wchan=futex_wait_queue env="RANK=0 WORLD_SIZE=1"
proc 4100 ppid=90 cmd="python fit.py" state=R cpu=1 io=2e6 env="RANK=0 WORLD_SIZE=1"
on 0 4000 vram=12
on 1 4100 vram=12 sm=90 mem=40
)"},
    {"blocked-beside-busy-container", R"(
title Two containers with the same local master: a job in one is blocked, the other works
window 900
expect R7 warning 4000
expect R7 warning 4001
gpu 0 power=64
gpu 1 power=64
gpu 2 power=300 pcie=300
gpu 3 power=300 pcie=300
proc 90 name=containerd-shim uid=0
proc 100 ppid=90 name=torchrun cmd="torchrun fit.py" cgroup=/system.slice/docker-77aa88bb99cc.scope
proc 101 ppid=90 name=torchrun cmd="torchrun fit.py" cgroup=/system.slice/docker-11ee22ff33dd.scope
proc 4000 ppid=100 cmd="python fit.py" wchan=futex_wait_queue cgroup=/system.slice/docker-77aa88bb99cc.scope env="RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500"
proc 4001 ppid=100 cmd="python fit.py" wchan=futex_wait_queue cgroup=/system.slice/docker-77aa88bb99cc.scope env="RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500"
proc 4100 ppid=101 cmd="python fit.py" state=R cpu=1 io=2e6 cgroup=/system.slice/docker-11ee22ff33dd.scope env="RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500"
proc 4101 ppid=101 cmd="python fit.py" state=R cpu=1 io=2e6 cgroup=/system.slice/docker-11ee22ff33dd.scope env="RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500"
on 0 4000 vram=12
on 1 4001 vram=12
on 2 4100 vram=12 sm=90 mem=40
on 3 4101 vram=12 sm=90 mem=40
)"},
    {"blocked-beside-debugged-job", R"(
title A job is blocked; that somebody debugs another job is no reason
window 900
expect R7 warning 4000
gpu 0 power=64
gpu 1 power=64
proc 90 name=gdb cmd="gdb -p 4100"
proc 100 name=torchrun cmd="torchrun fit.py"
proc 101 name=torchrun cmd="torchrun fit.py"
proc 4000 ppid=100 cmd="python fit.py" wchan=futex_wait_queue env="RANK=0 WORLD_SIZE=2 MASTER_PORT=29511"
proc 4100 ppid=101 cmd="python fit.py" state=t tracer=90 env="RANK=1 WORLD_SIZE=2 MASTER_PORT=29512"
on 0 4000 vram=12
on 1 4100 vram=12
)"},
    {"spinning-spawned-all", R"(
title All workers that torch.multiprocessing.spawn has started, and whose ranks no environment tells, spin
window 900
expect R6 warning 4000
expect R6 warning 4001
gpu 0 power=95 nvlink=0
gpu 1 power=95 nvlink=0
proc 90 name=bash
proc 100 ppid=90 cmd="python main.py" wchan=do_wait
proc 4000 ppid=100 cmd="python -c from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5, pipe_handle=7) --multiprocessing-fork" state=R cpu=1 io=0
proc 4001 ppid=100 cmd="python -c from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5, pipe_handle=9) --multiprocessing-fork" state=R cpu=1 io=0
on 0 4000 vram=20 sm=100 mem=0
on 1 4001 vram=20 sm=100 mem=0
)"},
    {"spinning-none-spawned-validates", R"(
title The first of them validates on its GPU while the other one waits for it
window 720
expect none
gpu 0 power=320
gpu 1 power=95 nvlink=0
proc 90 name=bash
proc 100 ppid=90 cmd="python main.py" wchan=do_wait
proc 4000 ppid=100 cmd="python -c from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5, pipe_handle=7) --multiprocessing-fork" state=R cpu=1 io=1e5
proc 4001 ppid=100 cmd="python -c from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5, pipe_handle=9) --multiprocessing-fork" state=R cpu=1 io=0
on 0 4000 vram=20 sm=90 mem=45
on 1 4001 vram=20 sm=100 mem=0
)"},
    {"idle-none-forked-tokenizes", R"(
title Of workers by a fork, which have the command of their parent, the first uses three cores while the other waits
window 5400
expect none
gpu 0 power=62
gpu 1 power=62
proc 90 name=bash
proc 100 ppid=90 cmd="python main.py" wchan=do_wait
proc 4000 ppid=100 cmd="python main.py" state=R cpu=3 io=1e6
proc 4001 ppid=100 cmd="python main.py" wchan=ep_poll io=0
on 0 4000 vram=5
on 1 4001 vram=5
)"},
    {"spinning-none-titled-validates", R"(
title Ranks of another user, whose environment may not be read: one validates, the other waits below the same launcher
window 720
expect none
gpu 0 power=320
gpu 1 power=95 nvlink=0
proc 90 name=bash
proc 100 ppid=90 name=torchrun uid=1001 cmd="python /usr/bin/torchrun --nproc-per-node 2 train.py" titled=1 io=na
proc 4000 ppid=100 uid=1001 cmd="python train.py" state=R cpu=1 io=na titled=1
proc 4001 ppid=100 uid=1001 cmd="python train.py" state=R cpu=1 io=na titled=1
on 0 4000 vram=20 sm=90 mem=45
on 1 4001 vram=20 sm=100 mem=0
)"},
    {"blocked-loader-in-storage-for-hours", R"(
title The processes that load a rank's data wait for storage for longer than a failover takes
window 7200
expect R7 warning 4000
gpu 0 power=62
proc 100 name=torchrun cmd="torchrun train.py"
proc 4000 ppid=100 cmd="python train.py" wchan=futex_wait_queue io=0 env="RANK=0 WORLD_SIZE=1 LOCAL_WORLD_SIZE=1"
proc 4010 ppid=4000 name=pt_data_worker cmd="python train.py" state=D wchan=rpc_wait_bit_killable io=0 env="RANK=0 WORLD_SIZE=1 LOCAL_WORLD_SIZE=1"
on 0 4000 vram=40
)"},
    {"blocked-none-loader-in-storage", R"(
title The same for twenty minutes: the rank goes on when its file server does, and so do those that wait for it
window 1200
expect none
gpu 0 power=62
gpu 1 power=95 nvlink=0
proc 100 name=torchrun cmd="torchrun train.py"
proc 4000 ppid=100 cmd="python train.py" wchan=futex_wait_queue io=0 env="RANK=0 LOCAL_RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500"
proc 4010 ppid=4000 name=pt_data_worker cmd="python train.py" state=D wchan=rpc_wait_bit_killable io=0 env="RANK=0 LOCAL_RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500"
proc 4001 ppid=100 cmd="python train.py" state=R cpu=1 io=0 env="RANK=1 LOCAL_RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500"
on 0 4000 vram=40
on 1 4001 vram=40 sm=100 mem=0
)"},
    {"spinning-none-peer-thread-in-storage", R"(
title Not the first but another thread of the rank that the others wait for is in storage
window 720
expect none
gpu 0 power=62
gpu 1 power=95 nvlink=0
proc 100 name=torchrun cmd="torchrun train.py"
proc 4000 ppid=100 cmd="python train.py" threads=2 tasks=4000:S:futex_wait_queue,4009:D:rpc_wait_bit_killable io=0 env="RANK=0 LOCAL_RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500"
proc 4001 ppid=100 cmd="python train.py" state=R cpu=1 io=0 env="RANK=1 LOCAL_RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500"
on 0 4000 vram=40
on 1 4001 vram=40 sm=100 mem=0
)"},
    {"idle-writes-a-line", R"(
title Idle for three hours, and in the last look a thread of its waits for storage, as one that writes a line does
window 10800
expect R8 warning 4000
gpu 0 power=62
proc 90 name=bash
proc 4000 ppid=90 cmd="python train.py" wchan=futex_wait_queue threads=2 tasks=4000:S:futex_wait_queue,4001:S:futex_wait_queue
at 10790 proc 4000 tasks=4000:S:futex_wait_queue,4001:D:rpc_wait_bit_killable
on 0 4000 vram=10
)"},
    {"idle-none-suspended-in-storage", R"(
title Slurm suspended a step while a process of it was in the kernel, and stops when it comes out of that
window 7300
expect none
gpu 0 power=62
proc 51 name=slurmstepd uid=0 cmd="slurmstepd: [77.batch]"
proc 52 ppid=51 name=slurm_script cmd="/bin/bash /var/spool/slurmd/job77/slurm_script" state=T env="SLURM_JOB_ID=77"
proc 4000 ppid=52 cmd="python train.py" state=T wchan=do_signal_stop env="SLURM_JOB_ID=77"
proc 4010 ppid=4000 cmd="python train.py" state=D wchan=rpc_wait_bit_killable env="SLURM_JOB_ID=77"
on 0 4000 vram=40
)"},
    {"stuck-none-lock-of-directory", R"(
title Behind a file server that does not answer, one job waits for it and another for the lock of the same directory
window 600
expect none
gpu 0 power=62
gpu 1 power=62
proc 90 name=bash
proc 4000 ppid=90 cmd="python a.py" state=D wchan=rpc_wait_bit_killable io=0
proc 4001 ppid=90 uid=1001 cmd="python b.py" state=D wchan=iterate_dir io=0
on 0 4000 vram=30
on 1 4001 vram=30
)"},
    {"idle-none-matlab", R"(
title MATLAB has waited at its prompt for five hours
window 18000
expect none
gpu 0 power=62
proc 90 name=bash
proc 4000 ppid=90 name=MATLAB cmd="/opt/matlab/bin/glnxa64/MATLAB -nodesktop" tty=1 cpu=0.02 wchan=do_poll
on 0 4000 vram=9
)"},
    {"idle-matlab-batch", R"(
title The same without a person: a batch of MATLAB has been idle for two hours
window 7500
expect R8 warning 4000
gpu 0 power=62
proc 90 name=bash
proc 4000 ppid=90 name=MATLAB cmd="/opt/matlab/bin/glnxa64/MATLAB -batch fit" wchan=futex_wait_queue
on 0 4000 vram=9
)"},
    {"spinning-none-breakpoint", R"(
title cuda-gdb holds a program at a breakpoint in a kernel for most of an hour
window 3000
expect none
gpu 0 power=80
proc 90 name=bash
proc 100 ppid=90 name=cuda-gdb cmd="/usr/local/cuda/bin/cuda-gdb --args ./solver mesh.in" tty=1
proc 4000 ppid=100 name=solver cmd="./solver mesh.in" state=t tracer=100
on 0 4000 vram=3 sm=100 mem=0
)"},
};

}  // namespace

std::vector<Situation> waiting_situations() { return {std::begin(kAll), std::end(kAll)}; }

}  // namespace drover::inline v1::health
