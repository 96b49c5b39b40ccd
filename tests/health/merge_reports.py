# SPDX-License-Identifier: Apache-2.0
"""Reports of a made-up cluster for tests: the played situations, spread over nodes."""
import copy
import json
import subprocess


def demo(program, name):
    """The JSON of a situation."""
    return json.loads(subprocess.run([program, "inspect", "--demo", name, "--json"], stdout=subprocess.PIPE, check=False, timeout=60).stdout)


def cluster(program, nodes=8, gpus=4, odd=(4, 1)):
    """One job of nodes * gpus ranks that all spin, but that on GPU `odd[1]` of node `odd[0]`, which is blocked."""
    played = demo(program, "spinning-odd-rank-out")
    spinning = next(f for f in played["findings"] if f["rule"] == "R6")
    blocked = next(f for f in played["findings"] if f["rule"] == "R7")
    reports = []
    for node in range(1, nodes + 1):
        report = copy.deepcopy(played)
        report.update(node=f"n{node}", host=f"n{node}", unix_time=1_790_000_000 + node, demo=None, gpus=[], findings=[])
        for index in range(gpus):
            is_odd = (node, index) == odd
            gpu = copy.deepcopy(played["gpus"][3 if is_odd else index % 3])
            gpu.update(index=index, uuid=f"GPU-{node}-{index}")
            rank = (node - 1) * gpus + index
            gpu["processes"][0].update(pid=4000 + index, rank=rank, world_size=nodes * gpus, job="slurm 4711",
                                       job_group="slurm 4711.0", user="maria")
            report["gpus"].append(gpu)
            finding = copy.deepcopy(blocked if is_odd else spinning)
            finding.update(gpu=index, gpu_uuid=gpu["uuid"], pid=4000 + index, user="maria", job=f"slurm 4711, rank {rank}")
            report["findings"].append(finding)
        reports.append(report)
    return reports
