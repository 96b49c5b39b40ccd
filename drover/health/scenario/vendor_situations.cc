// SPDX-License-Identifier: Apache-2.0
#include "drover/health/scenario/situations.h"

namespace drover::inline v1::health {
namespace {

constexpr Situation kAll[] = {
    {"idle-amd", R"(
title AMD: a script forgot to end, 30 GiB held for 70 minutes, nothing computed
window 4200
expect R8 warning 4000
gpu 0 vendor=amd power=45
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" wchan=do_select
on 0 4000 vram=30 kfd=1
)"},
    {"idle-intel", R"(
title Intel Arc: 10 GiB held for 70 minutes, nothing computed
window 4200
expect R8 warning 4000
gpu 0 vendor=intel total=16 power=30
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" wchan=do_select
on 0 4000 vram=10
)"},
    {"idle-amd-beside-a-display", R"(
title AMD: a desktop draws on the GPU, and a script has held half of it for 70 minutes
window 4200
expect R8 warning 4000
gpu 0 vendor=amd name="Radeon RX 7900 XTX" total=24 power=45
proc 100 name=bash
proc 900 ppid=1 name=gnome-shell state=R cpu=0.1
proc 4000 ppid=100 cmd="python train.py" wchan=do_select
on 0 900 vram=0.3 sm=4 uses=G
on 0 4000 vram=12 uses=G
)"},
    {"blocked-amd", R"(
title AMD: one rank of two has stopped, and nothing moves for 12 minutes
window 720
expect R7 warning 4000
expect R7 warning 4001
gpu 0 vendor=amd power=90
gpu 1 vendor=amd power=90
proc 100 name=torchrun
proc 4000 ppid=100 cmd="python train.py" wchan=futex_wait env="RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2"
proc 4001 ppid=100 cmd="python train.py" wchan=futex_wait env="RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2"
on 0 4000 vram=30 kfd=1
on 1 4001 vram=30 kfd=1
)"},
    {"stuck-amd", R"(
title AMD: a thread has waited for its GPU in the kernel for 90 s
window 90
expect R2 critical 4000
gpu 0 vendor=amd power=90
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" state=D wchan=amdgpu_fence_wait_empty
on 0 4000 vram=30 kfd=1
)"},
    {"defunct-amd", R"(
title AMD: a zombie still holds 30 GiB of compute memory
window 20
expect R3 warning 4000
gpu 0 vendor=amd power=45
proc 100 name=launcher
proc 4000 ppid=100 state=Z
on 0 4000 vram=30 kfd=1
)"},
    {"orphan-amd", R"(
title AMD: the compute driver lists a process that is not there
window 10
expect R4 warning 4000
gpu 0 vendor=amd power=45
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" ended=1
on 0 4000 vram=30 kfd=1
)"},
    {"orphan-amd-worker", R"(
title AMD: a data worker keeps the device open for a process that is gone
window 10
expect R4 warning 4000
gpu 0 vendor=amd power=45
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" ended=1
proc 5001 ppid=1 name=pt_data_worker cmd="python train.py" open=0
on 0 4000 vram=30 kfd=1
)"},
    {"unknown-amd-shared", R"(
title AMD: two programs compute, and nobody tells which of them does
window 4200
expect G0 unknown
gpu 0 vendor=amd power=250 util=90
proc 100 name=bash
proc 4000 ppid=100 cmd="python one.py" wchan=do_select
proc 4001 ppid=100 cmd="python two.py" wchan=do_select
on 0 4000 vram=30 kfd=1
on 0 4001 vram=20 kfd=1
)"},
    {"idle-none-amd-works", R"(
title AMD: no engine counts the time of compute queues, but the GPU is busy, and with nobody else
window 4200
expect none
gpu 0 vendor=amd power=250
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" wchan=do_select
on 0 4000 vram=30 sm=95 kfd=1
)"},
    {"idle-none-amd-one-of-two-seen", R"(
title AMD: of two programs that compute one is seen at it; the other cannot be judged
window 4200
expect none
gpu 0 vendor=amd power=250 util=90
proc 100 name=bash
proc 4000 ppid=100 cmd="python one.py" wchan=do_select
proc 4001 ppid=100 cmd="python two.py" wchan=do_select
on 0 4000 vram=30 kfd=1 occupancy=80
on 0 4001 vram=20 kfd=1 occupancy=0
)"},
    {"idle-none-intel-shared-memory", R"(
title Intel's integrated GPU: a browser that rests holds memory of the machine, not of a GPU
window 4200
expect none
gpu 0 vendor=intel integrated=1 power=5
proc 100 name=gnome-session-b
proc 4000 ppid=100 name=firefox cmd=firefox wchan=do_epoll_wait
on 0 4000 vram=3 uses=G
)"},
    {"idle-none-asleep", R"(
title A GPU that is powered down is left so, and nothing is said about it
window 4200
expect none
gpu 0 vendor=amd runtime=suspended
proc 100 name=bash
proc 4000 ppid=100 cmd="python -i" wchan=do_select
on 0 4000 vram=3
)"},
    {"orphan-none-amd-container", R"(
title AMD, in a container: the compute driver lists the machine's pids, which mean nothing here
window 30
container
expect none
gpu 0 vendor=amd power=250 extra=1
proc 1 ppid=0 name=tini
proc 40 ppid=1 cmd="python train.py" state=R cpu=1
on 0 40 vram=20 sm=80 uses=G
on 0 700123 vram=0 kfd=1 foreign=1
)"},
    {"unattributed-none-amd", R"(
title AMD: memory that the driver keeps for itself is not told apart, so it is a note at most
window 10
expect none
gpu 0 vendor=amd power=45 extra=6
proc 100 name=bash
)"},
    {"stuck-none-amd-short", R"(
title AMD: a thread waits in the driver for a few seconds while a GPU starts
window 90
expect none
gpu 0 vendor=amd power=90
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" state=D wchan=amdgpu_ring_test_helper cpu=0.2
on 0 4000 vram=30 kfd=1
at 8 proc 4000 state=S wchan=do_select
)"},
    {"idle-none-mixed", R"(
title One NVIDIA GPU and one AMD GPU, both at work
window 600
expect none
gpu 0 power=300 pcie=200
gpu 1 vendor=amd power=250
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" state=R cpu=1 io=1e6
proc 4001 ppid=100 cmd="python other.py" state=R cpu=1 io=1e6
on 0 4000 vram=30 sm=90 mem=50
on 1 4001 vram=30 sm=70
)"},
};

}  // namespace

std::vector<Situation> vendor_situations() { return {std::begin(kAll), std::end(kAll)}; }

}  // namespace drover::inline v1::health
