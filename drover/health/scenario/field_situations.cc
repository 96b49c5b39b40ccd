// SPDX-License-Identifier: Apache-2.0
#include "drover/health/scenario/situations.h"

namespace drover::inline v1::health {
namespace {

constexpr Situation kAll[] = {
    {"stuck-driver-beside-storage", R"(
title A thread has waited in a file system's server for five minutes, another one in the driver
window 300
expect R2 critical 4000
gpu 0 power=70
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" threads=3 tasks=4000:S:futex_wait_queue,4001:D:_nv041277rm,4002:D:cifs_strict_readv
on 0 4000 vram=30
)"},
    {"stuck-none-storage-by-program", R"(
title A file system in user space does not answer
window 300
expect none
gpu 0 power=70
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" threads=2 tasks=4000:S:futex_wait_queue,4001:D:__fuse_request_send
on 0 4000 vram=30
)"},
    {"stuck-none-storage-parallel", R"(
title Two jobs wait for parallel file systems, a third one until what was written is on the disk
window 300
expect none
gpu 0 power=70
proc 100 name=bash
proc 4000 ppid=100 cmd="python a.py" state=D wchan=cxiWaitEventWait
proc 4100 ppid=100 cmd="python b.py" state=D wchan=FhgfsOpsPages_readpages
proc 4200 ppid=100 cmd="python c.py" state=D wchan=balance_dirty_pages_ratelimited_flags
on 0 4000 vram=20
on 0 4100 vram=20
on 0 4200 vram=20
)"},
    {"stuck-lock-of-memory", R"(
title A lock of the kernel's own, whose name only looks like that of a file system (Linux 3.10)
window 180
expect R2 warning 4000
gpu 0 power=70
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" state=D wchan=call_rwsem_down_write_failed
on 0 4000 vram=30
)"},
    {"stuck-none-few-looks", R"(
title A thread is in the driver in all looks, but these are fewer than are asked for
window 200
set confirm=70
expect none
gpu 0 power=200 pcie=100
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" state=D wchan=nvidia_unlocked_ioctl
on 0 4000 vram=30 sm=60 mem=20
)"},
    {"stuck-killed-confirmed", R"(
title SIGKILL stays pending, which needs no more looks
window 200
set confirm=70
expect R2 critical 4000
gpu 0 power=62
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" state=D kill=1 wchan=os_acquire_mutex
on 0 4000 vram=30
)"},
    {"stuck-none-paused-old", R"(
title A container is paused by the freezer of cgroups, version 1
window 600
expect none
gpu 0 power=62
proc 90 name=containerd-shim
proc 4000 ppid=90 uid=0 cmd="python train.py" state=D wchan=__refrigerator cgroup=/docker/0f3c9d5a7b1e
on 0 4000 vram=30
)"},
    {"stuck-none-paused-in-place", R"(
title The freezer of version 1 caught a process in a wait, where Linux 6.1 and later leave it
window 600
expect none
gpu 0 power=62
proc 90 name=containerd-shim
proc 4000 ppid=90 uid=0 cmd="python train.py" state=D wchan=futex_do_wait threads=2 tasks=4000:D:futex_do_wait,4001:D:hrtimer_nanosleep cgroup=/docker/0f3c9d5a7b1e
on 0 4000 vram=30
)"},
    {"stuck-killed-paused", R"(
title A paused container was killed: the freezer of version 1 holds the signal back
window 600
expect R2 warning 4000
gpu 0 power=62
proc 90 name=containerd-shim
proc 4000 ppid=90 uid=0 cmd="python train.py" state=D kill=1 wchan=__refrigerator cgroup=/docker/0f3c9d5a7b1e
on 0 4000 vram=30
)"},
    {"blocked-none-paused", R"(
title A job is paused by the freezer of cgroups, version 2
window 1500
expect none
gpu 0 power=62
proc 200 name=torchrun
proc 4000 ppid=200 cmd="python train.py" env="RANK=0 WORLD_SIZE=1 LOCAL_WORLD_SIZE=1" threads=2 tasks=4000:S:do_freezer_trap,4001:S:do_freezer_trap
on 0 4000 vram=30
)"},
    {"idle-paused", R"(
title A paused container keeps 30 GiB for more than an hour
window 4200
expect R8 warning 4000
gpu 0 power=62
proc 90 name=containerd-shim
proc 4000 ppid=90 uid=0 cmd="python train.py" state=D wchan=__refrigerator cgroup=/docker/0f3c9d5a7b1e
on 0 4000 vram=30
)"},
    {"blocked-none-terminal", R"(
title A rank stands at a breakpoint, and reads the terminal
window 1500
expect none
gpu 0 power=65
proc 200 name=torchrun
proc 4000 ppid=200 cmd="python train.py" env="RANK=0 WORLD_SIZE=1 LOCAL_WORLD_SIZE=1" threads=2 tasks=4000:S:n_tty_read,4001:S:futex_wait_queue
on 0 4000 vram=30
)"},
    {"blocked-none-pause", R"(
title A rank that evaluates looks for a checkpoint every ten minutes, and sleeps meanwhile
window 1500
expect none
gpu 0 power=65
proc 200 name=torchrun
proc 4000 ppid=200 cmd="python evaluate.py" env="RANK=0 WORLD_SIZE=1 LOCAL_WORLD_SIZE=1" wchan=do_nanosleep
on 0 4000 vram=30
)"},
    {"blocked-by-socket", R"(
title A rank waits for the answer of a machine that is gone, others of its threads sleep
window 900
expect R7 warning 4000
gpu 0 power=65
proc 200 name=torchrun
proc 4000 ppid=200 cmd="python train.py" env="RANK=0 WORLD_SIZE=1 LOCAL_WORLD_SIZE=1" threads=2 tasks=4000:S:sk_wait_data,4001:S:hrtimer_nanosleep
on 0 4000 vram=30
)"},
    {"defunct-holders-adopted", R"(
title A trainer was killed and is a zombie; the kernel gave its workers to init, and they keep the device
window 30
expect R3 warning 4000
gpu 0 power=62
gpu 1 power=62
proc 300 name=python cmd="python sweep.py"
proc 4000 ppid=300 uid=1007 state=Z
proc 4011 ppid=1 group=4000 uid=1007 name=pt_data_worker open=0,1
proc 4012 ppid=1 group=4000 uid=1007 name=pt_data_worker open=0,1
proc 5000 ppid=300 uid=1008 group=300 name=python open=0
on 0 4000 vram=20
on 1 4000 vram=20
)"},
    {"defunct-none-freed", R"(
title A zombie is still listed, but has no memory any more
window 30
expect none
gpu 0 power=62
proc 300 name=launcher
proc 4000 ppid=300 state=Z
on 0 4000 vram=0
)"},
    {"orphan-holders-among-services", R"(
title Of those that have the device open, two hold a dead rank's memory: services and a healthy job's workers do not
window 30
expect R4 warning 4000
gpu 0 power=150 pcie=100
gpu 1 power=300 pcie=500
proc 1 ppid=0 name=systemd uid=0
proc 70 name=slurmd uid=0 cgroup=/system.slice/slurmd.service open=0,1
proc 71 name=telegraf uid=990 group=70 cgroup=/system.slice/telegraf.service open=0,1
proc 72 name=node-agent uid=0 open=0,1
proc 100 name=bash
proc 6000 ppid=100 cmd="python train.py" state=R cpu=1 io=1e6 open=0,1
proc 6001 ppid=6000 group=6000 name=pt_data_worker cpu=0.5 open=0,1
proc 4011 group=4000 name=pt_data_worker open=0
proc 4012 group=4000 name=pt_data_worker open=0
on 0 4000 vram=30
on 1 6000 vram=50 sm=90 mem=40
)"},
    {"unattributed-leak-among-services", R"(
title Nobody but services has the device open, and 20 GiB are nobody's
window 30
expect R9 warning
gpu 0 power=62 extra=20
proc 70 name=slurmd uid=0 cgroup=/system.slice/slurmd.service open=0
proc 100 name=bash
)"},
    {"orphan-number-used-again", R"(
title A process ended, the driver still lists it, and its number is cron's by now
window 600
expect R4 warning 4000
gpu 0 power=62
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" state=R cpu=1
on 0 4000 vram=30 sm=60
at 100 proc 4000 ended=1
at 100 on 0 4000 sm=0
at 130 proc 4000 ended=0 name=cron uid=0 ppid=1 state=S cpu=0 age=-130
)"},
    {"orphan-none-number-used-rightly", R"(
title A process has the number of one that ended, and works on the same GPU
window 600
expect none
gpu 0 power=300 pcie=300
proc 100 name=bash
proc 4000 ppid=100 cmd="python a.py" state=R cpu=1
on 0 4000 vram=30 sm=60 mem=20
at 100 proc 4000 age=-100 cmd="python b.py"
)"},
    {"idle-none-served-by-mps", R"(
title Clients of MPS, whose server is seen at work in their stead
window 4500
expect none
gpu 0 power=250 pcie=100
proc 400 name=nvidia-cuda-mps uid=0
proc 4000 cmd="python infer.py" wchan=futex_wait_queue
proc 4001 cmd="python infer.py" wchan=futex_wait_queue
on 0 400 vram=0.1 sm=70 mem=20
on 0 4000 vram=20 uses=M
on 0 4001 vram=20
)"},
    {"idle-clients-of-mps", R"(
title A client of MPS whose server has had nothing to do for more than an hour
window 4500
expect R8 warning 4000
gpu 0 power=62
proc 400 name=nvidia-cuda-mps uid=0
proc 4000 cmd="python infer.py" wchan=futex_wait_queue
on 0 400 vram=0.1
on 0 4000 vram=20 uses=M
)"},
    {"idle-none-not-told-between", R"(
title Half an hour of rest, a quarter of which nothing is told, and half an hour of rest
window 4500
expect none
gpu 0 power=62
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" wchan=futex_wait_queue
on 0 4000 vram=30
at 1800 gpu 0 activity=999
at 2700 gpu 0 activity=0
)"},
    {"idle-untold-for-a-moment", R"(
title More than an hour of rest, of which nothing is told of a moment
window 4500
expect R8 warning 4000
gpu 0 power=62
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" wchan=futex_wait_queue
on 0 4000 vram=30
at 1800 gpu 0 activity=999
at 1850 gpu 0 activity=0
)"},
    {"idle-none-draws", R"(
title A display server and a desktop, each by a name that nobody has to know
window 4500
expect none
gpu 0 total=24 power=20
proc 900 name=X uid=0
proc 901 name=some-desktop
on 0 900 vram=3 uses=G
on 0 901 vram=3 uses=G
)"},
    {"idle-draws-and-computes", R"(
title A renderer that computes as well has rested for more than an hour
window 4500
expect R8 warning 900
gpu 0 total=24 power=20
proc 100 name=bash
proc 900 ppid=100 name=blender
on 0 900 vram=8 uses=CG
)"},
    {"idle-none-reads", R"(
title The GPU rests while data are copied, with little CPU time
window 4500
expect none
gpu 0 power=62
proc 100 name=bash
proc 4000 ppid=100 cmd="python prepare.py" wchan=pipe_read cpu=0.03 io=5e7
on 0 4000 vram=30
)"},
    {"fault-none-xid-not-known", R"(
title An Xid that is not in the table: a note, which does not blame an application
window 10
expect none
gpu 0 power=62 log=109@60
)"},
    {"spinning-none-start", R"(
title A job makes its kernels ready in its first minutes, and spins meanwhile
window 420
expect none
gpu 0 power=92
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" cpu=1 age=60
on 0 4000 vram=40 sm=100
)"},
    {"fault-none-row-remapped", R"(
title A row was remapped two minutes ago, and none waits for a reset
window 10
expect none
gpu 0 power=62 pending=0 log=63@120
)"},
    {"fault-row-waits", R"(
title A row was remapped two minutes ago, and waits for a reset
window 10
expect R1 warning
gpu 0 power=62 pending=1 log=63@120
)"},
    {"fault-memory-call", R"(
title The question for memory alone is answered with "needs a reset"
window 10
expect R1 critical
gpu 0 power=62 code.memory_used_bytes=16
)"},
};

}  // namespace

std::vector<Situation> field_situations() { return {std::begin(kAll), std::end(kAll)}; }

}  // namespace drover::inline v1::health
