// SPDX-License-Identifier: Apache-2.0
#include "drover/health/scenario/situations.h"

namespace drover::inline v1::health {
namespace {

constexpr Situation kAll[] = {
    {"unattributed-leak", R"(
title Ten GiB are used, and nobody is listed for them
window 10
expect R9 warning
gpu 0 power=62 extra=10
proc 100 name=bash
)"},
    {"unattributed-holders", R"(
title Data workers hold memory of a job that is gone, and are not listed
window 10
expect R9 warning
gpu 0 power=62 extra=30
proc 5001 ppid=1 name=pt_data_worker cmd="python train.py" open=0
proc 5002 ppid=1 name=pt_data_worker cmd="python train.py" open=0
)"},
    {"unattributed-beside-a-job", R"(
title A job works with 30 GiB, and 20 more belong to nobody
window 10
expect R9 warning
gpu 0 power=300 pcie=200 extra=20
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" state=R cpu=1 io=1e6 open=0
on 0 4000 vram=30 sm=90 mem=50
)"},
    {"unattributed-none-not-told", R"(
title The driver does not tell a process's memory (Windows' WDDM, WSL)
window 10
expect none
gpu 0 power=250 pcie=200 extra=20
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" state=R cpu=1 io=1e6
on 0 4000 vram=na sm=90 mem=50
)"},
    {"unattributed-none-mps", R"(
title Clients of MPS share memory that is not listed
window 10
expect none
gpu 0 power=250 pcie=200 extra=6
proc 900 ppid=1 name=nvidia-cuda-mps uid=0
proc 4000 ppid=100 cmd="python train.py" state=R cpu=1 io=1e6
on 0 4000 vram=10 sm=90 mem=50 uses=M
)"},
    {"unattributed-none-small", R"(
title Half a GiB of the driver's own
window 10
expect none
gpu 0 power=62 extra=0.6
proc 100 name=bash
)"},
    {"unattributed-none-old-driver", R"(
title An old driver counts what it keeps for itself as used
window 10
expect none
gpu 0 power=62 extra=5 v1=1
proc 100 name=bash
)"},
    {"unattributed-none-one-look", R"(
title A single look between the end of a process and the freeing of its memory
window 0
expect none
gpu 0 power=62 extra=10
proc 100 name=bash
)"},
    {"unattributed-none-container", R"(
title In a container, others' processes are not listed at all
window 10
container
expect none
gpu 0 power=62 extra=20
proc 1 name=bash ppid=0
)"},
    {"unknown-mig", R"(
title MIG is on: nothing is told about utilisation
window 900
expect G0 unknown
gpu 0 power=98 mig=1 activity=3 code.util_cores_percent=3 code.util_memory_percent=3
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py"
on 0 4000 vram=30
)"},
    {"unknown-mig-shared-part", R"(
title MIG with counters: two programs share a part that works, and nobody tells which of them does
window 4200
expect G0 unknown
gpu 0 power=200 mig=1 instances=1:0:40 gpm=1 code.util_cores_percent=3
proc 100 name=bash
proc 4000 ppid=100 cmd="python one.py" wchan=do_select
proc 4001 ppid=100 cmd="python two.py" wchan=do_select
on 0 4000 vram=20 gi=1 sm=80
on 0 4001 vram=10 gi=1
)"},
    {"unknown-driver-560", R"(
title Driver 560 in a container: one list has inner pids, the other outer ones
window 900
container
expect G0 unknown
gpu 0 power=250 pcie=100 foreign=1
proc 1 name=bash ppid=0
proc 4000 ppid=1 cmd="python train.py" io=1e6
on 0 4000 vram=30 sm=90 mem=40
)"},
    {"unknown-no-activity", R"(
title The driver does not tell what processes do
window 900
expect G0 unknown
gpu 0 power=62 activity=3
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py"
on 0 4000 vram=30
)"},
    {"unknown-needs-root", R"(
title The list of processes needs root
window 10
expect G0 unknown
gpu 0 power=62 list=4 extra=30
proc 100 name=bash
)"},
};

}  // namespace

std::vector<Situation> memory_situations() { return {std::begin(kAll), std::end(kAll)}; }

}  // namespace drover::inline v1::health
