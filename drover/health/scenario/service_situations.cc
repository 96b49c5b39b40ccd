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
    {"idle-vllm-batch", R"(
title A script that serves nobody has an engine of vLLM, and both have slept for two hours
window 8000
expect R8 warning 4001
gpu 0 power=70
proc 90 name=bash
proc 4000 ppid=90 cmd="python score_answers.py --model qwen" wchan=futex_wait_queue
proc 4001 ppid=4000 name=VLLM::EngineCor cmd=VLLM::EngineCore wchan=do_epoll_wait
on 0 4001 vram=70
)"},
    {"spinning-vllm-batch", R"(
title The workers of such an engine spin in a collective for half an hour
window 1800
expect R6 warning 4002
expect R6 warning 4003
gpu 0 power=95 nvlink=0
gpu 1 power=95 nvlink=0
proc 90 name=bash
proc 4000 ppid=90 cmd="python score_answers.py --model qwen" wchan=futex_wait_queue
proc 4001 ppid=4000 name=VLLM::EngineCor cmd=VLLM::EngineCore wchan=do_epoll_wait
proc 4002 ppid=4001 name=VLLM::Worker_TP cmd=VLLM::Worker_TP0 state=R cpu=1 io=0
proc 4003 ppid=4001 name=VLLM::Worker_TP cmd=VLLM::Worker_TP1 state=R cpu=1 io=0
on 0 4002 vram=70 sm=100 mem=0
on 1 4003 vram=70 sm=100 mem=0
)"},
    {"idle-unit-of-a-person", R"(
title A script that a person has left in a system unit by systemd-run; the unit's name makes no service of it
window 8000
expect R8 warning 4000
gpu 0 power=62
proc 4000 ppid=1 uid=1000 session=4000 cmd="python fit.py" wchan=futex_wait_queue cgroup=/system.slice/run-r81f.service
on 0 4000 vram=20
)"},
    {"idle-below-service", R"(
title A system unit of a runner of jobs starts a script in a session of its own, which was forgotten
window 8000
expect R8 warning 4000
gpu 0 power=62
proc 80 ppid=1 uid=995 session=80 name=runner cmd="/opt/runner/runner start" cgroup=/system.slice/runner.service
proc 90 ppid=80 uid=995 session=90 name=bash cmd="bash /opt/runner/work/17/step.sh" cgroup=/system.slice/runner.service
proc 4000 ppid=90 uid=995 session=90 cmd="python fit.py" wchan=futex_wait_queue cgroup=/system.slice/runner.service
on 0 4000 vram=20
)"},
    {"idle-debugpy-listens", R"(
title A program waits for its debugger by debugpy, which nobody has attached for two days
window 172800
expect R8 warning 4000
gpu 0 power=62
proc 90 name=bash
proc 4000 ppid=90 cmd="python -m debugpy --listen 5678 --wait-for-client fit.py" listen=5678 wchan=futex_wait_queue
on 0 4000 vram=10
)"},
    {"spinning-task-of-celery", R"(
title Airflow with Celery: the ranks of a task's torchrun spin for half an hour
window 1800
expect R6 warning 4000
expect R6 warning 4001
gpu 0 power=95 nvlink=0
gpu 1 power=95 nvlink=0
proc 80 name=celery cmd="/srv/airflow/bin/python /srv/airflow/bin/airflow celery worker"
proc 81 ppid=80 name="[celeryd: celery" cmd="[celeryd: celery@gpu7:ForkPoolWorker-2]"
proc 90 ppid=81 name=bash cmd="bash -c torchrun --nproc-per-node 2 fit.py"
proc 100 ppid=90 name=torchrun cmd="python /usr/bin/torchrun --nproc-per-node 2 fit.py"
proc 4000 ppid=100 cmd="python fit.py" state=R cpu=1 io=0 env="RANK=0 LOCAL_RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500"
proc 4001 ppid=100 cmd="python fit.py" state=R cpu=1 io=0 env="RANK=1 LOCAL_RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500"
on 0 4000 vram=20 sm=100 mem=0
on 1 4001 vram=20 sm=100 mem=0
)"},
    {"idle-task-of-airflow", R"(
title A task of Airflow, which a worker of Celery has started, sleeps for two hours
window 8000
expect R8 warning 4000
gpu 0 power=62
proc 80 name=celery cmd="/srv/airflow/bin/python /srv/airflow/bin/airflow celery worker"
proc 82 ppid=80 name=airflow cmd="airflow task runner: fit.step"
proc 4000 ppid=82 cmd="python fit.py" wchan=futex_wait_queue
on 0 4000 vram=20
)"},
    {"stuck-killed-and-runs", R"(
title A killed process has used a whole core for seven minutes and has not ended: it gives nothing back any more
window 420
expect R2 warning 4000
gpu 0 power=62
proc 90 name=bash
proc 4000 ppid=90 cmd="python fit.py" state=R cpu=1 kill=1
on 0 4000 vram=5
)"},
    {"blocked-stale-lock", R"(
title Two ranks look for two hours, ten times a second, whether a lock goes away that a killed build left on a file
window 8000
expect R7 warning 4000
expect R7 warning 4001
gpu 0 power=62
gpu 1 power=62
proc 90 name=bash
proc 100 ppid=90 name=torchrun cmd="python /usr/bin/torchrun --nproc-per-node 2 fit.py"
proc 4000 ppid=100 cmd="python fit.py" wchan=hrtimer_nanosleep cpu=0.005 io=0 env="RANK=0 LOCAL_RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500"
proc 4001 ppid=100 cmd="python fit.py" wchan=hrtimer_nanosleep cpu=0.005 io=0 env="RANK=1 LOCAL_RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500"
on 0 4000 vram=0.5
on 1 4001 vram=0.5
)"},
    {"blocked-none-lock-of-build", R"(
title The same while the other rank compiles what the lock is for
window 8000
expect none
gpu 0 power=62
gpu 1 power=62
proc 90 name=bash
proc 4100 ppid=4001 name=cicc cmd=cicc state=R cpu=0.97 io=2e4
proc 100 ppid=90 name=torchrun cmd="python /usr/bin/torchrun --nproc-per-node 2 fit.py"
proc 4000 ppid=100 cmd="python fit.py" wchan=hrtimer_nanosleep cpu=0.005 io=0 env="RANK=0 LOCAL_RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500"
proc 4001 ppid=100 cmd="python fit.py" wchan=do_wait cpu=0 io=0 env="RANK=1 LOCAL_RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500"
on 0 4000 vram=0.5
on 1 4001 vram=0.5
)"},
    {"idle-none-vllm-below-service", R"(
title An engine of vLLM below a program of one's own that listens, which rest over night
window 30000
expect none
gpu 0 power=70
proc 90 name=bash
proc 4000 ppid=90 cmd="python chat_backend.py" listen=8000 wchan=do_epoll_wait
proc 4001 ppid=4000 name=VLLM::EngineCor cmd=VLLM::EngineCore wchan=do_epoll_wait
on 0 4001 vram=70
)"},
    {"idle-none-vllm-script-works", R"(
title An engine of vLLM waits for its script, which marks the answers on the CPU for two hours
window 8000
expect none
gpu 0 power=70
proc 90 name=bash
proc 4000 ppid=90 cmd="python score_answers.py --model qwen" state=R cpu=3
proc 4001 ppid=4000 name=VLLM::EngineCor cmd=VLLM::EngineCore wchan=do_epoll_wait
on 0 4001 vram=70
)"},
    {"idle-none-dynamo", R"(
title A worker of NVIDIA Dynamo, which gets its requests by a queue and listens nowhere, rests over night
window 30000
expect none
gpu 0 power=70
proc 1000 ppid=1 cmd="python3 -m dynamo.vllm --model qwen" wchan=do_epoll_wait
proc 4001 ppid=1000 name=VLLM::EngineCor cmd=VLLM::EngineCore wchan=do_epoll_wait
on 0 4001 vram=70
)"},
    {"idle-none-localai", R"(
title LocalAI serves by a backend of its own name, with a port that the kernel chose; both rest for three hours
window 10800
expect none
gpu 0 power=30
proc 90 name=local-ai cmd="/usr/local/bin/local-ai run" listen=8080
proc 4000 ppid=90 name=llama-cpp-avx51 cmd="/backends/cuda12-llama-cpp/llama-cpp-avx512 --addr 127.0.0.1:40115" listen=40115 wchan=futex_wait_queue
on 0 4000 vram=20
)"},
    {"idle-none-uwsgi", R"(
title An application below uwsgi, which nginx asks by a Unix socket, rests over night
window 30000
expect none
gpu 0 power=62
proc 90 name=uwsgi cmd="uwsgi --ini /srv/demo/uwsgi.ini"
proc 4000 ppid=90 name=uwsgi cmd="uwsgi --ini /srv/demo/uwsgi.ini" wchan=do_epoll_wait
on 0 4000 vram=10
)"},
    {"idle-none-unit-of-queue", R"(
title A system unit with an account of its own waits for messages of a queue over night
window 30000
expect none
gpu 0 power=40
proc 4000 ppid=1 uid=987 session=4000 cmd="/srv/subtitles/bin/python -m subtitles.consume" cgroup=/system.slice/subtitles.service wchan=do_epoll_wait
on 0 4000 vram=10
)"},
    {"idle-none-supervisord", R"(
title The same below supervisord in a container, by a script of a shell
window 30000
expect none
gpu 0 power=40
proc 80 name=containerd-shim uid=0
proc 85 ppid=80 uid=0 inner=1 name=supervisord cmd="/usr/bin/python3 /usr/bin/supervisord -n" cgroup=/system.slice/docker-7d793037a076.scope
proc 90 ppid=85 uid=0 inner=8 name=sh cmd="sh /srv/run.sh" cgroup=/system.slice/docker-7d793037a076.scope
proc 4000 ppid=90 uid=0 inner=9 cmd="python consume.py" wchan=do_epoll_wait cgroup=/system.slice/docker-7d793037a076.scope
on 0 4000 vram=10
)"},
    {"idle-none-debugpy-listens", R"(
title A program that its owner holds by debugpy waits at a breakpoint for two hours
window 8000
expect none
gpu 0 power=62
proc 90 name=bash
proc 4000 ppid=90 cmd="python -m debugpy --listen 5678 fit.py" wchan=futex_wait_queue
proc 4100 ppid=4000 cmd="/usr/bin/python /usr/lib/python3/dist-packages/debugpy/adapter --for-server 41007" listen=5678
on 0 4000 vram=10
)"},
    {"idle-none-celery-computes-itself", R"(
title A model is held by a child of a worker of Celery, which is no task of Airflow, and waits for work over night
window 30000
expect none
gpu 0 power=62
proc 80 name=celery cmd="/srv/app/bin/python /srv/app/bin/celery -A app worker"
proc 4000 ppid=80 cmd="python embed.py" wchan=pipe_read
on 0 4000 vram=20
)"},
    {"idle-none-demo-on-6006", R"(
title A demonstration with the one port that its provider forwards, 6006, rests over night
window 30000
expect none
gpu 0 power=62
proc 90 name=bash
proc 4000 ppid=90 cmd="python app.py" listen=6006 wchan=do_epoll_wait
on 0 4000 vram=20
)"},
    {"stuck-none-killed-gives-back", R"(
title A killed process gives back a terabyte of pinned memory for two minutes: it runs in the kernel
window 120
expect none
gpu 0 power=62
proc 90 name=bash
proc 4000 ppid=90 cmd="python fit_offload.py" state=R cpu=1 kill=1
on 0 4000 vram=5
)"},
    {"idle-none-vllm-beside-web-server", R"(
title A program has vLLM's engine as one child and a web server as the other; it rests over night
window 30000
expect none
gpu 0 power=70
proc 90 name=bash
proc 1000 ppid=90 cmd="python launch.py" wchan=do_wait
proc 3999 ppid=1000 cmd="python -m uvicorn app:app --port 8000" listen=8000 wchan=do_epoll_wait
proc 4001 ppid=1000 name=VLLM::EngineCor cmd=VLLM::EngineCore wchan=do_epoll_wait
on 0 4001 vram=70
)"},
    {"idle-vllm-beside-recorder", R"(
title A script that has asked all its questions still holds vLLM's engine; what listens below it only records
window 8000
expect R8 warning 4001
gpu 0 power=70
proc 90 name=bash
proc 1000 ppid=90 cmd="python label.py" wchan=futex_wait_queue
proc 3999 ppid=1000 name=wandb-core cmd="/srv/env/bin/wandb-core --port-filename p.txt" listen=8123 wchan=futex_wait_queue
proc 4001 ppid=1000 name=VLLM::EngineCor cmd=VLLM::EngineCore wchan=do_epoll_wait
on 0 4001 vram=70
)"},
    {"idle-none-model-beside-web-part", R"(
title A program of one's own keeps the model in one part of itself and listens in another; it rests over night
window 30000
expect none
gpu 0 power=62
proc 90 name=bash
proc 1000 ppid=90 cmd="python app.py" wchan=do_wait
proc 3999 ppid=1000 cmd="python app.py" listen=8000 wchan=do_epoll_wait
proc 4000 ppid=1000 cmd="python app.py" wchan=futex_wait_queue
on 0 4000 vram=20
)"},
    {"idle-task-of-airflow-unit", R"(
title A unit of Airflow's scheduler, with an account of its own, runs the tasks itself: one has slept for eight hours
window 30000
expect R8 warning 4000
gpu 0 power=62
proc 80 ppid=1 uid=987 session=80 name=airflow cmd="/srv/airflow/bin/python /srv/airflow/bin/airflow scheduler" cgroup=/system.slice/airflow-scheduler.service
proc 82 ppid=80 uid=987 session=80 name=airflow cmd="airflow task runner: fit.step" cgroup=/system.slice/airflow-scheduler.service
proc 4000 ppid=82 uid=987 session=80 cmd="python fit.py" wchan=futex_wait_queue cgroup=/system.slice/airflow-scheduler.service
on 0 4000 vram=20
)"},
    {"idle-none-kept-by-pm2", R"(
title A consumer of a queue that pm2 keeps alive rests over night
window 30000
expect none
gpu 0 power=62
proc 80 name="PM2 v5.3.0: God" cmd="PM2 v5.3.0: God Daemon /home/a/.pm2"
proc 4000 ppid=80 cmd="python consume.py" wchan=do_epoll_wait
on 0 4000 vram=10
)"},
    {"idle-none-matlab-other-thread", R"(
title MATLAB without a desktop waits at its prompt for two hours: its first thread is not the one that reads
window 8000
expect none
gpu 0 power=62
proc 90 name=bash
proc 4000 ppid=90 name=MATLAB cmd="/opt/matlab/bin/glnxa64/MATLAB -nodisplay" wchan=futex_wait_queue
on 0 4000 vram=10
)"},
    {"idle-matlab-from-file", R"(
title MATLAB got its commands from a file, has done them, and has been idle for two hours
window 8000
expect R8 warning 4000
gpu 0 power=62
proc 90 name=bash
proc 4000 ppid=90 name=MATLAB cmd="/opt/matlab/bin/glnxa64/MATLAB -nodisplay" batch=1 wchan=futex_wait_queue
on 0 4000 vram=10
)"},
    {"spinning-one-of-pool", R"(
title A sweep in a pool of processes: one worker's kernel has spun for three hours, another one trains models of its own
window 10800
expect R6 warning 4000
gpu 0 power=95
gpu 1 power=300 util=95
proc 90 name=bash
proc 100 ppid=90 cmd="python sweep.py" wchan=futex_wait_queue
proc 4000 ppid=100 cmd="python sweep.py" state=R cpu=1 io=0
proc 4001 ppid=100 cmd="python sweep.py" state=R cpu=1 io=1e6
on 0 4000 vram=20 sm=100 mem=0
on 1 4001 vram=20 sm=95 mem=40
)"},
};

}  // namespace

std::vector<Situation> service_situations() { return {std::begin(kAll), std::end(kAll)}; }

}  // namespace drover::inline v1::health
