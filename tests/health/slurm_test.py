#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: slurm_test.py PATH_OF_DROVER FOLDER_OF_THE_FALSE_DRIVER: `drover inspect` in the steps of a real Slurm of two nodes."""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import driver  # noqa: E402
import slurm  # noqa: E402

FAKE = sys.argv.pop(2)

# What holds the GPU: a session of its own, as a data loader's daemon may have, which outlives the step where Slurm tracks process groups.
HOLDER = """
import os, signal, sys
if os.fork() == 0:
    os.setsid()
    with open(sys.argv[1] + ".new", "w") as file:
        file.write(str(os.getpid()))
    os.rename(sys.argv[1] + ".new", sys.argv[1])
    null = os.open("/dev/null", os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)
    signal.pause()
    os._exit(0)
if sys.argv[2] == "stay":
    signal.pause()
"""

SAYS_ITS_PID = """
import os, signal, sys
with open(sys.argv[1] + ".new", "w") as file:
    file.write(str(os.getpid()))
os.rename(sys.argv[1] + ".new", sys.argv[1])
signal.pause()
"""


def end(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def finish(launcher):
    """It ends when what it started has ended. A salloc that gets SIGTERM at that moment uses a whole core for ever (22.05)."""
    try:
        launcher.communicate(timeout=driver.LIMIT)
    except subprocess.TimeoutExpired:
        launcher.kill()
        launcher.communicate()


class Slurm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not slurm.is_here():
            raise unittest.SkipTest("no Slurm here")
        cls.cluster = slurm.Cluster()
        cls.addClassCleanup(cls.cluster.stop)
        try:
            cls.cluster.start()
        except AssertionError as error:
            raise AssertionError(cls.cluster.logs()) from error

    def setUp(self):
        self.folder = pathlib.Path(self.cluster.folder) / self.id().rsplit(".", 1)[1]
        self.folder.mkdir()

    def step(self, *args):
        result = self.cluster.run("srun", *args)
        self.assertEqual(result.stderr, "")
        return result

    def merge(self, count):
        files = sorted(self.folder.glob("report-*.json"))
        self.assertEqual(len(files), count)
        merged = json.loads(driver.run("inspect", "merge", *map(str, files), "--json").stdout)
        return [json.loads(file.read_text()) for file in files], merged

    def test_each_task_reports_and_the_merge_knows_the_nodes(self):
        self.step("-N2", "-n4", driver.program, "inspect", "--json", "--output", str(self.folder / "report-%t.json"))
        reports, merged = self.merge(4)
        self.assertEqual(sorted((report["rank"], report["node"]) for report in reports), [(0, "n1"), (1, "n1"), (2, "n2"), (3, "n2")])
        self.assertEqual({report["world_size"] for report in reports}, {4})
        self.assertEqual([(node["name"], node["problem"]) for node in merged["nodes"]], [("n1", None), ("n2", None)])
        for node in merged["nodes"]:
            self.assertIn("2 ranks of one launch looked at this node", node["note"])

    def test_one_task_on_each_node(self):
        self.step("-N2", "--ntasks-per-node=1", driver.program, "inspect", "--json", "--output", str(self.folder / "report-%t.json"))
        reports, merged = self.merge(2)
        self.assertEqual([(report["node"], report["rank"]) for report in reports], [("n1", 0), ("n2", 1)])
        self.assertEqual([(node["name"], node["note"]) for node in merged["nodes"]], [("n1", None), ("n2", None)])

    def test_all_reports_through_the_output_of_srun(self):
        lines = self.step("-N2", "-n2", "--label", driver.program, "inspect", "--json", "--output", str(self.folder / "report-%t.json"))
        self.assertEqual(lines.stdout, "")
        self.merge(2)
        check = self.step("-N2", "-n2", driver.program, "inspect", "--check")
        self.assertEqual(len(check.stdout.splitlines()), 2)

    def hold_gpu(self, then):
        """A process of a step of one task, holding memory of the false GPU; the step's srun, and the process."""
        place = self.folder / "pid"
        step = self.cluster.start_step("-N1", "-n1", sys.executable, "-c", HOLDER, str(place), then)
        self.addCleanup(step.communicate)
        self.addCleanup(step.kill)
        pid = int(driver.wait_for(lambda: place.exists() and place.read_text()))
        self.addCleanup(os.kill, pid, signal.SIGKILL)
        return step, pid

    def findings_about(self, pid):
        situation = self.folder / "situation"
        situation.write_text(f"gpu 0 power=62\non 0 {pid} vram=30\n")
        environment = {**os.environ, "LD_LIBRARY_PATH": FAKE, "DROVER_FAKE_NVML": str(situation)}
        result = driver.run("inspect", "--json", "--window", "2s", "--interval", "0.2s", "--set", "grace=0s", "--set", "r5.hold=1s",
                            env=environment)
        report = json.loads(result.stdout)
        held = report["gpus"][0]["processes"][0]
        self.assertEqual(held["pid"], pid)
        return held, [finding for finding in report["findings"] if finding["rule"] == "R5"]

    def test_what_a_running_step_holds_is_no_orphan(self):
        _, pid = self.hold_gpu("stay")
        held, findings = self.findings_about(pid)
        self.assertTrue(held["job"].startswith("slurm "), held["job"])
        self.assertEqual(findings, [])

    def test_what_an_ended_step_left_is_an_orphan(self):
        step, pid = self.hold_gpu("leave")
        self.assertEqual(step.wait(driver.LIMIT), 0)
        driver.wait_for(lambda: self.cluster.run("squeue", "-h").stdout == "")
        _, findings = self.findings_about(pid)
        self.assertEqual([finding["pid"] for finding in findings], [pid], findings)
        self.assertRegex(findings[0]["because"][0], r"\ASlurm has no step of job \d+ here any more\Z")

    def start_salloc(self, *command):
        """What salloc starts by itself, or in a step of the job; the process that says its number in a file."""
        place = self.folder / "pid"
        job = subprocess.Popen(["salloc", "-N1", "-n1", *command, sys.executable, "-c", SAYS_ITS_PID, str(place)], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.cluster.environment)
        self.addCleanup(finish, job)
        pid = int(driver.wait_for(lambda: place.exists() and place.read_text()))
        self.addCleanup(end, pid)
        return pid

    def test_what_salloc_started_without_a_step_is_no_orphan(self):
        pid = self.start_salloc(sys.executable, "-c", "import subprocess, sys; subprocess.run(sys.argv[1:])")
        held, findings = self.findings_about(pid)
        self.assertTrue(held["job"].startswith("slurm "), held["job"])
        self.assertEqual(findings, [])

    def test_the_second_part_of_a_heterogeneous_job_is_no_orphan(self):
        pid = self.start_salloc(":", "-N1", "-n1", "srun", "--het-group=1")
        environment = pathlib.Path(f"/proc/{pid}/environ").read_text().split("\0")
        numbers = dict(entry.split("=", 1) for entry in environment if entry.startswith("SLURM_JOB_ID"))
        self.assertNotEqual(numbers["SLURM_JOB_ID"], numbers["SLURM_JOB_ID_HET_GROUP_1"])
        _, findings = self.findings_about(pid)
        self.assertEqual(findings, [])


if __name__ == "__main__":
    driver.main()
