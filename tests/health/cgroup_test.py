#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: cgroup_test.py PATH_OF_DROVER FOLDER_OF_THE_FALSE_DRIVER: `drover inspect` in, and over processes in, real cgroups of its own.
Which there are depends on the machine: a test that needs another one is skipped."""
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import driver  # noqa: E402

FAKE = sys.argv.pop(2)


def folders_of(controller):
    """Of this process's cgroup in the hierarchy (version 1; "": version 2), as mounted here."""
    groups = [line.split(":", 2) for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines()]
    own = [path for _, names, path in groups if controller in names.split(",")]
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        fields, tail = (part.split() for part in line.split(" - "))
        fits = tail[0] == "cgroup2" if controller == "" else tail[0] == "cgroup" and controller in tail[2].split(",")
        if fits and own:
            yield pathlib.Path(fields[4] + own[0])
            yield pathlib.Path(fields[4])


class Cgroups(unittest.TestCase):
    def group(self, controller, file):
        """A new cgroup that has this file."""
        for parent in folders_of(controller):
            group = parent / f"drover-test-{os.getpid()}"
            with contextlib.suppress(OSError):
                group.mkdir()
                if (group / file).exists():
                    self.addCleanup(driver.wait_for, lambda: self.remove(group))
                    return group
                group.rmdir()
        raise unittest.SkipTest(f"no cgroup with {file} may be made here")

    def remove(self, group):
        """When the last process has left it, which takes a moment after its end."""
        with contextlib.suppress(OSError):
            group.rmdir()
            return True
        return False

    def inside(self, group, *args):
        """`drover inspect` as a process of the group."""
        script = 'echo $$ > "$0/cgroup.procs" && exec "$@"'
        result = subprocess.run(["/bin/sh", "-c", script, str(group), driver.program, "inspect", *args, "--json"],
                                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=driver.LIMIT, check=False)
        self.assertEqual(result.stderr, "")
        return json.loads(result.stdout)

    def busy_process(self, group):
        process = subprocess.Popen(["/bin/sh", "-c", 'echo $$ > "$0/cgroup.procs" && while :; do :; done', str(group)])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def check_quota(self, group):
        report = self.inside(group, "--once")
        self.assertEqual(report["cpu"]["quota_cpus"], 0.3)
        self.busy_process(group)
        report = self.inside(group, "--window", "1.5s", "--interval", "0.5s")
        self.assertGreater(report["cpu"]["throttled"], 0.5)
        self.assertGreater(report["cpu"]["cgroup_busy"], 0.5)
        self.assertIn("host", [finding["rule"] for finding in report["findings"]])

    def test_cpu_quota_of_version_1(self):
        group = self.group("cpu", "cpu.cfs_quota_us")
        (group / "cpu.cfs_quota_us").write_text("30000")
        self.check_quota(group)

    def test_cpu_quota_of_version_2(self):
        group = self.group("", "cpu.max")
        (group / "cpu.max").write_text("30000 100000")
        self.check_quota(group)

    def test_memory_limit_of_version_1(self):
        group = self.group("memory", "memory.limit_in_bytes")
        (group / "memory.limit_in_bytes").write_text(str(256 << 20))
        self.assertEqual(self.inside(group)["memory"]["limit_bytes"], 256 << 20)

    def test_memory_limit_of_version_2(self):
        group = self.group("", "memory.max")
        (group / "memory.max").write_text(str(256 << 20))
        self.assertEqual(self.inside(group)["memory"]["limit_bytes"], 256 << 20)

    def test_cpuset_of_version_1(self):
        group = self.group("cpuset", "cpuset.cpus")
        first = sorted(os.sched_getaffinity(0))[0]
        (group / "cpuset.mems").write_text((group.parent / "cpuset.mems").read_text())
        (group / "cpuset.cpus").write_text(str(first))
        self.assertEqual(self.inside(group)["cpu"]["allowed"], 1)

    def paused(self, group, freeze, frozen, statement, before="pass"):
        """A process of the group that was frozen in the statement."""
        script = f"import os, signal, threading, time; {before}; print(flush=True); {statement}"
        process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        process.stdout.readline()
        driver.wait_for(lambda: pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "S")
        (group / "cgroup.procs").write_text(str(process.pid))
        file, stop, go_on = freeze
        self.addCleanup((group / file).write_text, go_on)
        (group / file).write_text(stop)
        driver.wait_for(lambda: frozen in (group / ("cgroup.events" if file == "cgroup.freeze" else file)).read_text().split("\n"))
        return process

    @contextlib.contextmanager
    def driver_that_lists(self, pid):
        with tempfile.TemporaryDirectory(prefix="cgroup-") as folder:
            situation = pathlib.Path(folder) / "situation"
            situation.write_text(f"gpu 0 power=62\non 0 {pid} vram=30\n")
            yield {"LD_LIBRARY_PATH": FAKE, "DROVER_FAKE_NVML": str(situation)}

    def findings_about(self, pid):
        with self.driver_that_lists(pid) as environment:
            result = driver.run("inspect", "--json", "--window", "1.2s", "--interval", "0.2s", "--set", "grace=0s", "--set", "r2.state=1s",
                                "--set", "r2.kill=1s", env={**os.environ, **environment})
        self.assertEqual(result.stderr, "")
        return [finding for finding in json.loads(result.stdout)["findings"] if finding["pid"] == pid]

    def check_paused(self, controller, freeze, frozen):
        for statement in ("signal.pause()", "time.sleep(1000)", "threading.Event().wait()", "os.read(os.pipe()[0], 1)",
                          "signal.sigwait([signal.SIGUSR1])"):
            with self.subTest(statement=statement):
                process = self.paused(self.group(controller, freeze[0]), freeze, frozen, statement)
                found = self.findings_about(process.pid)
                self.assertEqual([(finding["rule"], finding["severity"]) for finding in found], [("R8", "info")], found)
                self.assertIn("it looks like: stopped", found[0]["because"])
            self.doCleanups()

    def test_paused_by_version_1_is_not_stuck(self):
        self.check_paused("freezer", ("freezer.state", "FROZEN", "THAWED"), "FROZEN")

    def test_paused_by_version_2_is_not_stuck(self):
        self.check_paused("", ("cgroup.freeze", "1", "0"), "frozen 1")

    def test_killed_while_paused_is_told_with_the_way_out(self):
        group = self.group("freezer", "freezer.state")
        process = self.paused(group, ("freezer.state", "FROZEN", "THAWED"), "FROZEN", "time.sleep(1000)")
        process.send_signal(signal.SIGKILL)
        findings = self.findings_about(process.pid)
        self.assertEqual([(finding["rule"], finding["verdict"], finding["severity"]) for finding in findings],
                         [("R2", "KILLED WHILE PAUSED", "warning")])
        self.assertIn("SIGKILL has been pending", findings[0]["because"][0])
        (group / "freezer.state").write_text("THAWED")  # as it advises
        self.assertEqual(process.wait(driver.LIMIT), -signal.SIGKILL)

    def test_of_many_threads_is_paused_in_each_look_of_a_watch(self):
        threads = "s = threading.stack_size(65536); f = threading.Event().wait; " \
                  "[threading.Thread(target=f, daemon=True).start() for i in range(600)]"
        group = self.group("freezer", "freezer.state")
        process = self.paused(group, ("freezer.state", "FROZEN", "THAWED"), "FROZEN", "time.sleep(1000)", threads)
        process.send_signal(signal.SIGKILL)
        with self.driver_that_lists(process.pid) as environment:
            with driver.Session(100, "inspect", "--watch", "--interval", "0.2s", "--set", "r2.state=0.1s", "--set", "r2.kill=0.1s",
                                environment=environment) as session:
                session.read_until(lambda output: any(int(n) > 12 for n in re.findall(rb", (\d+) looks", output)))
                session.type(b"q")
                self.assertEqual(session.finish(), 0)
            self.assertIn(b"KILLED WHILE PAUSED", session.output)
            self.assertNotIn(b"STUCK IN KERNEL", session.output)


if __name__ == "__main__":
    driver.main()
