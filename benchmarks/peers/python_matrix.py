#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The job of `drover demo matrix` as one writes it in Python: a matrix of standard normal numbers in SharedMemory, filled in
parallel, processes that attach by name and report the mean of their rows, and a check against the parent's own sum. Prints one
JSON object.
"""
import argparse
import json
import multiprocessing
import os
import time
from multiprocessing import shared_memory

import numpy


def attach(name, rows, cols):
    block = shared_memory.SharedMemory(name=name)
    return block, numpy.ndarray((rows, cols), dtype=numpy.float64, buffer=block.buf)


def fill(name, rows, cols, first, last, seed):
    block, matrix = attach(name, rows, cols)
    numpy.random.Generator(numpy.random.Philox(seed)).standard_normal(out=matrix[first:last])
    del matrix
    block.close()


def report(name, rows, cols, first, last, means, done, release):
    block, matrix = attach(name, rows, cols)
    means.put((first, last, matrix[first:last].mean()))
    done.release()
    release.wait()
    del matrix
    block.close()


def pss_mib(pids):
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            total += sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))
    return total / 1024


def parts(rows, count):
    return [(rows * i // count, rows * (i + 1) // count) for i in range(count)]


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rows", type=int, default=10_000)
    arguments.add_argument("--cols", type=int, default=10_000)
    arguments.add_argument("--processes", type=int, default=4)
    options = arguments.parse_args()
    rows, cols = options.rows, options.cols
    context = multiprocessing.get_context("spawn")
    block = shared_memory.SharedMemory(create=True, size=rows * cols * 8)
    try:
        cores = len(os.sched_getaffinity(0))
        fillers = [context.Process(target=fill, args=(block.name, rows, cols, first, last, seed))
                   for seed, (first, last) in enumerate(parts(rows, cores))]
        for process in fillers:
            process.start()
        for process in fillers:
            process.join()
        means, done, release = context.Queue(), context.Semaphore(0), context.Event()
        reporters = [context.Process(target=report, args=(block.name, rows, cols, first, last, means, done, release))
                     for first, last in parts(rows, options.processes)]
        for process in reporters:
            process.start()
        matrix = numpy.ndarray((rows, cols), dtype=numpy.float64, buffer=block.buf)
        own = [matrix[first:last].mean() for first, last in parts(rows, options.processes)]
        for _ in reporters:
            done.acquire()
        begin = time.monotonic()
        pss = pss_mib([os.getpid()] + [process.pid for process in reporters])
        look = time.monotonic() - begin
        reported = sorted(means.get() for _ in reporters)
        release.set()
        for process in reporters:
            process.join()
        ok = all(abs(mean - mine) < 1e-12 for (_, _, mean), mine in zip(reported, own))
        del matrix
    finally:
        block.close()
        block.unlink()
    print(json.dumps({"ok": bool(ok), "pss_mib": pss, "memory_look_s": look}))
    return 0 if ok else 1


if __name__ == "__main__":
    raise SystemExit(main())
