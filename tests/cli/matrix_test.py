#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: matrix_test.py PATH_OF_DROVER: what `drover demo matrix` says, and what it leaves."""
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import time
import unittest
import uuid

import driver

SMALL = ["--rows", "1001", "--cols", "700", "--processes", "3"]


def demo(*args):
    return driver.run("demo", "matrix", *args)


def reporter(program, number):
    """The pid of one of the processes that the program has spawned, in their order; None before it is there."""
    children = []
    for task in pathlib.Path(f"/proc/{program.pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            children += [(int(pid), entry(pid)) for pid in task.read_text().split()]
    children = [child for child in children if child[1]]
    spawned = [pid for pid, function in children if function != children[0][1]]  # a worker is the first
    return spawned[number] if len(spawned) > number else None


def entry(pid):
    """Which function of the program a process was started for, from its environment; None for the guardian."""
    with contextlib.suppress(OSError):
        found = re.search(rb"DROVER_CHILD=(\d+)", pathlib.Path(f"/proc/{pid}/environ").read_bytes())
        return found and found[1]


@contextlib.contextmanager
def stopped(mark):
    """The pids of the program and its children, none of which runs."""
    pids = set()
    try:
        while not (now := set(driver.marked_processes(mark))) <= pids:
            for pid in now - pids:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGSTOP)
            pids |= now
        yield pids
    finally:
        for pid in pids:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGCONT)


def pss_mib(pid):
    with contextlib.suppress(OSError):
        found = re.search(r"^Pss:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
        return int(found[1]) / 1024 if found else 0
    return 0


class Matrix(unittest.TestCase):
    def setUp(self):
        self.before = sorted(os.listdir("/dev/shm"))

    def tearDown(self):
        self.assertEqual(sorted(os.listdir("/dev/shm")), self.before)

    def test_tells_the_mean_of_each_process_and_leaves_nothing(self):
        result = demo(*SMALL)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertRegex(result.stdout, r"^1,001 x 700 float64, 0.00561 GB, as /dev/shm/drover-demo-\d+\n")
        self.assertIn("process 0: rows 0 to 333, mean ", result.stdout)
        self.assertIn("process 2: rows 667 to 1,001, mean ", result.stdout)
        self.assertTrue(all(len(line) <= 80 for line in result.stdout.splitlines()), result.stdout)

    def test_json_is_one_object(self):
        result = demo(*SMALL, "--json", "--name", "drover-cli-test")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        report = json.loads(result.stdout)
        self.assertEqual((report["path"], report["ok"], len(report["means"])), ("/dev/shm/drover-cli-test", True, 3))
        self.assertTrue(all(abs(mean) < 0.02 for mean in report["means"]))  # ten sigmas
        self.assertGreater(report["pss_mib"], 5)
        again = json.loads(demo(*SMALL, "--json").stdout)
        self.assertEqual(report["means"], again["means"])

    def test_memory_is_that_of_one_matrix(self):
        size = ["--rows", "4000", "--cols", "4000", "--processes", "4"]  # 122 MiB
        report = json.loads(demo(*size, "--json").stdout)
        matrix = 4000 * 4000 * 8 / 2**20
        self.assertGreater(report["pss_mib"], matrix)
        self.assertLess(report["pss_mib"], 2 * matrix, "somebody has a copy")

    def test_memory_is_never_higher_than_it_says(self):
        """Looks at all processes, which stand still meanwhile, again and again until the program ends."""
        mark = "DROVER_CLI_TEST=" + uuid.uuid4().hex
        key, value = mark.split("=")
        command = [driver.program, "demo", "matrix", "--rows", "4000", "--cols", "4000", "--json"]
        seen = []
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                              env={**os.environ, key: value}) as program:
            while program.poll() is None:
                with stopped(mark) as pids:
                    seen.append(sum(pss_mib(pid) for pid in pids))
                time.sleep(0.02)
            report = json.loads(program.stdout.read())
        self.assertTrue(report["ok"])
        self.assertGreater(len(seen), 5)
        self.assertGreater(max(seen), 4000 * 4000 * 8 / 2**20, "it was seen with all of its matrix")
        self.assertLess(max(seen), 1.05 * report["pss_mib"] + 4, seen)

    def test_a_process_that_is_killed_is_an_error(self):
        mark = "DROVER_CLI_TEST=" + uuid.uuid4().hex
        for victim in (0, 2):
            command = [driver.program, "demo", "matrix", "--rows", "2000", "--cols", "2000", "--processes", "4"]
            key, value = mark.split("=")
            with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True, env={**os.environ, key: value}) as program:
                pid = driver.wait_for(lambda: reporter(program, victim))
                os.kill(pid, signal.SIGKILL)
                out, err = program.communicate(timeout=driver.LIMIT)
                self.assertEqual((program.returncode, out), (1, ""), err)
                self.assertRegex(err, r"^drover: process \d \(pid %d\) was killed by SIGKILL" % pid)
            self.assertEqual(driver.wait_for(lambda: not driver.marked_processes(mark)), True)

    def test_bad_input_is_an_error_with_a_reason(self):
        for args, code, text in (
            (["--rows", "0"], 2, "whole number"),
            (["--rows", "2", "--processes", "3"], 2, "more processes than rows"),
            (["--name", "a/b", "--rows", "10"], 1, "a/b"),
            (["--rows", "10000000", "--cols", "10000000"], 1, "memory"),
        ):
            result = demo(*args)
            self.assertEqual((result.returncode, result.stdout), (code, ""), args)
            self.assertIn(text, result.stderr)

    def test_a_name_that_is_taken_is_left_alone(self):
        path = "/dev/shm/drover-cli-test-taken"
        with open(path, "w") as file:
            file.write("mine")
        try:
            result = demo(*SMALL, "--name", os.path.basename(path))
            self.assertEqual(result.returncode, 1)
            self.assertIn("taken", result.stderr)
            self.assertEqual(pathlib.Path(path).read_text(), "mine")
        finally:
            os.unlink(path)


if __name__ == "__main__":
    driver.main()
