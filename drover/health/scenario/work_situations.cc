// SPDX-License-Identifier: Apache-2.0
#include "drover/health/scenario/situations.h"

namespace drover::inline v1::health {
namespace {

constexpr Situation kAll[] = {
    {"idle-container-shared", R"(
title An old program idles in a container in which another one computes
window 9000
expect R8 warning 4000
gpu 0 power=62
gpu 1 power=300
proc 80 name=containerd-shim uid=0 cmd="/usr/bin/containerd-shim-runc-v2"
proc 90 ppid=80 name=sshd uid=0 cmd="sshd -D" cgroup=/system.slice/docker-0123456789abcdef.scope
proc 4000 ppid=90 cmd="python old.py" cgroup=/system.slice/docker-0123456789abcdef.scope wchan=futex_wait_queue
proc 4001 ppid=90 cmd="python train.py" cgroup=/system.slice/docker-0123456789abcdef.scope state=R cpu=1 io=1e6
on 0 4000 vram=30
on 1 4001 vram=30 sm=97 mem=40
)"},
    {"idle-slurm-sweep", R"(
title One trial of a sweep idles, another one of the same Slurm job computes
window 9000
expect R8 warning 4000
gpu 0 power=62
gpu 1 power=300
proc 50 name=slurmd uid=0 cmd="/usr/sbin/slurmd -D"
proc 51 ppid=1 name=slurmstepd uid=0 cmd="slurmstepd: [77.batch]"
proc 4000 ppid=51 cmd="python trial.py --lr 1" wchan=futex_wait_queue env="SLURM_JOB_ID=77"
proc 4001 ppid=51 cmd="python trial.py --lr 2" state=R cpu=1 io=1e6 env="SLURM_JOB_ID=77"
on 0 4000 vram=30
on 1 4001 vram=30 sm=97 mem=40
)"},
    {"idle-stopped-script", R"(
title A person has stopped a script, and all that it started, for three hours
window 10800
expect R8 warning 4000
gpu 0 power=62
proc 100 name=bash
proc 101 ppid=100 name=sh cmd="sh run.sh" state=T group=101
proc 4000 ppid=101 cmd="python train.py" state=T wchan=do_signal_stop group=101
on 0 4000 vram=40
)"},
    {"idle-none-slurm-suspended", R"(
title Slurm has suspended a job for two hours: its script and what that started are stopped
window 9000
expect none
gpu 0 power=62
proc 50 name=slurmd uid=0 cmd="/usr/sbin/slurmd -D"
proc 51 ppid=1 name=slurmstepd uid=0 cmd="slurmstepd: [77.batch]"
proc 52 ppid=51 name=slurm_script cmd="/bin/bash /var/spool/slurmd/job77/slurm_script" state=T env="SLURM_JOB_ID=77"
proc 4000 ppid=52 cmd="python train.py" state=T wchan=do_signal_stop env="SLURM_JOB_ID=77"
on 0 4000 vram=40
)"},
    {"idle-none-slurm-preempted", R"(
title A job is suspended while another one that took its place computes
window 9000
expect none
gpu 0 power=300
proc 50 name=slurmd uid=0 cmd="/usr/sbin/slurmd -D"
proc 51 ppid=1 name=slurmstepd uid=0 cmd="slurmstepd: [77.batch]"
proc 53 ppid=1 name=slurmstepd uid=0 cmd="slurmstepd: [78.batch]"
proc 4000 ppid=51 uid=1001 cmd="python low.py" state=T wchan=do_signal_stop env="SLURM_JOB_ID=77"
proc 4001 ppid=53 uid=1002 cmd="python high.py" state=R cpu=1 env="SLURM_JOB_ID=78"
on 0 4000 vram=30
on 0 4001 vram=30 sm=97 mem=40
)"},
    {"idle-none-parent-of-working-child", R"(
title A search holds memory of one GPU, and waits for a trial that computes on another one
window 9000
expect none
gpu 0 power=62
gpu 1 power=300
proc 90 name=bash
proc 4000 ppid=90 cmd="python hpo.py" wchan=do_wait
proc 4001 ppid=4000 cmd="python trial.py" state=S cpu=0.03 io=0
on 0 4000 vram=20
on 1 4001 vram=20 sm=95 mem=50
)"},
    {"idle-none-rank-waits-for-the-first", R"(
title The first rank prepares data on three cores for two hours; the other one waits, and its heartbeat uses some CPU
window 9000
expect none
gpu 0 power=62
gpu 1 power=62
proc 100 name=torchrun cmd="torchrun --nproc-per-node 2 train.py"
proc 4000 ppid=100 cmd="python train.py" state=R cpu=3 io=0 env="RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=29500"
proc 4001 ppid=100 cmd="python train.py" wchan=futex_wait_queue cpu=0.03 io=0 env="RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=29500"
on 0 4000 vram=20
on 1 4001 vram=20
)"},
    {"orphaned-none-peer-evaluates", R"(
title The launcher is gone; the first rank still evaluates, and the other one waits for it
window 400
expect none
gpu 0 power=250
gpu 1 power=95 nvlink=0
proc 4000 ppid=1 cmd="python train.py" state=R cpu=1 env="RANK=0 LOCAL_RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500"
proc 4001 ppid=1 cmd="python train.py" state=R cpu=1 env="RANK=1 LOCAL_RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500"
on 0 4000 vram=30 sm=80 mem=40
on 1 4001 vram=30 sm=100 mem=0
)"},
    {"orphaned-none-peer-checkpoints", R"(
title The launcher is gone; the first rank still writes a checkpoint, and the other one waits for it
window 400
expect none
gpu 0 power=62
gpu 1 power=95 nvlink=0
proc 4000 ppid=1 cmd="python train.py" state=D wchan=rpc_wait cpu=0.2 io=2e8 env="RANK=0 LOCAL_RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500"
proc 4001 ppid=1 cmd="python train.py" state=R cpu=1 env="RANK=1 LOCAL_RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500"
on 0 4000 vram=30
on 1 4001 vram=30 sm=100 mem=0
)"},
    {"blocked-none-first-rank-tokenizes", R"(
title The first rank prepares data on three cores for 40 minutes, and the other one waits for it
window 2400
expect none
gpu 0 power=62
gpu 1 power=62
proc 100 name=torchrun cmd="torchrun --nproc-per-node 2 train.py"
proc 4000 ppid=100 cmd="python train.py" state=R cpu=3 io=0 env="RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=29500"
proc 4001 ppid=100 cmd="python train.py" wchan=futex_wait_queue io=0 env="RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=29500"
on 0 4000 vram=1
on 1 4001 vram=1
)"},
    {"blocked-first-rank-polls", R"(
title The first rank uses just one core for 40 minutes, which is work or a wait that polls, and the other one waits
window 2400
expect R7 warning 4001
gpu 0 power=62
gpu 1 power=62
proc 100 name=torchrun cmd="torchrun --nproc-per-node 2 train.py"
proc 4000 ppid=100 cmd="python train.py" state=R cpu=1 io=0 env="RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=29500"
proc 4001 ppid=100 cmd="python train.py" wchan=futex_wait_queue io=0 env="RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=29500"
on 0 4000 vram=1
on 1 4001 vram=1
)"},
    {"defunct-parent-in-its-container", R"(
title A zombie in a container, whose parent has another child that works
window 60
expect R3 warning 4000
gpu 0 power=62
proc 80 name=containerd-shim uid=0
proc 90 ppid=80 cmd="python launcher.py" cgroup=/system.slice/docker-0123456789abcdef.scope wchan=do_epoll_wait
proc 91 ppid=90 cmd="python other_worker.py" cgroup=/system.slice/docker-0123456789abcdef.scope
proc 4000 ppid=90 state=Z cgroup=/system.slice/docker-0123456789abcdef.scope
on 0 4000 vram=30
)"},
    {"defunct-none-threads-compute", R"(
title The first thread of a program has ended, and another one goes on and computes
window 60
expect none
gpu 0 power=300
proc 100 name=bash
proc 4000 ppid=100 state=Z threads=3 cpu=1 tasks=4000:Z,4001:R,4002:S:futex_wait_queue
on 0 4000 vram=30 sm=95 mem=40
)"},
    {"stuck-none-pinning", R"(
title A thread pins hundreds of gigabytes, and others wait for the lock of the memory's map
window 180
expect none
gpu 0 power=70
proc 100 name=bash
proc 4000 ppid=100 cmd="python train_zero3_offload.py" state=R cpu=1 threads=3 tasks=4000:R,4001:D:vm_mmap_pgoff,4002:D:__vm_munmap
on 0 4000 vram=5
)"},
    {"stuck-lock-beside-polling", R"(
title A thread has waited for a lock for a quarter of an hour, for longer than anybody pins, while another one polls
window 900
expect R2 warning 4000
gpu 0 power=70
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" state=R cpu=1 threads=2 tasks=4000:R,4001:D:rwsem_down_write_slowpath
on 0 4000 vram=5
)"},
    {"orphan-handle-root-in-container", R"(
title A data worker has outlived its job in a container in which all is root's
window 30
expect R4 warning 4000
gpu 0 power=62
proc 80 name=containerd-shim uid=0
proc 4100 ppid=80 uid=0 group=4100 cmd="python -c from multiprocessing.spawn import spawn_main --multiprocessing-fork" cgroup=/system.slice/docker-0123456789abcdef.scope open=0 wchan=pipe_read
on 0 4000 vram=30
)"},
    {"unattributed-imported", R"(
title A process has imported memory of one that ended (CUDA IPC)
window 30
expect R9 warning
gpu 0 power=62 extra=22
proc 100 name=bash
proc 4001 ppid=100 cmd="python consumer.py" state=R cpu=1 open=0
on 0 4001 vram=1 sm=30 mem=5
)"},
    {"fault-stopped-processing", R"(
title The GPU stopped processing, says the kernel's log
window 0
expect R1 critical
gpu 0 power=60 log=46@200
)"},
    {"fault-nvlink-5", R"(
title An error of NVLink 5, of which only the log's text tells how bad it was
window 0
expect R1 warning
gpu 0 power=60 log=149@200
)"},
    {"fault-memory-without-remapping", R"(
title Three memory errors on a GPU whose rows cannot be remapped
window 0
expect R1 warning
gpu 0 power=60 ecc=3 code.remap_pending=3 code.remap_failed=3
)"},
    {"fault-none-remapped", R"(
title Three memory errors on a GPU that says that no row waits to be remapped
window 0
expect none
gpu 0 power=60 ecc=3
)"},
    {"idle-slurm-rank-stopped", R"(
title A person has stopped one rank that srun started, and the other one spins
window 9000
expect R8 warning 4000
gpu 0 power=62
gpu 1 power=95 nvlink=0
proc 50 name=slurmd uid=0 cmd="/usr/sbin/slurmd -D"
proc 51 name=slurmstepd uid=0 cmd="slurmstepd: [77.0]"
proc 4000 ppid=51 cmd="python train.py" state=T wchan=do_signal_stop io=0 env="RANK=0 WORLD_SIZE=2 SLURM_PROCID=0 SLURM_JOB_ID=77 SLURM_STEP_ID=0"
proc 4001 ppid=51 cmd="python train.py" state=R cpu=1 io=0 env="RANK=1 WORLD_SIZE=2 SLURM_PROCID=1 SLURM_JOB_ID=77 SLURM_STEP_ID=0"
on 0 4000 vram=30
on 1 4001 vram=30 sm=100 mem=0
)"},
    {"idle-stopped-rank-of-mpi", R"(
title A person has stopped one rank of a simulation, and the others poll on the CPU for it, for over an hour
window 4200
expect R8 warning 4002
gpu 0 power=44
gpu 1 power=45
gpu 2 power=46
proc 90 name=bash
proc 100 ppid=90 name=mpirun cmd="mpirun -np 3 lmp -k on g 3 -sf kk -in in.melt"
proc 4000 ppid=100 name=lmp cmd="lmp -in in.melt" state=R cpu=1 io=0 env="OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_LOCAL_SIZE=3"
proc 4001 ppid=100 name=lmp cmd="lmp -in in.melt" state=R cpu=1 io=0 env="OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_LOCAL_SIZE=3"
proc 4002 ppid=100 name=lmp cmd="lmp -in in.melt" state=T wchan=do_signal_stop env="OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_LOCAL_SIZE=3"
on 0 4000 vram=7
on 1 4001 vram=7
on 2 4002 vram=7
)"},
    {"defunct-thread-polls", R"(
title The one thread left of a zombie polls for two hours
window 7200
expect R3 warning 4000
gpu 0 power=62
proc 100 name=bash
proc 4000 ppid=100 state=Z threads=2 cpu=1 io=0 tasks=4000:Z,4001:R
on 0 4000 vram=30
)"},
    {"spinning-below-debugger", R"(
title Both ranks that an editor's debugger started have spun for two days
window 172800
expect R6 warning 4000
expect R6 warning 4001
gpu 0 power=95 nvlink=0
gpu 1 power=95 nvlink=0
proc 80 name=node cmd="/home/u/.vscode-server/bin/x/node /home/u/.vscode-server/bin/x/out/server-main.js"
proc 82 ppid=80 cmd="/usr/bin/python /home/u/ext/debugpy/adapter" listen=41235
proc 83 ppid=82 cmd="/usr/bin/python /home/u/ext/debugpy/launcher 41235 -- -m torch.distributed.run train.py"
proc 100 ppid=83 cmd="python -m torch.distributed.run train.py"
proc 4000 ppid=100 cmd="python train.py" state=R cpu=1 io=0 env="RANK=0 LOCAL_RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500"
proc 4001 ppid=100 cmd="python train.py" state=R cpu=1 io=0 env="RANK=1 LOCAL_RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500"
on 0 4000 vram=30 sm=100 mem=0
on 1 4001 vram=30 sm=100 mem=0
)"},
    {"stuck-storage-for-hours", R"(
title One rank has waited for a dead file server for ten hours, and the other one for it
window 36000
expect R2 warning 4000
gpu 0 power=62
gpu 1 power=62
proc 90 name=bash
proc 100 ppid=90 name=torchrun cmd="python /usr/bin/torchrun --nproc-per-node 2 train.py" tty=1
proc 4000 ppid=100 cmd="python train.py" state=D wchan=nfs_wait_bit_killable io=0 env="RANK=0 LOCAL_RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500"
proc 4001 ppid=100 cmd="python train.py" state=S wchan=futex_wait_queue io=0 env="RANK=1 LOCAL_RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500"
on 0 4000 vram=30
on 1 4001 vram=30
)"},
    {"idle-prompt-forgotten", R"(
title A script has waited for three hours for what a person should type, and holds its memory
window 10800
expect R8 warning 4000
gpu 0 power=62
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" wchan=wait_woken tty=1
on 0 4000 vram=40
)"},
    {"idle-monitor-below", R"(
title The only process below an idle one is a monitor
window 90000
expect R8 warning 4000
gpu 0 power=62
gpu 1 power=62
proc 90 name=bash
proc 4000 ppid=90 cmd="python hoard.py" wchan=futex_wait_queue io=0
proc 4001 ppid=4000 name=nvtop cmd=nvtop
on 0 4000 vram=30
on 1 4001 vram=0.1 sm=5 mem=1
)"},
};

}  // namespace

std::vector<Situation> work_situations() { return {std::begin(kAll), std::end(kAll)}; }

}  // namespace drover::inline v1::health
