// SPDX-License-Identifier: Apache-2.0
#include "drover/health/scenario/situations.h"

namespace drover::inline v1::health {
namespace {

constexpr Situation kAll[] = {
    {"stuck-in-driver", R"(
title A training process hangs in the driver, uninterruptible
window 120
expect R2 critical 4000
gpu 0 power=70
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" state=D wchan=nvidia_ioctl
on 0 4000 vram=30
)"},
    {"stuck-thread", R"(
title Only one thread hangs in the driver; the first one sleeps as usual
window 120
expect R2 critical 4000
gpu 0 power=70
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" threads=3 tasks=4000:S:futex_wait_queue,4001:D:uvm_va_space_down_write,4002:S:do_epoll_wait
on 0 4000 vram=30
)"},
    {"stuck-place-unknown", R"(
title Uninterruptible for two minutes, and where is not told
window 120
expect R2 warning 4000
gpu 0 power=70
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" state=D io=0
on 0 4000 vram=30
)"},
    {"stuck-behind-zombie", R"(
title A killed process: its first thread is a zombie, another one never comes back from the driver
window 120
expect R2 critical 4000
gpu 0 power=70
proc 100 name=bash
proc 4000 ppid=100 state=Z kill=1 threads=2 tasks=4000:Z,4001:D:uvm_va_space_destroy open=0
on 0 4000 vram=30
)"},
    {"killed-behind-zombie", R"(
title SIGKILL has been pending for half a minute behind a first thread that is a zombie
window 30
expect R2 warning 4000
gpu 0 power=70
proc 100 name=bash
proc 4000 ppid=100 state=Z kill=1 threads=2 tasks=4000:Z,4001:R open=0
on 0 4000 vram=30
)"},
    {"kill-pending", R"(
title SIGKILL was sent half a minute ago, and the process still lives
window 30
expect R2 warning 4000
gpu 0 power=70
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" state=R cpu=0.1 kill=1
on 0 4000 vram=30 sm=1
)"},
    {"stuck-none-nfs", R"(
title A process waits for a dead NFS server: not the GPU's fault
window 120
expect none
gpu 0 power=70
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" state=D wchan=rpc_wait_bit_killable
on 0 4000 vram=30
)"},
    {"stuck-killed-in-storage", R"(
title What was killed six minutes ago still waits for a server of files
window 400
expect R2 warning 4000
gpu 0 power=70
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" state=D wchan=folio_wait_bit_common kill=1
on 0 4000 vram=30
)"},
    {"stuck-none-killed-in-storage", R"(
title What was killed two minutes ago still writes back
window 120
expect none
gpu 0 power=70
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" state=D wchan=folio_wait_bit_common kill=1
on 0 4000 vram=30
)"},
    {"stuck-none-inode-writeback", R"(
title A process waits for an inode that a broken disk does not take
window 120
expect none
gpu 0 power=70
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" state=D wchan=__inode_wait_for_writeback
on 0 4000 vram=30
)"},
    {"stuck-none-memory-high", R"(
title A job over memory.high of its cgroup, which the kernel slows down
window 120
expect none
gpu 0 power=70
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" state=D wchan=mem_cgroup_handle_over_high cgroup=/user.slice/run-5.scope
on 0 4000 vram=30
)"},
    {"stuck-none-memory-limit", R"(
title A job at the memory limit of its cgroup, where nobody is to be killed for it
window 120
expect none
gpu 0 power=70
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" state=D wchan=mem_cgroup_oom_synchronize
on 0 4000 vram=30
)"},
    {"stuck-none-reclaim", R"(
title The node is short of memory, and a rank waits until some is free
window 120
expect none
gpu 0 power=70
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" state=D wchan=reclaim_throttle
on 0 4000 vram=30
)"},
    {"stuck-none-vfork", R"(
title A parent waits in vfork, which looks uninterruptible; it is on no GPU
window 120
expect none
gpu 0
proc 100 name=make state=D wchan=kernel_clone
proc 101 ppid=100 name=cc1plus state=R cpu=1
)"},
    {"stuck-none-once", R"(
title Uninterruptible for a moment only
window 120
expect none
gpu 0 power=250 pcie=500
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" state=R cpu=1 io=1e6
on 0 4000 vram=30 sm=80 mem=40
at 40 proc 4000 state=D wchan=nvidia_ioctl
at 42 proc 4000 state=R wchan=0
)"},
    {"stuck-none-disk-readers", R"(
title Threads wait for the disk in turn and get on with it
window 120
expect none
gpu 0 power=250 pcie=500
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" threads=2 io=2e8 tasks=4000:S:futex_wait_queue,4001:D:folio_wait_bit_common
on 0 4000 vram=30 sm=80 mem=40
)"},
    {"stuck-none-one-look", R"(
title A single look sees state D: worth a note, no more
window 0
expect none
gpu 0 power=70
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" state=D wchan=nvidia_ioctl
on 0 4000 vram=30
)"},
    {"defunct-holds", R"(
title A zombie still holds 30 GiB
window 20
expect R3 warning 4000
gpu 0 power=70
proc 100 name=launcher
proc 4000 ppid=100 state=Z
on 0 4000 vram=30
)"},
    {"defunct-leader-live-threads", R"(
title The first thread is a zombie, others of the process live on
window 20
expect R3 warning 4000
gpu 0 power=70
proc 100 name=launcher
proc 4000 ppid=100 state=Z threads=5 open=0
on 0 4000 vram=30
)"},
    {"defunct-children-hold", R"(
title A zombie whose data workers keep the device open
window 20
expect R3 warning 4000
gpu 0 power=70
proc 100 name=launcher
proc 4000 ppid=100 state=Z
proc 4010 ppid=4000 name=pt_data_worker open=0
proc 4011 ppid=4000 name=pt_data_worker open=0
on 0 4000 vram=30
)"},
    {"defunct-in-container", R"(
title The first process of a container is a zombie; the engine's own process is its parent
window 20
expect R3 warning 4000
gpu 0 power=70
proc 90 name=containerd-shim uid=0 cmd="/usr/bin/containerd-shim-runc-v2 -namespace moby -id 0f3c"
proc 4000 ppid=90 uid=0 state=Z cgroup=/docker/0f3c9d5a7b1e
on 0 4000 vram=30
)"},
    {"defunct-under-slurm", R"(
title A rank below slurmstepd is a zombie, and a thread of it lives
window 20
expect R3 warning 4000
gpu 0 power=70
proc 51 ppid=1 name=slurmstepd uid=0 cmd="slurmstepd: [77.0]"
proc 4000 ppid=51 state=Z threads=2 tasks=4000:Z,4001:S:futex_wait_queue open=0
on 0 4000 vram=30
)"},
    {"defunct-under-notebook-server", R"(
title A kernel is a zombie; another one of the same JupyterLab works
window 20
expect R3 warning 4000
gpu 0 power=70
proc 80 name=jupyter-lab cmd="python /opt/bin/jupyter-lab" listen=1
proc 4000 ppid=80 state=Z
proc 4001 ppid=80 cmd="python -m ipykernel_launcher -f k2.json" cpu=0.5 state=R
on 0 4000 vram=30
on 0 4001 vram=10 sm=40 mem=10
)"},
    {"defunct-beside-live-ranks", R"(
title A rank is a zombie that its launcher has not collected; the other one works
window 20
expect R3 warning 4000
gpu 0 power=70
gpu 1 power=300 pcie=300
proc 100 name=torchrun cmd="torchrun train.py"
proc 4000 ppid=100 state=Z
proc 4001 ppid=100 cmd="python train.py" state=R cpu=1 io=1e6 env="RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2"
on 0 4000 vram=30
on 1 4001 vram=30 sm=90 mem=40
)"},
    {"defunct-none-no-memory", R"(
title A zombie that was never on a GPU
window 20
expect none
gpu 0
proc 100 name=launcher
proc 4000 ppid=100 state=Z
)"},
    {"defunct-none-moment", R"(
title A process ends in the usual way: a zombie for two seconds
window 20
expect none
gpu 0 power=70
proc 100 name=launcher
proc 4000 ppid=100 state=R cpu=1
on 0 4000 vram=30 sm=90 mem=40
at 8 proc 4000 state=Z
at 10 proc 4000 ended=1
at 10 on 0 4000 ended=1
)"},
    {"defunct-none-child", R"(
title A healthy job has a zombie child that it has not reaped
window 60
expect none
gpu 0 power=280 pcie=300
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" state=R cpu=1 io=1e6
proc 4001 ppid=4000 state=Z
on 0 4000 vram=30 sm=90 mem=40
)"},
    {"defunct-none-one-look", R"(
title A single look sees a zombie with memory: it may be ending just now
window 0
expect none
gpu 0 power=70
proc 100 name=launcher
proc 4000 ppid=100 state=Z
on 0 4000 vram=30
)"},
    {"orphan-leak", R"(
title The driver lists a process that is gone, and nobody has the device open
window 10
expect R4 warning 4000
gpu 0 power=70
proc 100 name=bash
on 0 4000 vram=30
)"},
    {"orphan-unknown-device", R"(
title The driver lists a process that is gone, and does not tell which device file is the GPU's
window 10
expect R4 warning 4000
gpu 0 power=70 code.minor=3
proc 100 name=bash
proc 5001 ppid=1 name=pt_data_worker cmd="python train.py" open=0
on 0 4000 vram=30
)"},
    {"orphan-data-workers", R"(
title Data workers of a dead rank, now children of init, keep its memory
window 10
expect R4 warning 4000
gpu 0 power=70
proc 5001 ppid=1 name=pt_data_worker cmd="python train.py" open=0,1 wchan=pipe_write
proc 5002 ppid=1 name=pt_data_worker cmd="python train.py" open=0,1 wchan=futex_wait_queue
on 0 4000 vram=30
)"},
    {"orphan-beside-healthy", R"(
title One GPU has an orphaned handle, on the other a job works
window 10
expect R4 warning 4000
gpu 0 power=70
gpu 1 power=300 pcie=400
proc 100 name=bash
proc 6000 ppid=100 cmd="python train.py" state=R cpu=1 io=1e6 closed=1
on 0 4000 vram=30
on 1 6000 vram=30 sm=95 mem=50
)"},
    {"orphan-none-exits", R"(
title A process ends between two looks, as processes do
window 10
expect none
gpu 0 power=70
proc 100 name=bash
proc 4000 ppid=100 state=R cpu=1
on 0 4000 vram=30 sm=50
at 5 proc 4000 ended=1
at 5.5 on 0 4000 ended=1
)"},
    {"orphan-none-one-look", R"(
title A single look misses a process: it may have just ended
window 0
expect none
gpu 0 power=70
on 0 4000 vram=30
)"},
    {"orphan-none-container", R"(
title In a container the driver lists pids of the machine
window 10
container
expect G0 unknown
gpu 0 power=250
proc 1 name=bash ppid=0
proc 20 ppid=1 cmd="python train.py" state=R cpu=1
on 0 81234 vram=30 sm=90 mem=40
)"},
    {"orphan-none-hidepid", R"(
title /proc is mounted with hidepid: the process exists, unseen
window 10
expect G0 unknown
gpu 0 power=250
proc 100 name=bash
proc 4000 ppid=100 hidden=1 uid=1001
on 0 4000 vram=30 sm=90 mem=40
)"},
    {"orphan-none-pid-used-again", R"(
title The number of an ended process is used again by a shell; the driver's row goes in time
window 10
expect none
gpu 0 power=70
proc 100 name=bash
proc 4000 ppid=100 state=R cpu=1
on 0 4000 vram=30 sm=50
at 5 proc 4000 age=-5 name=bash state=S cpu=0
at 6 on 0 4000 ended=1
)"},
};

}  // namespace

std::vector<Situation> stuck_situations() { return {std::begin(kAll), std::end(kAll)}; }

}  // namespace drover::inline v1::health
