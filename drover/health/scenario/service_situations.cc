// SPDX-License-Identifier: Apache-2.0
#include "drover/health/scenario/situations.h"

namespace drover::inline v1::health {
namespace {

constexpr Situation kAll[] = {
    {"idle-interactive-slurm", R"(
title A script is forgotten in an interactive Slurm job; its owner compiles in the same shell, on no GPU
window 11000
expect R8 warning 4000
gpu 0 power=62
proc 50 name=slurmd uid=0 cmd="/usr/sbin/slurmd -D"
proc 51 ppid=1 name=slurmstepd uid=0 cmd="slurmstepd: [91.0]"
proc 60 ppid=51 name=bash cmd="/bin/bash -l" env="SLURM_JOB_ID=91 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1"
proc 4000 ppid=60 cmd="python first_try.py" wchan=futex_wait_queue env="SLURM_JOB_ID=91 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1"
proc 4100 ppid=60 name=ninja cmd="ninja -C build" cpu=6 env="SLURM_JOB_ID=91 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1"
on 0 4000 vram=24
)"},
    {"idle-container-with-shell", R"(
title A script is forgotten in a container for development; its owner has an editor in a shell of docker exec there
window 11000
expect R8 warning 4000
gpu 0 power=62
proc 80 name=containerd-shim uid=0
proc 90 ppid=80 uid=0 name=tail cmd="tail -f /dev/null" inner=1 cgroup=/system.slice/docker-5d41402abc4b.scope
proc 95 ppid=80 uid=0 name=bash cmd=bash inner=31 cgroup=/system.slice/docker-5d41402abc4b.scope
proc 96 ppid=95 uid=0 name=nano cmd="nano model.py" inner=44 cgroup=/system.slice/docker-5d41402abc4b.scope
proc 4000 ppid=90 uid=0 cmd="python first_try.py" wchan=futex_wait_queue inner=70 cgroup=/system.slice/docker-5d41402abc4b.scope
on 0 4000 vram=24
)"},
    {"idle-container-looked-into", R"(
title The first process of a container is idle; somebody has a shell there to look at it, which ends with it anyway
window 11000
expect R8 warning 4000
gpu 0 power=62
proc 80 name=containerd-shim uid=0
proc 95 ppid=80 uid=0 name=bash cmd=bash inner=31 cgroup=/system.slice/docker-5d41402abc4b.scope
proc 4000 ppid=80 uid=0 cmd="python fit.py" wchan=futex_wait_queue inner=1 cgroup=/system.slice/docker-5d41402abc4b.scope
on 0 4000 vram=24
)"},
    {"defunct-below-first-of-container", R"(
title A zombie with memory whose parent does no more, but is the first process of its container
window 60
expect R3 warning 4000
gpu 0 power=62
proc 80 name=containerd-shim uid=0
proc 90 ppid=80 cmd="python start.py" inner=1 wchan=do_wait cgroup=/kubepods.slice/kubepods-podc4ca_42.slice/cri-containerd-9f86.scope
proc 4000 ppid=90 state=Z cgroup=/kubepods.slice/kubepods-podc4ca_42.slice/cri-containerd-9f86.scope
on 0 4000 vram=24
)"},
};

}  // namespace

std::vector<Situation> service_situations() { return {std::begin(kAll), std::end(kAll)}; }

}  // namespace drover::inline v1::health
