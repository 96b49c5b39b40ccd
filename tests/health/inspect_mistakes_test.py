#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: inspect_mistakes_test.py PATH_OF_DROVER: what `drover inspect` refuses, and what it says when an output cannot be written."""
import json
import os
import pathlib
import re
import resource
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import driver  # noqa: E402

CRITICAL, WARNING, FINE = "gpu-lost", "idle-job", "healthy-node"
OUTPUTS = ([], ["--json"], ["--check"], ["--prometheus"], ["--html", "-"])


class Refused(unittest.TestCase):
    def refused(self, *args, says):
        result = driver.run("inspect", *args)
        self.assertEqual((result.returncode, result.stdout), (2, ""), args)
        lines = result.stderr.splitlines()
        self.assertEqual(len(lines), 2, result.stderr)
        for text in says:
            self.assertIn(text, lines[0])

    def test_the_deadline_has_an_option_of_its_own(self):
        for args in ([], ["--limits"], ["--demo", WARNING], ["--hosts", "/dev/null"]):
            self.refused("--set", "r1.call=20s", *args, says=["r1.call is the deadline of the driver: give --deadline"])
        self.assertRegex(driver.run("inspect", "--limits", "--deadline", "7s").stdout, r"(?m)^r1\.call=7s ")

    def test_an_interval_longer_than_the_window(self):
        self.refused("--window", "1s", "--interval", "4s", says=["the interval (4.0 s) is longer than the window (1.0 s)"])
        self.refused("--interval", "1h", says=["without a window", "at most 10 s", "--window"])
        self.assertEqual(driver.run("inspect", "--interval", "0.05s", "--window", "0.05s", "--check").stderr, "")

    def test_options_that_would_do_nothing(self):
        for option in ("--json", "--prometheus", "--check", "--once", "--wake", "--watch"):
            self.refused("--limits", option, says=["--limits", option])
        for option in ("--window", "--history", "--root", "--deadline"):
            self.refused("--demo", WARNING, option, "5s", says=["--demo", option])
        self.refused("--demo", WARNING, "--interval", "1s", says=["--demo plays", "--interval"])
        self.refused("--demo", "list", "--json", says=["--demo list"])
        for option in ("--json", "--prometheus", "--check"):
            self.refused("--html", "-", option, says=["--html -"])

    def test_a_folder_is_no_report(self):
        with tempfile.TemporaryDirectory(prefix="inspect-") as folder:
            result = driver.run("inspect", "merge", folder, "--check")
        self.assertEqual(result.returncode, 3)
        self.assertIn(f"it is a folder; name the files in it, as {folder}/*.json", result.stdout)

    def test_the_rank_in_a_name_needs_a_rank(self):
        environment = {name: value for name, value in os.environ.items() if not re.search("RANK|PROCID", name)}
        result = driver.run("inspect", "--output", "x-%t.json", env=environment)
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn("no variable of srun or mpirun", result.stderr)


class Output(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="inspect-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_output_that_cannot_be_written_is_unknown_and_told_once(self):
        report = self.folder / "report.json"
        report.write_text(driver.run("inspect", "--demo", CRITICAL, "--json").stdout)
        commands = [["--demo", demo, *output] for demo in (CRITICAL, WARNING, FINE) for output in OUTPUTS]
        commands += [["merge", str(report), *output] for output in OUTPUTS] + [["--limits"], ["--demo", "list"]]
        for command in commands:
            for place, why in ((">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")):
                with self.subTest(command=command, place=place):
                    result = subprocess.run(["sh", "-c", f'exec "$@" {place}', "sh", driver.program, "inspect", *command],
                                            stderr=subprocess.PIPE, text=True, timeout=driver.LIMIT, check=False)
                    self.assertEqual(result.returncode, 3)
                    self.assertEqual(result.stderr, f"drover: cannot write to standard output: {why}\n")

    def test_a_page_that_cannot_be_written_is_no_ok(self):
        page = str(self.folder / "nosuch" / "page.html")
        for demo, code, line in ((FINE, 3, r"UNKNOWN: .*nosuch/page.html.*"), (WARNING, 3, r"UNKNOWN: .*nosuch/page.html.*"),
                                 (CRITICAL, 2, r"CRITICAL: .*")):
            result = driver.run("inspect", "--demo", demo, "--check", "--html", page)
            self.assertEqual(result.returncode, code)
            self.assertRegex(result.stdout, rf"\A{line}\n\Z")
            self.assertIn("nosuch/page.html", result.stderr)

    def test_output_into_a_file(self):
        path = self.folder / "report"
        for output in OUTPUTS:
            printed = driver.run("inspect", "--demo", WARNING, *output).stdout
            result = driver.run("inspect", "--demo", WARNING, *output, "--output", str(path))
            self.assertEqual((result.returncode, result.stdout, result.stderr), (1, "", ""))
            self.assertEqual(re.sub(r'"?unix_time.*', "", path.read_text()), re.sub(r'"?unix_time.*', "", printed))
        self.assertEqual(path.stat().st_mode & 0o777, 0o600)
        result = driver.run("inspect", "--demo", CRITICAL, "--output", str(self.folder / "nosuch" / "x"))
        self.assertEqual((result.returncode, result.stdout), (3, ""))

    def test_the_rank_in_the_name(self):
        result = driver.run("inspect", "--json", "--output", str(self.folder / "report-%t.json"), env={**os.environ, "OMPI_COMM_WORLD_RANK": "3",
                                                                                                       "OMPI_COMM_WORLD_SIZE": "4"})
        self.assertEqual(result.stdout, "")
        self.assertEqual(os.listdir(self.folder), ["report-3.json"])

    def test_the_rank_of_the_only_task_and_each_mark(self):
        result = driver.run("inspect", "--demo", FINE, "--json", "--output", str(self.folder / "r-%t-%t.json"),
                            env={**os.environ, "SLURM_JOB_ID": "5", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"})
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(os.listdir(self.folder), ["r-0-0.json"])

    def test_a_dash_is_standard_output(self):
        result = driver.run("inspect", "--demo", FINE, "--check", "--output", "-", cwd=str(self.folder))
        self.assertRegex(result.stdout, r"\AOK")
        self.assertEqual(os.listdir(self.folder), [])

    def test_one_file_is_not_two_outputs(self):
        path = str(self.folder / "a")
        result = driver.run("inspect", "--demo", FINE, "--html", path, "--output", path)
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn("the same file", result.stderr)
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_report_is_one_write(self):
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)  # keeps writes apart
        with here:
            with there:
                subprocess.run([driver.program, "inspect", "--demo", WARNING, "--json"], stdout=there, timeout=driver.LIMIT, check=False)
            report = here.recv(1 << 20)
            self.assertGreater(len(report), 4096)
            self.assertTrue(json.loads(report))
            self.assertEqual(here.recv(1 << 20), b"")

    def test_few_descriptors(self):
        for limit in (5, 6, 8, 12, 32, 48):
            result = subprocess.run([driver.program, "inspect", "--check"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                                    timeout=driver.LIMIT, preexec_fn=lambda limit=limit: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))
            self.assertIn(result.returncode, (3,) if limit <= 32 else (0, 1), (limit, result.stderr))
            if result.returncode == 3:
                self.assertRegex(result.stdout, r"\AUNKNOWN: open 32 descriptors .*ulimit -n.*\n\Z")


if __name__ == "__main__":
    driver.main()
