// SPDX-License-Identifier: Apache-2.0
#include "drover/health/scenario/situations.h"

namespace drover::inline v1::health {
namespace {

constexpr Situation kAll[] = {
    {"gpu-lost", R"(
title GPU 1 of 2 has fallen off the bus; a job works on the other
window 10
expect R1 critical
gpu 0 power=310
gpu 1 lost=1
proc 100 name=bash cpu=0
proc 4000 ppid=100 cmd="python train.py" state=R cpu=1 io=2e6
on 0 4000 vram=40 sm=97 mem=60
)"},
    {"gpu-needs-reset", R"(
title The driver says that a GPU needs a reset
window 10
expect R1 critical
gpu 0 code.power_mw=16 code.util_cores_percent=16
)"},
    {"recovery-action", R"(
title The driver asks for a reset of the GPU (field 230)
window 10
expect R1 critical
gpu 0 recovery=1
)"},
    {"recovery-action-unknown", R"(
title A recovery action with a number newer than this program
window 10
expect R1 critical
gpu 0 recovery=9
)"},
    {"xid-79", R"(
title Xid 79 arrives while watching: fallen off the bus
window 10
expect R1 critical
gpu 0
at 5 gpu 0 xid=79
)"},
    {"remap-failed", R"(
title Remapping a memory row has failed
window 10
expect R1 critical
gpu 0 failed=1
)"},
    {"remap-pending", R"(
title A memory row waits to be remapped: a warning, not critical
window 10
expect R1 warning
gpu 0 pending=1
)"},
    {"driver-hangs", R"(
title A call to the driver does not come back for one GPU of two
window 10
expect R1 critical
gpu 0
gpu 1
at 4 gpu 1 stuck=nvmlDeviceGetPowerUsage
)"},
    {"fault-logged", R"(
title The kernel's log has a double-bit error of five minutes ago
window 0
expect R1 critical
gpu 0 power=62 log=48@300
proc 100 name=bash
)"},
    {"fault-logged-row", R"(
title The kernel's log says that a row was remapped ten minutes ago, and again
window 10
expect R1 warning
gpu 0 power=62 log=63@900,63@600
proc 100 name=bash
)"},
    {"fault-none-logged-long-ago", R"(
title A double-bit error of ten hours ago is a note
window 0
expect none
gpu 0 power=62 log=48@36000
proc 100 name=bash
)"},
    {"fault-none-recovered-twice", R"(
title The recovery action changed twice within the hour, and by now the driver asks for none
window 10
expect none
gpu 0 power=62 recovery=0 log=154@2000,154@1700
)"},
    {"fault-none-logged-application", R"(
title An application's page fault of a minute ago, and one of yesterday
window 0
expect none
gpu 0 power=62 log=31@90000,31@60
proc 100 name=bash
)"},
    {"fault-none-metrics-missing", R"(
title An old card that knows neither power nor clocks nor ECC
window 10
expect none
gpu 0 code.power_mw=3 code.energy_mj=3 code.ecc_uncorrected=3 code.clock_reasons=3 code.recovery_action=3
)"},
    {"fault-none-odd-error", R"(
title One question ends with an unknown error (999), all else is well
window 10
expect none
gpu 0 code.clock_memory_mhz=999 code.temperature_c=999
)"},
    {"fault-none-hot", R"(
title Software keeps a busy GPU below its greatest heat: seen, no fault
window 900
expect none
gpu 0 power=130 temp=87 reasons=0x20
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" state=R cpu=1
on 0 4000 vram=40 sm=99 mem=3
)"},
    {"fault-heat", R"(
title Hardware brakes a GPU that has worked at 96 degrees for a quarter of an hour
window 900
expect R1 warning
gpu 0 power=95 temp=96 clock=300 reasons=0x48
proc 100 name=bash
proc 4000 ppid=100 cmd="gmx mdrun -deffnm prod" state=R cpu=8
on 0 4000 vram=1 sm=99 mem=4
)"},
    {"fault-power-brake", R"(
title The power supply brakes a GPU that works
window 900
expect R1 warning
gpu 0 power=110 temp=50 clock=500 reasons=0x88
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" state=R cpu=1
on 0 4000 vram=40 sm=99 mem=20
)"},
    {"fault-none-power-brake-on-battery", R"(
title The power brake of a laptop on its battery, whose desktop draws a little
window 900
expect none
gpu 0 power=12 temp=45 clock=300 reasons=0x88
proc 4000 ppid=1 name=Xorg cmd="/usr/lib/xorg/Xorg :0" cpu=0.02
on 0 4000 vram=0.3 sm=3 mem=1
)"},
    {"fault-none-heat-for-a-moment", R"(
title Hardware brakes a GPU for two minutes, as it does when the load jumps
window 900
expect none
gpu 0 power=300 temp=84 reasons=0
proc 100 name=bash
proc 4000 ppid=100 cmd="python train.py" state=R cpu=1
on 0 4000 vram=40 sm=99 mem=30
at 300 gpu 0 temp=92 reasons=0x40
at 420 gpu 0 temp=84 reasons=0
)"},
    {"fault-none-application-xid", R"(
title Xid 13 is an application's own mistake
window 10
expect none
gpu 0
at 3 gpu 0 xid=13
)"},
    {"fault-none-no-permission", R"(
title Some questions need root
window 10
expect none
gpu 0 code.ecc_uncorrected=4 code.power_limit_mw=4
)"},
    {"healthy-node", R"(
title Eight ranks train; all GPUs draw power and move data
window 60
expect none
gpu 0 power=380 pcie=900 nvlink=40000
gpu 1 power=375 pcie=900 nvlink=40000
gpu 2 power=382 pcie=900 nvlink=40000
gpu 3 power=377 pcie=900 nvlink=40000
proc 90 name=slurmstepd ppid=1 cmd="slurmstepd: [77.0]" uid=0
proc 100 ppid=90 name=torchrun cmd="torchrun --nproc-per-node 4 train.py"
proc 4000 ppid=100 cmd="python train.py" state=R cpu=1.2 io=5e6 env="RANK=0 WORLD_SIZE=4 LOCAL_WORLD_SIZE=4 SLURM_JOB_ID=77"
proc 4001 ppid=100 cmd="python train.py" state=R cpu=1.2 io=5e6 env="RANK=1 WORLD_SIZE=4 LOCAL_WORLD_SIZE=4 SLURM_JOB_ID=77"
proc 4002 ppid=100 cmd="python train.py" state=R cpu=1.2 io=5e6 env="RANK=2 WORLD_SIZE=4 LOCAL_WORLD_SIZE=4 SLURM_JOB_ID=77"
proc 4003 ppid=100 cmd="python train.py" state=R cpu=1.2 io=5e6 env="RANK=3 WORLD_SIZE=4 LOCAL_WORLD_SIZE=4 SLURM_JOB_ID=77"
on 0 4000 vram=60 sm=97 mem=55
on 1 4001 vram=60 sm=96 mem=54
on 2 4002 vram=60 sm=98 mem=57
on 3 4003 vram=60 sm=97 mem=55
)"},
    {"no-gpu", R"(
title A machine without a GPU
window 0
expect none
proc 100 name=bash
proc 4000 ppid=100 name=simulation cmd="./simulation" state=R cpu=3
)"},
};

}  // namespace

std::vector<Situation> fault_situations() { return {std::begin(kAll), std::end(kAll)}; }

}  // namespace drover::inline v1::health
