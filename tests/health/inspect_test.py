#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: inspect_test.py PATH_OF_DROVER FOLDER_OF_THE_FALSE_DRIVER: `drover inspect` from outside."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import driver  # noqa: E402

fake_folder = sys.argv.pop(2)
schema = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "inspect_schema.md").read_text(encoding="utf-8")


def inspect(*args, **kwargs):
    return driver.run("inspect", *args, **kwargs)


def with_driver(situation, folder):
    """The environment in which the unchanged program finds the false driver."""
    path = pathlib.Path(folder) / "situation"
    path.write_text(situation)
    return {**os.environ, "LD_LIBRARY_PATH": fake_folder, "DROVER_FAKE_NVML": str(path)}


def check_type(value, kind, where):
    kinds = {"text": str, "number": (int, float), "integer": int, "boolean": bool, "list": list, "object": dict}
    nullable = kind.endswith("?")
    if value is None:
        assert nullable, f"{where} is null"
        return
    expected = kinds[kind.rstrip("?")]
    assert isinstance(value, expected) and not (expected is not bool and isinstance(value, bool)), f"{where}: {value!r} is no {kind}"


def documented():
    """{object: {member: kind}} from the tables of docs/inspect_schema.md."""
    tables, current = {}, None
    for line in schema.splitlines():
        heading = re.match(r"## `(\w+)`", line)
        if heading:
            current = tables.setdefault(heading[1], {})
        row = re.match(r"\| `(\w+)` \| (\w+\??) \|", line)
        if row and current is not None:
            current[row[1]] = row[2]
    return tables


def validate(value, name, tables):
    table = tables[name]
    for member, kind in table.items():
        assert member in value, f"{name}.{member} is missing"
        check_type(value[member], kind, f"{name}.{member}")
        if value[member] is None and member + "_reason" in value:
            assert value[member + "_reason"], f"{name}.{member} is null without a reason"
    unknown = [m for m in value if m not in table and not m.endswith("_reason")]
    assert not unknown, f"{name} has undocumented members {unknown}"


def validate_report(report):
    tables = documented()
    validate(report, "report", tables)
    validate(report["cpu"], "cpu", tables)
    validate(report["memory"], "memory", tables)
    validate(report["driver"], "driver", tables)
    for finding in report["findings"]:
        validate(finding, "finding", tables)
    for process in report["busiest"]:
        validate(process, "process", tables)
    for gpu in report["gpus"]:
        validate(gpu, "gpu", tables)
        for process in gpu["processes"]:
            validate(process, "gpu_process", tables)
        for instance in gpu["instances"]:
            validate(instance, "instance", tables)
        for xid in gpu["logged_xids"]:
            validate(xid, "logged_xid", tables)


class Inspect(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="inspect-")
        self.addCleanup(shutil.rmtree, self.folder)

    def test_this_machine(self):
        result = inspect()
        self.assertEqual(result.stderr, "")
        self.assertIn(result.returncode, (0, 1))
        self.assertRegex(result.stdout, r"(?m)^CPU +.*cores?")
        self.assertRegex(result.stdout, r"(?m)^Memory +.* available")
        self.assertNotIn("\x1b", result.stdout)
        for line in result.stdout.splitlines():
            self.assertLessEqual(len(line), 80, line)

    def test_json_of_this_machine_is_as_documented(self):
        report = json.loads(inspect("--json").stdout)
        validate_report(report)
        self.assertEqual((report["schema"], report["version"], report["once"]), ("drover.inspect", 1, True))

    def test_every_demo_is_shown_and_is_as_documented(self):
        names = [line.split()[0] for line in inspect("--demo", "list").stdout.splitlines() if not line.startswith(" ")]
        self.assertGreaterEqual(len(names), 60)
        for name in names:
            with self.subTest(demo=name):
                result = inspect("--demo", name, "--json")
                report = json.loads(result.stdout)
                validate_report(report)
                self.assertEqual(result.returncode, report["exit_code"])
                text = inspect("--demo", name)
                self.assertEqual(text.returncode, report["exit_code"])
                for line in text.stdout.splitlines():
                    self.assertLessEqual(len(line), 80, line)
                for finding in report["findings"]:
                    self.assertIn(finding["verdict"], text.stdout)

    def test_the_lines_of_a_gpu(self):
        text = inspect("--demo", "spinning-odd-rank-out").stdout
        self.assertRegex(inspect("--demo", "orphaned-job-slurm-gone").stdout, r"(?m)^ {11}job slurm 77, rank 0$")
        for rank in range(4):
            self.assertRegex(text, rf"(?m)^ +40\d\d .*\n {{11}}rank {rank}$")
        self.assertRegex(text, r"memory \S+ \S+ of \S+ \S+, cores\s+\S+ %, memory\s+busy \S+ %")
        for demo, words, member in (("remap-failed", "remapping a memory row failed", "remap_failed"),
                                    ("remap-pending", "a memory row waits for its remap", "remap_pending")):
            text = inspect("--demo", demo).stdout
            self.assertIn(words, " ".join(text[text.index("\nGPU"):text.index("\n\n")].split()))
            self.assertEqual(json.loads(inspect("--demo", demo, "--json").stdout)["gpus"][0][member], 1)
        self.assertNotIn("remap", inspect("--demo", "healthy-node").stdout)

    def test_a_hidden_process_is_not_said_to_be_gone(self):
        text = inspect("--demo", "orphan-none-hidepid").stdout
        self.assertRegex(text, r"(?m)^ +4000 .*\(not in /proc\)$")
        self.assertIn("exists, but /proc does not show it", " ".join(text.split()))

    def check_prometheus(self, text):
        """The rules of the text format: a description and a type before the series of each name, which stand together, none twice."""
        name = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
        label = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*"'
        series = re.compile(rf"({name})(\{{{label}(?:,{label})*\}})? (-?[0-9.e+-]+)")
        described, seen, current = set(), set(), None
        self.assertTrue(text.endswith("\n"))
        for line in text[:-1].split("\n"):
            if line.startswith("# HELP "):
                current = line.split()[2]
                self.assertNotIn(current, described)
                described.add(current)
            elif line.startswith("# TYPE "):
                self.assertEqual(line.split()[2:], [current, "gauge"])
            else:
                match = series.fullmatch(line)
                self.assertTrue(match, line)
                self.assertEqual(match[1], current)
                float(match[3])
                self.assertNotIn(match[1] + (match[2] or ""), seen)
                seen.add(match[1] + (match[2] or ""))
        return seen

    def test_prometheus(self):
        for demo in ("spinning-odd-rank-out", "gpu-lost", "no-gpu", "orphan-data-workers"):
            result = inspect("--demo", demo, "--prometheus")
            seen = self.check_prometheus(result.stdout)
            self.assertIn("drover_inspect_exit_code", seen)
            self.assertEqual(int(re.search(r"(?m)^drover_inspect_exit_code (\d)$", result.stdout)[1]), result.returncode)
        self.assertRegex(inspect("--demo", "gpu-lost", "--prometheus").stdout, r'(?m)^drover_gpu_up\{gpu="1".*\} 0$')
        environment = with_driver('gpu 0 name="a\\b\tc\x1b"\non 0 1 vram=3\n', self.folder)
        self.check_prometheus(inspect("--prometheus", env=environment).stdout)

    def documented_metrics(self, merged):
        """{metric: its labels in order} from the table of docs/inspect_schema.md."""
        table = {}
        for row in re.finditer(r"(?m)^\| `(drover_\w+)` \| ([^|]*) \|", schema):
            labels = re.findall(r"(\(?)`(\w+)`", row[2])
            self.assertNotIn(row[1], table)
            table[row[1]] = [name for mark, name in labels if merged or not mark]
        return table

    def printed_metrics(self, text):
        found = {}
        for name, labels in re.findall(r"(?m)^(drover_\w+)(\{.*\})? \S+$", text):
            labels = re.findall(r'[{,](\w+)="(?:[^"\\]|\\.)*"', labels)
            self.assertEqual(found.setdefault(name, labels), labels)
        return found

    def test_metrics_are_those_of_the_documentation(self):
        report = json.loads(inspect("--demo", "spinning-odd-rank-out", "--json").stdout)
        report["cpu"]["throttled"] = 0.5  # a situation has no cgroup
        path = pathlib.Path(self.folder) / "report.json"
        path.write_text(json.dumps(report))
        printed = self.printed_metrics(inspect("merge", str(path), "--prometheus").stdout)
        self.assertEqual(printed, self.documented_metrics(merged=True))
        documented = self.documented_metrics(merged=False)
        for args in (["--demo", "spinning-odd-rank-out"], ["--demo", "gpu-lost"], []):
            for name, labels in self.printed_metrics(inspect(*args, "--prometheus").stdout).items():
                self.assertNotEqual(name, "drover_node_up")
                self.assertEqual(labels, documented[name])

    def test_exit_codes_and_check(self):
        for demo, code, word in (("healthy-node", 0, "OK"), ("idle-job", 1, "WARNING"), ("gpu-lost", 2, "CRITICAL"), ("unknown-mig", 3, "UNKNOWN")):
            result = inspect("--demo", demo, "--check")
            self.assertEqual(result.returncode, code)
            self.assertRegex(result.stdout, rf"\A{word}: .+\n\Z")
            self.assertLessEqual(len(result.stdout), 301)

    def test_thresholds(self):
        self.assertEqual(inspect("--demo", "idle-job", "--set", "r8.warn=5h").returncode, 0)
        self.assertIn("r8.warn=5h", inspect("--limits", "--set", "r8.warn=5h").stdout)
        result = inspect("--set", "r8.warm=5h")
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn("r8.warn", result.stderr)

    def test_mistakes_are_refused(self):
        for args in (["--window", "abc"], ["--window", "-5s"], ["--window", "1y"], ["--deadline", "0s"], ["--demo", "nosuch"],
                     ["--json", "--check"], ["--once", "--window", "5s"], ["--interval", "1ms"]):
            with self.subTest(args=args):
                result = inspect(*args)
                self.assertEqual((result.returncode, result.stdout), (2, ""))
                self.assertRegex(result.stderr, r"(?m)^drover: .+\nTry 'drover inspect --help'\.\n\Z")

    def test_a_window_is_watched(self):
        begin = time.monotonic()
        report = json.loads(inspect("--window", "0.6s", "--interval", "0.2s", "--json").stdout)
        self.assertGreaterEqual(time.monotonic() - begin, 0.6)
        self.assertEqual((report["once"], report["samples"]), (False, 4))

    def test_ages_count_the_time_of_suspension(self):
        """A time namespace has a boot clock that is ahead of the monotonic one, as after a suspension."""
        ahead = ["unshare", "--user", "--map-root-user", "--time", "--boottime", "1000000", "--fork"]
        if shutil.which("unshare") is None or subprocess.run([*ahead, "true"], capture_output=True, timeout=60).returncode != 0:
            self.skipTest("no time namespaces here")
        environment = with_driver("gpu 0\non 0 1 vram=3\n", self.folder)
        before = time.clock_gettime(time.CLOCK_BOOTTIME)
        result = subprocess.run([*ahead, driver.program, "inspect", "--json", "--window", "0.4s"], env=environment, capture_output=True,
                                text=True, timeout=60)
        process = json.loads(result.stdout)["gpus"][0]["processes"][0]
        age = process["age_s"] + process["start_ticks"] / 100 - 1000000
        self.assertAlmostEqual(age, before, delta=60)

    def test_history_that_cannot_be_written(self):
        result = inspect("--history", "/nonexistent/folder/h", "--check")
        self.assertEqual(result.returncode, 3)
        self.assertRegex(result.stdout, r"\AUNKNOWN: ")

    def test_history_is_private_and_kept(self):
        path = pathlib.Path(self.folder) / "history"
        for _ in range(2):
            self.assertIn(inspect("--history", str(path)).returncode, (0, 1))
        self.assertEqual(path.stat().st_mode & 0o777, 0o600)
        self.assertTrue(path.read_text().startswith("drover-health 1 "))

    def test_a_run_that_is_killed_anywhere_leaves_a_whole_history(self):
        path = pathlib.Path(self.folder) / "history"
        for point in range(200):
            result = inspect("--history", str(path), env={**os.environ, "DROVER_FAULT": f"parent:{point}"})
            if path.exists():
                self.assertTrue(path.read_text().endswith("end\n"), point)
            self.assertLessEqual(set(os.listdir(self.folder)), {"history", "history.new"})
            if result.returncode >= 0:
                break
        else:
            self.fail("every run was killed")
        if point == 0:
            self.skipTest("built without fault points")
        self.assertEqual(os.listdir(self.folder), ["history"])

    def test_the_unchanged_program_asks_the_driver(self):
        environment = with_driver("gpu 0 name=\"NVIDIA Test\" power=100\non 0 1 vram=3\n", self.folder)
        report = json.loads(inspect("--json", env=environment).stdout)
        validate_report(report)
        self.assertEqual(report["driver"]["state"], "ok")
        self.assertEqual(report["gpus"][0]["name"], "NVIDIA Test")
        self.assertEqual(report["gpus"][0]["processes"][0]["pid"], 1)
        self.assertEqual(report["gpus"][0]["processes"][0]["memory_bytes"], 3 << 30)

    def test_a_hanging_driver_is_reported_in_time_and_holds_no_pipe(self):
        environment = with_driver("gpu 0\ngpu 1 stuck=nvmlDeviceGetPowerUsage\n", self.folder)
        begin = time.monotonic()
        result = inspect("--deadline", "1s", "--json", env=environment)  # run() waits for the end of the pipes
        self.assertLess(time.monotonic() - begin, 1 + 0.2 + 0.5)
        self.assertEqual(result.returncode, 2)
        report = json.loads(result.stdout)
        self.assertIn("nvmlDeviceGetPowerUsage", report["gpus"][1]["problem"])
        self.assertEqual(report["gpus"][0]["problem"], None)

    def test_warnings_name_the_failure(self):
        for code, text in ((9, "modprobe"), (18, "different versions"), (17, "cgroup"), (4, "permission")):
            environment = with_driver(f"gpu 0\nhost init={code}\n", self.folder)
            root = pathlib.Path(self.folder) / "root"
            device = root / "sys/bus/pci/devices/0000:01:00.0"
            device.mkdir(parents=True, exist_ok=True)
            (device / "vendor").write_text("0x10de\n")
            (device / "class").write_text("0x030200\n")
            result = inspect("--root", str(root), env=environment)
            self.assertIn(text, " ".join(result.stdout.split()), code)
            self.assertEqual(result.returncode, 3)

    def test_what_processes_call_themselves_cannot_reach_the_terminal(self):
        evil = "evil\x1b]0;owned\x07\x1b[2J\r\n\u202e"
        process = subprocess.Popen(["/bin/sh", "-c", "while :; do :; done", evil])
        try:
            environment = with_driver(f"gpu 0 name=\"{evil[:10]}\"\non 0 {process.pid} vram=3 sm=50\n", self.folder)
            for args in ([], ["--check"], ["--json"]):
                result = inspect(*args, env=environment)
                self.assertNotRegex(result.stdout, "[\x00-\x09\x0b-\x1f\x7f\u202e]")
            self.assertIn("evil", inspect(env=environment).stdout)
        finally:
            process.kill()
            process.wait()

    def test_colour_on_a_terminal_only_and_not_against_the_users_wish(self):
        for environment, coloured in (({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)):
            with driver.Session(80, "inspect", "--demo", "idle-job", environment=environment) as session:
                session.finish()
                self.assertEqual(b"\x1b[" in session.output, coloured, environment)

    def test_narrow_and_wide_terminals(self):
        for columns in (40, 80, 200):
            with driver.Session(columns, "inspect", "--demo", "spinning-odd-rank-out", environment={"NO_COLOR": "1"}) as session:
                session.finish()
                session.screen()  # raises when a line is too long

    def test_output_that_cannot_be_written_is_an_error(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            result = subprocess.run([driver.program, "inspect", "--demo", "idle-job"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(result.returncode, 3)
        self.assertIn("No space left", result.stderr)

    def test_help(self):
        result = inspect("--help")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        for option in ("--window", "--history", "--set", "--json", "--check", "--demo", "--deadline"):
            self.assertIn(option, result.stdout)


if __name__ == "__main__":
    driver.main()
