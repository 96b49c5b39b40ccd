#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: status_test.py PATH_OF_DROVER PATH_OF_NAMES_SCENARIO: what `drover status` lists and what --clean removes."""
import contextlib
import json
import mmap
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import time
import unittest

import driver

scenario = str(pathlib.Path(sys.argv.pop(2)).resolve())
folder = pathlib.Path("/dev/shm")


class Owner:
    """A program that has the block `name` until it is killed. Use it by `with`."""

    def __init__(self, name, what="hold", before=()):
        self.name = name
        self.process = subprocess.Popen([*before, scenario, what, name], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        assert self.process.stdout.readline() == b"made\n"
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def guardian(self):
        """Its number. The name is there before it has become the guardian's program."""
        return driver.wait_for(lambda: next(self.find_guardians(), None))

    def find_guardians(self):
        for status in pathlib.Path("/proc").glob("[0-9]*/status"):
            with contextlib.suppress(OSError):
                command = (status.parent / "cmdline").read_bytes()
                if command.startswith(b"drover-guardian") and f"PPid:\t{self.pid}\n" in status.read_text():
                    yield int(status.parent.name)

    def kill_both(self):
        guardian = self.guardian()
        os.kill(guardian, signal.SIGKILL)
        self.process.kill()
        self.process.wait()


def checksum(facts):
    """As docs/segment_format.md has it."""
    value = 14_695_981_039_346_656_037
    for (word,) in struct.iter_unpack("<Q", facts):
        value = (value ^ word) * 1_099_511_628_211 % 2**64
        value ^= value >> 32
    return value


def tell(*args):
    """The JSON object that `drover status --json` prints."""
    result = driver.run("status", "--json", *args)
    assert (result.returncode, result.stderr) == (0, ""), result
    return json.loads(result.stdout)


def mine(items):
    """Those of this test: other programs of Drover's may run beside it."""
    return [item for item in items if item.get("name", "").startswith("cli-")]


class Status(unittest.TestCase):
    def setUp(self):
        self.name = f"cli-{os.getpid()}-{self._testMethodName}"
        self.before = set(folder.iterdir())

    def tearDown(self):
        driver.wait_for(lambda: set(folder.iterdir()) <= self.before)

    def test_lists_a_block_with_its_owner(self):
        with Owner(self.name) as owner:
            [block] = mine(tell()["blocks"])
            self.assertEqual(block["name"], self.name)
            self.assertEqual(block["path"], f"/dev/shm/{self.name}")
            self.assertEqual((block["label"], block["size_bytes"]), ("names_scenario", 8000))
            self.assertTrue(0 <= block["age_seconds"] < 60)
            self.assertEqual(block["owner"]["pid"], owner.pid)
            self.assertEqual((block["owner"]["program"], block["owner"]["state"]), ("names_scenario", "alive"))

    def test_lists_programs_and_guardians(self):
        with Owner(self.name) as owner:
            processes = {process["pid"]: process for process in tell()["processes"]}
            self.assertEqual(processes[owner.pid]["role"], "program")
            guardian = processes[owner.guardian()]
            self.assertEqual((guardian["role"], guardian["parent"]), ("guardian", owner.pid))
            self.assertLess(guardian["memory_bytes"], 200_000)

    def test_lists_pools_and_workers(self):
        demo = subprocess.Popen([driver.program, "demo", "montecarlo", "--workers", "2", "--samples", "1000000000"],
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            def workers():
                return [p for p in tell()["processes"] if p["parent"] == demo.pid and p["role"] == "worker"]
            driver.wait_for(lambda: len(workers()) == 2)
            told = tell()
            [program] = [p for p in told["processes"] if p["pid"] == demo.pid]
            self.assertEqual((program["role"], program["pools"]), ("program", 1))
            [pool] = [pool for pool in told["pools"] if pool["owner"]["pid"] == demo.pid]
            self.assertEqual((pool["owner"]["program"], pool["workers"], pool["workers_running"]), ("drover", 2, 2))
            self.assertTrue(0 <= pool["age_seconds"] < 60 and pool["memory_bytes"] > 0, pool)
            driver.wait_for(lambda: [p["tasks_done"] for p in tell()["pools"] if p["owner"]["pid"] == demo.pid][0] > 0)
            lines = driver.run("status").stdout.splitlines()
            self.assertTrue(any(line.startswith(f"{demo.pid} (drover) ") for line in lines), lines)
            self.assertEqual({worker["pools"] for worker in workers()}, {0})
        finally:
            demo.kill()
            demo.wait()

    def test_lists_who_uses_the_block_of_another(self):
        with Owner(self.name) as owner, (folder / self.name).open("r+b") as file, mmap.mmap(file.fileno(), 4096):
            processes = {process["pid"]: process for process in tell()["processes"]}
            self.assertEqual(processes[os.getpid()]["attached"], [self.name])
            self.assertEqual(processes[os.getpid()]["role"], "program")
            self.assertEqual((processes[owner.pid]["attached"], processes[owner.pid]["blocks"]), ([], 1))
            [line] = [line for line in driver.run("status").stdout.splitlines() if line.split()[0:1] == [str(os.getpid())]]
            self.assertTrue(line.endswith("  uses 1 block"), line)
        self.assertNotIn(os.getpid(), [process["pid"] for process in tell()["processes"]])

    def test_a_pool_of_another_version_is_listed_without_its_facts(self):
        junk = os.memfd_create("drover-pool")
        try:
            for content in b"", struct.pack("<IIQI", 0x52565244, 99, 0, 4), os.urandom(300_000):
                os.pwrite(junk, content, 0)
                [pool] = [pool for pool in tell()["pools"] if pool["owner"]["pid"] == os.getpid()]
                self.assertEqual([pool[key] for key in ("workers", "age_seconds", "tasks_done")], [None] * 3)
                self.assertEqual(driver.run("status").returncode, 0)
        finally:
            os.close(junk)

    def test_text_keeps_to_80_columns(self):
        long_name = self.name + "x" * (200 - len(self.name))
        with Owner(self.name), Owner(long_name):
            lines = driver.run("status").stdout.splitlines()
            self.assertTrue(all(len(line) <= 80 for line in lines), lines)
            self.assertEqual(sum("cli-" in line for line in lines), 2)
            with driver.Session(80, "status") as session:
                self.assertEqual(session.finish(), 0)
                session.screen()

    def test_cleans_what_is_left_and_nothing_else(self):
        foreign = folder / f"{self.name}-foreign"
        copy = folder / f"{self.name}-copy"
        link = folder / f"{self.name}-link"
        hidden = folder / f".drover-{self.name}"
        broken = folder / f"{self.name}-broken"
        foreign.write_bytes(b"something else" * 1000)
        hidden.write_bytes(b"looks like ours")
        link.symlink_to("/etc/passwd")
        others = [foreign, copy, link, hidden, broken]
        try:
            with Owner(self.name) as owner, Owner(self.name + "-alive") as alive:
                shutil.copy(folder / self.name, copy)
                shutil.copy(folder / self.name, broken)
                os.truncate(broken, 5000)
                self.assertEqual(mine(tell("--clean")["removed"]), [])
                owner.kill_both()
                [orphan] = [b for b in mine(tell()["blocks"]) if b["owner"]["state"] == "gone"]
                self.assertEqual(orphan["name"], self.name)
                text = driver.run("status").stdout
                self.assertIn("`drover status --clean` removes", text)
                [removed] = mine(tell("--clean")["removed"])
                self.assertEqual(removed["name"], self.name)
                self.assertFalse((folder / self.name).exists())
                self.assertTrue((folder / alive.name).exists())
                self.assertEqual(mine(tell("--clean")["removed"]), [])
                for path in others:
                    self.assertTrue(path.exists(), path)
                self.assertEqual(foreign.read_bytes(), b"something else" * 1000)
        finally:
            for path in others:
                path.unlink(missing_ok=True)

    def test_a_number_that_another_process_has_now_is_no_owner(self):
        path = folder / self.name
        with Owner(self.name) as owner:
            owner.kill_both()
            data = bytearray(path.read_bytes())
            facts = len(data) - 4096  # docs/segment_format.md
            struct.pack_into("<i", data, facts + 32, os.getpid())  # alive, but started at another time
            struct.pack_into("<Q", data, facts + 504, checksum(data[facts:facts + 504]))
            path.write_bytes(data)
            [block] = mine(tell()["blocks"])
            self.assertEqual((block["owner"]["pid"], block["owner"]["state"]), (os.getpid(), "gone"))
            [removed] = mine(tell("--clean")["removed"])
            self.assertEqual(removed["name"], self.name)
            self.assertFalse(path.exists())

    def keeps(self, path, *before):
        """That `drover status --clean`, run by `before`, leaves the block of an owner that lives; the owner's state."""
        def told(*args):
            result = subprocess.run([*before, driver.program, "status", "--json", *args], capture_output=True, text=True,
                                    stdin=subprocess.DEVNULL, timeout=60)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            return json.loads(result.stdout)
        [block] = mine(told()["blocks"])
        self.assertEqual(mine(told("--clean")["removed"]), [])
        self.assertTrue(path.exists())
        return block["owner"]["state"]

    def test_an_owner_whose_first_thread_has_ended_lives(self):
        with Owner(self.name, "hold-without-main") as owner:
            stat = pathlib.Path(f"/proc/{owner.pid}/stat")
            driver.wait_for(lambda: ") Z " in stat.read_text())
            self.assertEqual(self.keeps(folder / self.name), "alive")

    def test_an_owner_in_another_time_namespace_is_not_judged(self):
        into = ["unshare", "-T", "--boottime", "100000", "--fork"]
        if subprocess.run([*into, "true"], capture_output=True).returncode != 0:
            self.skipTest("there are no time namespaces for this user")
        with Owner(self.name):
            self.assertEqual(self.keeps(folder / self.name, *into), "unknown")

    def test_an_owner_that_proc_does_not_show_is_not_judged(self):
        user = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        into = ["unshare", "-m", "sh", "-c", 'mount -t proc -o hidepid=2 proc /proc && exec "$0" "$@"']
        if subprocess.run([*into, *user, driver.program, "--version"], capture_output=True).returncode != 0:
            self.skipTest("this user cannot mount a /proc of its own, or nobody cannot run the program")
        with Owner(self.name, "hold-hidden", user):
            self.assertEqual(self.keeps(folder / self.name, *into, *user), "unknown")

    def test_says_in_text_what_it_removed(self):
        with Owner(self.name) as owner:
            owner.kill_both()
            shown = self.name[:21] + "..." if len(self.name) > 24 else self.name
            line = f"removed {shown} (8.0 kB): process {owner.pid}, which made it, is gone\n"
            result = driver.run("status", "--clean")
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertIn(line, result.stdout)

    def test_is_fast_with_many_files(self):
        begin = time.monotonic()
        self.assertEqual(driver.run("status").returncode, 0)
        self.assertLess(time.monotonic() - begin, 5)

    def test_terminal_escapes_are_not_printed(self):
        path = folder / f"{self.name}-\x1b[31mred"
        with Owner(self.name) as owner:
            shutil.copy(folder / self.name, path)
            try:
                self.assertNotIn("\x1b", driver.run("status").stdout)
                self.assertNotIn("\x1b", driver.run("status", "--json").stdout)
            finally:
                path.unlink()
            self.assertTrue((folder / owner.name).exists())


if __name__ == "__main__":
    driver.main()
