// SPDX-License-Identifier: Apache-2.0
#include "drover/health/scenario/situations.h"

namespace drover::inline v1::health {
namespace {

constexpr Situation kAll[] = {
    {"idle-job", R"(
title A script forgot to end: 30 GiB held for 70 minutes, nothing computed
window 4200
expect R8 warning 4000
gpu 0 power=62
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" wchan=do_select
on 0 4000 vram=30
)"},
    {"idle-mig-without-counters", R"(
title A script has rested for 18 hours on a part of a GPU of which nothing tells its use; another part is at work
window 64800
expect R8 warning 2500
expect G0 unknown
gpu 0 power=180 mig=1 instances=1:0:20,2:0:20
proc 90 name=bash
proc 2500 ppid=90 name=python cmd="python embed.py --shard 3" wchan=futex_wait_queue cpu=0.001 io=0
proc 2700 ppid=90 name=python cmd="python train.py" state=R cpu=1 io=1e6
on 0 2500 vram=17 gi=1 ci=0
on 0 2700 vram=15 gi=2 ci=0
)"},
    {"idle-none-mig-without-counters", R"(
title A notebook has rested for some hours on a part of a GPU of which nothing tells its use
window 14400
expect G0 unknown
gpu 0 power=180 mig=1 instances=1:0:20,2:0:20
proc 90 name=jupyter-lab cmd="python /usr/bin/jupyter-lab"
proc 2500 ppid=90 name=python cmd="python -m ipykernel_launcher -f k.json" cpu=0.001 io=0
on 0 2500 vram=17 gi=1 ci=0
)"},
    {"idle-mig", R"(
title MIG with counters: one part has held 30 GiB for 70 minutes, the other works
window 4200
expect R8 warning 4000
gpu 0 power=200 mig=1 instances=1:0:40,2:0:40 gpm=1
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" wchan=do_select
proc 4001 ppid=100 cmd="python other.py" state=R cpu=1 io=1e6
on 0 4000 vram=30 gi=1
on 0 4001 vram=30 gi=2 sm=80
)"},
    {"idle-none-mig-works", R"(
title MIG with counters: both parts work, though their processes seem to sleep
window 4200
expect none
gpu 0 power=200 mig=1 instances=1:0:40,2:0:40 gpm=1
proc 100 name=bash
proc 4000 ppid=100 cmd="python one.py" wchan=do_select
proc 4001 ppid=100 cmd="python two.py" wchan=do_select
on 0 4000 vram=30 gi=1 sm=3
on 0 4001 vram=30 gi=2 sm=80
)"},
    {"idle-two-gpus", R"(
title One process holds two GPUs and uses neither, for two hours and more
window 7800
expect R8 warning 4000
gpu 0 power=62
gpu 1 power=61
proc 100 name=tmux
proc 4000 ppid=100 cmd="python -i explore.py"
on 0 4000 vram=30
on 1 4000 vram=20
)"},
    {"idle-stopped", R"(
title Stopped with ^Z over an hour ago, and forgotten
window 4200
expect R8 warning 4000
gpu 0 power=62
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" state=T
on 0 4000 vram=30
)"},
    {"idle-notebook-overnight", R"(
title A notebook kernel has held 20 GiB since yesterday
window 46000
expect R8 warning 4000
gpu 0 power=62
proc 100 name=jupyter-lab cmd="jupyter-lab --no-browser"
proc 4000 ppid=100 cmd="python -m ipykernel_launcher -f kernel.json" listen=1
on 0 4000 vram=20
)"},
    {"idle-after-work", R"(
title Training ended an hour and a quarter ago; the process did not
window 5000
expect R8 warning 4000
gpu 0 power=320 pcie=400
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" state=R cpu=1 io=1e6
on 0 4000 vram=30 sm=95 mem=60
at 500 gpu 0 power=62 pcie=0
at 500 proc 4000 state=S cpu=0 io=0
at 500 on 0 4000 sm=0 mem=0
)"},
    {"idle-none-notebook", R"(
title A notebook, untouched for two hours
window 7200
expect none
gpu 0 power=62
proc 100 name=jupyter-lab cmd="jupyter-lab --no-browser"
proc 4000 ppid=100 cmd="python -m ipykernel_launcher -f kernel.json" listen=1
on 0 4000 vram=20
)"},
    {"idle-none-server", R"(
title A model server without requests, all morning
window 18000
expect none
gpu 0 power=62
proc 4000 ppid=1 name=tritonserver cmd="tritonserver --model-repository=/models" listen=1 cgroup=/system.slice/triton.service
on 0 4000 vram=60
)"},
    {"idle-none-own-server", R"(
title A home-made server that only its listening port gives away
window 7200
expect none
gpu 0 power=62
proc 100 name=bash
proc 4000 ppid=100 cmd="python serve.py" listen=1
on 0 4000 vram=60
)"},
    {"idle-none-other-gpu", R"(
title A process holds two GPUs and works on one
window 5000
expect none
gpu 0 power=62
gpu 1 power=300 pcie=200
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" state=R cpu=1 io=1e6
on 0 4000 vram=30
on 1 4000 vram=30 sm=90 mem=50
)"},
    {"idle-none-cpu-phase", R"(
title Compiling for the GPU, on the CPU
window 5000
expect none
gpu 0 power=62
proc 100 name=bash
proc 4000 ppid=100 cmd="python compile.py" state=R cpu=1
on 0 4000 vram=30
)"},
    {"idle-none-display", R"(
title A display server holds memory all day
window 5000
expect none
gpu 0 power=30 total=24 limit=350
proc 900 ppid=1 name=Xorg cmd="/usr/lib/xorg/Xorg :0" uid=0
on 0 900 vram=3 uses=G
)"},
    {"idle-none-mps-server", R"(
title The MPS server holds memory for its clients
window 5000
expect none
gpu 0 power=62
proc 900 ppid=1 name=nvidia-cuda-mps cmd="nvidia-cuda-mps-server" uid=0
on 0 900 vram=5 uses=M
)"},
    {"idle-none-bare-context", R"(
title A context without data, half a GiB
window 5000
expect none
gpu 0 power=62
proc 100 name=bash
proc 4000 ppid=100 cmd="python monitor.py"
on 0 4000 vram=0.5
)"},
    {"idle-none-half-an-hour", R"(
title Idle for half an hour: people have lunch
window 1800
expect none
gpu 0 power=62
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py"
on 0 4000 vram=30
)"},
    {"idle-none-now-and-then", R"(
title Work every half hour
window 7200
expect none
gpu 0 power=62
proc 100 name=bash
proc 4000 ppid=100 cmd="python poll.py"
on 0 4000 vram=30
at 1800 on 0 4000 sm=40 mem=20
at 1900 on 0 4000 sm=0 mem=0
at 3600 on 0 4000 sm=40 mem=20
at 3700 on 0 4000 sm=0 mem=0
at 5400 on 0 4000 sm=40 mem=20
at 5500 on 0 4000 sm=0 mem=0
)"},
    {"idle-none-one-look", R"(
title A single look at an idle process
window 0
expect none
gpu 0 power=62
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py"
on 0 4000 vram=30
)"},
    {"idle-none-diagnosis", R"(
title The vendor's diagnosis holds all memory
window 5000
expect none
gpu 0 power=62
proc 900 ppid=1 name=nvvs cmd="/usr/share/nvidia-validation-suite/nvvs" uid=0
on 0 900 vram=70
)"},
    {"idle-none-shared", R"(
title Two users share a GPU: one works, the other rests for ten minutes
window 600
expect none
gpu 0 power=250 pcie=200
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" state=R cpu=1 io=1e6 uid=1001
proc 5000 ppid=100 cmd="python other.py" uid=1002
on 0 4000 vram=30 sm=80 mem=40
on 0 5000 vram=20
)"},
    {"idle-none-checkpointed", R"(
title A process checkpointed off the GPU holds nothing there
window 5000
expect none
gpu 0 power=62
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py"
on 0 4000 vram=0
)"},
};

}  // namespace

std::vector<Situation> idle_situations() { return {std::begin(kAll), std::end(kAll)}; }

}  // namespace drover::inline v1::health
