// SPDX-License-Identifier: Apache-2.0
#include "drover/health/scenario/situations.h"

namespace drover::inline v1::health {
namespace {

constexpr Situation kAll[] = {
    {"blocked-named-as-server", R"(
title Two ranks are blocked whose script has a server's name in its own
window 900
expect R7 warning 4000
expect R7 warning 4001
gpu 0 power=62
gpu 1 power=62
proc 100 name=torchrun cmd="python /usr/bin/torchrun --nproc-per-node 2 train_grpo_vllm.py"
proc 4000 ppid=100 cmd="python train_grpo_vllm.py" wchan=futex_wait_queue env="RANK=0 LOCAL_RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500"
proc 4001 ppid=100 cmd="python train_grpo_vllm.py" wchan=futex_wait_queue env="RANK=1 LOCAL_RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500"
on 0 4000 vram=30
on 1 4001 vram=30
)"},
    {"blocked-horovod", R"(
title Two ranks of Horovod without MPI are blocked; all of them listen, on ports that the kernel chose
window 900
expect R7 warning 4000
expect R7 warning 4001
gpu 0 power=62
gpu 1 power=62
proc 100 name=horovodrun cmd="python /usr/bin/horovodrun -np 2 python train.py" listen=38211
proc 4000 ppid=100 cmd="python train.py" wchan=futex_wait_queue listen=41235 env="HOROVOD_RANK=0 HOROVOD_SIZE=2 HOROVOD_LOCAL_SIZE=2 HOROVOD_GLOO_RENDEZVOUS_PORT=38211"
proc 4001 ppid=100 cmd="python train.py" wchan=futex_wait_queue listen=41236 env="HOROVOD_RANK=1 HOROVOD_SIZE=2 HOROVOD_LOCAL_SIZE=2 HOROVOD_GLOO_RENDEZVOUS_PORT=38211"
on 0 4000 vram=30
on 1 4001 vram=30
)"},
    {"spinning-spawned", R"(
title Training whose workers multiprocessing started, without ranks, spins; NCCL listens on ports that the kernel chose
window 1200
expect R6 warning 4000
expect R6 warning 4001
gpu 0 power=95 nvlink=0
gpu 1 power=95 nvlink=0
proc 90 name=bash
proc 100 ppid=90 cmd="python tools/train_net.py --num-gpus 2" wchan=do_poll
proc 4000 ppid=100 cmd="python -c from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5) --multiprocessing-fork" state=R cpu=1 listen=41235
proc 4001 ppid=100 cmd="python -c from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5) --multiprocessing-fork" state=R cpu=1 listen=28028
on 0 4000 vram=30 sm=100 mem=0
on 1 4001 vram=30 sm=100 mem=0
)"},
    {"idle-spawned", R"(
title The same asleep for two hours; one of them keeps the usual port of PyTorch's meeting
window 8000
expect R8 warning 4000
expect R8 warning 4001
gpu 0 power=62
gpu 1 power=62
proc 90 name=bash
proc 100 ppid=90 cmd="python tools/train_net.py --num-gpus 2" wchan=do_poll
proc 4000 ppid=100 cmd="python -c from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5) --multiprocessing-fork" wchan=futex_wait_queue listen=29500
proc 4001 ppid=100 cmd="python -c from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5) --multiprocessing-fork" wchan=futex_wait_queue listen=60999
on 0 4000 vram=30
on 1 4001 vram=30
)"},
    {"spinning-peer-reads-network", R"(
title Rank 0 waits for a dead connection, in the function in which a terminal is waited for; its standard input is none
window 1200
expect R6 warning 4001
gpu 0 power=62
gpu 1 power=95 nvlink=0
proc 100 name=torchrun cmd="python /usr/bin/torchrun --nproc-per-node 2 train.py"
proc 4000 ppid=100 cmd="python train.py" wchan=wait_woken env="RANK=0 LOCAL_RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=29500"
proc 4001 ppid=100 cmd="python train.py" state=R cpu=1 env="RANK=1 LOCAL_RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=29500"
on 0 4000 vram=30
on 1 4001 vram=30 sm=100 mem=0
)"},
    {"idle-engine-left", R"(
title The server of an engine of vLLM was killed; the engine and its worker hold the memory for hours
window 9000
expect R8 warning 4000
expect R8 warning 4001
gpu 0 power=62
proc 1 ppid=0 name=systemd uid=0
proc 4000 ppid=1 name=VLLM::EngineCor cmd="VLLM::EngineCore" titled=1 wchan=futex_wait_queue
proc 4001 ppid=4000 name=VLLM::Worker_TP cmd="VLLM::Worker_TP0" titled=1 wchan=futex_wait_queue
on 0 4000 vram=10
on 0 4001 vram=60
)"},
    {"idle-ray-left", R"(
title A worker of Ray has outlived its raylet
window 9000
expect R8 warning 4000
gpu 0 power=62
proc 4000 ppid=1 name=ray::Trainer cmd="ray::Trainer.train" titled=1 wchan=futex_wait_queue
on 0 4000 vram=40
)"},
    {"blocked-none-lightning-named-as-launcher", R"(
title PyTorch Lightning's first rank prepares the data; its script has a launcher's name in its own
window 1500
expect none
gpu 0 power=62
gpu 1 power=62
proc 100 name=bash
proc 4000 ppid=100 cmd="python train_deepspeed.py" state=R cpu=1
proc 4001 ppid=4000 cmd="/usr/bin/python train_deepspeed.py" wchan=futex_wait_queue env="LOCAL_RANK=1 NODE_RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=41000"
on 0 4000 vram=30
on 1 4001 vram=30
)"},
    {"spinning-none-own-server", R"(
title Two workers of a home-made server wait for requests by spinning; only the program that started them listens
window 1200
expect none
gpu 0 power=95 nvlink=0
gpu 1 power=95 nvlink=0
proc 90 name=bash
proc 100 ppid=90 cmd="python app.py" wchan=do_epoll_wait listen=8000
proc 4000 ppid=100 cmd="python -c from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5) --multiprocessing-fork" state=R cpu=1 listen=41235
proc 4001 ppid=100 cmd="python app.py" state=R cpu=1 listen=41236
on 0 4000 vram=30 sm=100 mem=0
on 1 4001 vram=30 sm=100 mem=0
)"},
    {"idle-none-own-grpc-server", R"(
title A home-made server on gRPC's usual port, which the kernel may also choose, waits for requests
window 7200
expect none
gpu 0 power=62
proc 100 name=bash
proc 4000 ppid=100 cmd="python infer.py" listen=50051
on 0 4000 vram=60
)"},
    {"spinning-none-peer-at-prompt", R"(
title Rank 1 waits in a collective until a person at rank 0's terminal has typed
window 1200
expect none
gpu 0 power=62
gpu 1 power=95 nvlink=0
proc 90 name=bash
proc 100 ppid=90 name=torchrun cmd="python /usr/bin/torchrun --nproc-per-node 2 chat.py" tty=1
proc 4000 ppid=100 cmd="python chat.py" wchan=wait_woken tty=1 env="RANK=0 LOCAL_RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=29500"
proc 4001 ppid=100 cmd="python chat.py" state=R cpu=1 tty=1 env="RANK=1 LOCAL_RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=29500"
on 0 4000 vram=30
on 1 4001 vram=30 sm=100 mem=0
)"},
    {"spinning-none-peer-serves", R"(
title Rank 1 waits in a collective until rank 0, a server, gets a request
window 1200
expect none
gpu 0 power=62
gpu 1 power=95 nvlink=0
proc 100 name=torchrun cmd="python /usr/bin/torchrun --nproc-per-node 2 serve_llm.py"
proc 4000 ppid=100 cmd="python serve_llm.py" wchan=do_epoll_wait listen=8000 env="RANK=0 LOCAL_RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=29500"
proc 4001 ppid=100 name=pt_elastic cmd="python engine.py" state=R cpu=1 env="RANK=1 LOCAL_RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=29500"
on 0 4000 vram=30
on 1 4001 vram=30 sm=100 mem=0
)"},
    {"blocked-none-peer-serves", R"(
title The same asleep, started by MPI
window 2400
expect none
gpu 0 power=62
gpu 1 power=62
proc 100 name=mpirun cmd="mpirun -n 2 trtllm-llmapi-launch trtllm-serve /m --tp_size 2"
proc 4000 ppid=100 cmd="python /usr/local/bin/trtllm-serve /m --tp_size 2" wchan=do_epoll_wait listen=8000 env="OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_NAMESPACE=p1"
proc 4001 ppid=100 cmd="python3 -m tensorrt_llm.llmapi.mgmn_worker_node" wchan=futex_wait_queue env="OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_NAMESPACE=p1"
on 0 4000 vram=60
on 1 4001 vram=60
)"},
    {"stuck-rank-in-storage", R"(
title Rank 1 waits in a collective for rank 0, which waits for a file server that does not answer
window 1500
expect R2 warning 4000
gpu 0 power=62
gpu 1 power=95 nvlink=0
proc 100 name=torchrun cmd="python /usr/bin/torchrun --nproc-per-node 2 train.py"
proc 4000 ppid=100 cmd="python train.py" state=D wchan=rpc_wait_bit_killable env="RANK=0 LOCAL_RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=29500"
proc 4001 ppid=100 cmd="python train.py" state=R cpu=1 env="RANK=1 LOCAL_RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=29500"
on 0 4000 vram=30
on 1 4001 vram=30 sm=100 mem=0
)"},
    {"blocked-none-dask", R"(
title Two workers of Dask, which srun started, wait for tasks
window 2400
expect none
gpu 0 power=62
gpu 1 power=62
proc 50 name=slurmd uid=0 cmd="/usr/sbin/slurmd -D"
proc 51 ppid=1 name=slurmstepd uid=0 cmd="slurmstepd: [77.0]"
proc 4000 ppid=51 name=dask cmd="python /opt/bin/dask worker --scheduler-file s.json" wchan=do_epoll_wait listen=41235 env="SLURM_JOB_ID=77 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2"
proc 4001 ppid=51 name=dask cmd="python /opt/bin/dask worker --scheduler-file s.json" wchan=do_epoll_wait listen=41236 env="SLURM_JOB_ID=77 SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2"
on 0 4000 vram=40
on 1 4001 vram=40
)"},
    {"blocked-none-ray-in-step", R"(
title An actor of Ray waits for calls; srun gave a rank to the raylet that started it
window 2400
expect none
gpu 0 power=62
proc 50 name=slurmd uid=0 cmd="/usr/sbin/slurmd -D"
proc 51 ppid=1 name=slurmstepd uid=0 cmd="slurmstepd: [77.0]"
proc 60 ppid=51 name=raylet cmd="/opt/ray/raylet" listen=41234
proc 4000 ppid=60 name=ray::Policy cmd="ray::PolicyActor" wchan=do_epoll_wait listen=41235 env="SLURM_JOB_ID=77 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2"
on 0 4000 vram=40
)"},
    {"idle-none-celery", R"(
title A worker of Celery waits for tasks for hours
window 9000
expect none
gpu 0 power=62
proc 4000 ppid=1 uid=990 name=celery cmd="/opt/app/bin/python /opt/app/bin/celery -A app worker -P solo" cgroup=/system.slice/app-worker.service wchan=do_epoll_wait
on 0 4000 vram=20
)"},
    {"idle-none-engine-of-first-process", R"(
title In a container vLLM is the first process, and its engine's parent
window 9000
container
expect none
gpu 0 power=62
proc 1 ppid=0 name=vllm cmd="python3 /usr/local/bin/vllm serve m" listen=8000 wchan=do_epoll_wait
proc 40 ppid=1 name=VLLM::EngineCor cmd="VLLM::EngineCore" titled=1 wchan=futex_wait_queue
on 0 40 vram=70
)"},
    {"spinning-none-server-with-a-zombie", R"(
title Workers of a server wait for requests by spinning, and their parent has not collected a process that did something else
window 700
expect none
gpu 0 power=64 nvlink=0
proc 100 ppid=1 name=python3 cmd="python3 -m lmdeploy serve api_server m" listen=8000 wchan=do_epoll_wait
proc 4001 ppid=100 name=python3 cmd="python3 -c from multiprocessing.spawn import spawn_main" state=R cpu=1 io=0
proc 4002 ppid=100 name=python3 state=Z
on 0 4001 vram=71 sm=100 mem=0
)"},
    {"spinning-worker-of-dead-worker", R"(
title One of two workers of a vLLM that serves has died, and the other one spins in a collective for ever
window 700
expect R6 warning 4001
gpu 0 power=64 nvlink=0
gpu 1 power=61 nvlink=0
proc 100 ppid=1 name=python3 cmd="python3 -m vllm.entrypoints.openai.api_server --tensor-parallel-size 2" listen=8000 wchan=do_epoll_wait
proc 4000 ppid=100 name=VLLM::EngineCor cmd="VLLM::EngineCore" titled=1 wchan=futex_wait_queue
proc 4001 ppid=4000 name=VLLM::Worker_TP cmd="VLLM::Worker_TP0" titled=1 state=R cpu=1 io=0
proc 4002 ppid=4000 name=VLLM::Worker_TP state=Z
on 0 4001 vram=71 sm=100 mem=0
)"},
    {"orphaned-none-alone-by-hand", R"(
title A process alone in its world, which a person started with nohup, sleeps after logout
window 300
expect none
gpu 0 power=62
proc 4000 ppid=1 cmd="python train.py" session=900 group=900 wchan=hrtimer_nanosleep env="RANK=0 WORLD_SIZE=1 LOCAL_WORLD_SIZE=1 LOCAL_RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500"
on 0 4000 vram=30
)"},
    {"idle-none-virtual-machines", R"(
title Two virtual machines rest, each with its share of a GPU
window 9000
expect none
gpu 0 power=80
proc 72 name=vgpu cmd=vgpu uid=0 wchan=do_poll
proc 73 name=qemu-system-x86 cmd="/usr/bin/qemu-system-x86_64 -name vm1" uid=64055 wchan=do_poll
on 0 72 vram=20
on 0 73 vram=20
)"},
    {"idle-none-prompt", R"(
title Two persons left their interpreters at the prompt for lunch
window 9000
expect none
gpu 0 power=62
proc 90 name=bash
proc 4000 ppid=90 name=ipython cmd="/usr/bin/python /usr/bin/ipython" wchan=do_epoll_wait
proc 4001 ppid=90 cmd="python -i model.py" wchan=wait_woken
on 0 4000 vram=20
on 0 4001 vram=20
)"},
    {"idle-none-debugpy", R"(
title An editor's debugger holds a program at a breakpoint for two hours
window 9000
expect none
gpu 0 power=62
proc 80 name=node cmd="/home/u/.vscode-server/node /home/u/.vscode-server/out/server-main.js --port=0" listen=45001
proc 82 ppid=80 cmd="/usr/bin/python /home/u/ext/debugpy/adapter" listen=41235
proc 83 ppid=82 cmd="/usr/bin/python /home/u/ext/debugpy/launcher 41235 -- train.py"
proc 4000 ppid=83 cmd="/usr/bin/python train.py" wchan=futex_wait_queue
on 0 4000 vram=40
)"},
};

}  // namespace

std::vector<Situation> name_situations() { return {std::begin(kAll), std::end(kAll)}; }

}  // namespace drover::inline v1::health
