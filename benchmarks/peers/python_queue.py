#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Python's multiprocessing.Queue as a peer: one producer process, this one consumes. Speaks the protocol of
peer_server.h: a request a line, "ok NUMBER" or "error REASON" a line.

    items COUNT BYTES    nanoseconds an item, from the first to the last
"""
import multiprocessing
import os
import sys
import time

EVERYTHING = os.sched_getaffinity(0)


def pin(index):
    allowed = sorted(EVERYTHING)
    os.sched_setaffinity(0, {allowed[min(index, len(allowed) - 1)]})


def produce(queue, count, size):
    pin(1)
    item = bytes(size)
    for _ in range(count):
        queue.put(item)


def items(count, size):
    context = multiprocessing.get_context("fork")  # there are no threads here yet, nor later
    queue = context.Queue(1024)
    producer = context.Process(target=produce, args=(queue, count + 1, size))
    producer.start()
    total = len(queue.get())
    begin = time.monotonic_ns()
    for _ in range(count):
        total += len(queue.get())
    elapsed = time.monotonic_ns() - begin
    producer.join()
    if total != (count + 1) * size:
        raise RuntimeError("the queue lost an item")
    return elapsed / count


def main():
    for line in sys.stdin:
        try:
            name, count, size = line.split()
            if name != "items":
                raise ValueError("there is no " + name)
            pin(0)
            print("ok", items(int(count), int(size)), flush=True)
        except Exception as error:  # whatever it is, the benchmark shall show it
            print("error", error, flush=True)
        os.sched_setaffinity(0, EVERYTHING)


if __name__ == "__main__":
    main()
