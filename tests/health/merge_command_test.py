#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: merge_command_test.py PATH_OF_DROVER: `drover inspect merge` from outside, and its metrics read by Prometheus' own parser."""
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import driver  # noqa: E402
import merge_reports  # noqa: E402

DEBIAN = "/usr/lib/python3/dist-packages"  # of python3-prometheus-client, which another Python does not look into
if importlib.util.find_spec("prometheus_client") is None and os.path.isdir(f"{DEBIAN}/prometheus_client"):
    sys.path.append(DEBIAN)

schema = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "inspect_schema.md").read_text(encoding="utf-8")
EVIL = '</script>"\\\n\t\x1b[2J{}=,#\u2028'


def documented(name):
    """{member: kind} of one table of docs/inspect_schema.md."""
    table = schema.split(f"## `{name}`\n", 1)[1].split("\n## ", 1)[0]
    return dict(re.findall(r"(?m)^\| `(\w+)` \| (\w+\??) \|", table))


def sleeps(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in "SZ"


class Merge(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="merge-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.reports = merge_reports.cluster(driver.program)

    def file(self, name, *reports):
        path = self.folder / name
        path.write_text("\n".join(report if isinstance(report, str) else json.dumps(report) for report in reports))
        return str(path)

    def merge(self, *args, **kwargs):
        return driver.run("inspect", "merge", *args, **kwargs)

    def check_as_documented(self, value, name):
        kinds = {"text": str, "number": (int, float), "integer": int, "boolean": bool, "list": list, "object": dict}
        table = documented(name)
        self.assertEqual(list(value), list(table), name)
        for member, kind in table.items():
            if value[member] is None:
                self.assertTrue(kind.endswith("?"), f"{name}.{member}")
            else:
                self.assertIsInstance(value[member], kinds[kind.rstrip("?")], f"{name}.{member}")

    def test_one_file_or_many(self):
        single = [self.file(f"{i}.json", report) for i, report in enumerate(self.reports)]
        outputs = [self.merge(*single), self.merge(self.file("all.json", *self.reports))]
        outputs.append(subprocess.run([driver.program, "inspect", "merge", "-"], input="".join(json.dumps(r, indent=2) for r in self.reports),
                                      capture_output=True, text=True, timeout=60))
        for result in outputs:
            self.assertEqual((result.returncode, result.stderr), (1, ""))
            self.assertEqual(result.stdout, outputs[0].stdout)
            for line in result.stdout.splitlines():
                self.assertLessEqual(len(line), 80, line)
        text = " ".join(outputs[0].stdout.split())
        self.assertIn("ODD RANK OUT", text)
        self.assertIn("rank 13 (n4, GPU 1, pid 4001) is at 0 %, 62 W: BLOCKED JOB", text)
        self.assertIn("31 others spin at 100 %, 97 W, on 8 nodes", text)
        self.assertIn("look at n4 first", text)
        self.assertRegex(outputs[0].stdout, r"(?m)^maria +32 +8 +32 ")

    def test_long_names_differ_and_fit(self):
        long = "gpu-partition-of-the-cluster"
        for names in ([f"{long}-{i:04d}.site.example.org" for i in range(8)], [f"n{i}-{long}" for i in range(8)],
                      [f"{long}-{i}-{long}" for i in range(8)], [f"n{i}.{long}.example.org" for i in range(8)], [f"\u00e9{i}" * 30 for i in range(8)],
                      [f"10.17.{i}.200" for i in range(8)]):
            for name, report in zip(names, self.reports):
                report["node"] = name
                report["gpus"][0].update(cores_share=1000, memory_used_bytes=1 << 60)
                report["gpus"][1].update(cores_share=1000)
            lines = self.merge(self.file("all.json", *self.reports)).stdout.splitlines()
            for line in lines:
                self.assertLessEqual(len(line), 80, line)
            rows = [line.split()[0] for line in lines if len(line.split()) > 2 and line.split()[1] == "4"]
            self.assertEqual((len(rows), len(set(rows))), (8, 8), lines)
            if "example.org" in names[0] and names[0].startswith("n"):
                self.assertIn("n0", rows[0])
            if names[0].startswith("10."):
                self.assertEqual(rows, names)

    def test_standard_input_that_does_not_block(self):
        read, write = os.pipe()
        os.set_blocking(read, False)
        process = subprocess.Popen([driver.program, "inspect", "merge", "-", "--check"], stdin=read, stdout=subprocess.PIPE, text=True)
        os.close(read)
        with os.fdopen(write, "w") as out:
            for report in self.reports:
                out.write(json.dumps(report, indent=2))
                out.flush()
                driver.wait_for(lambda: sleeps(process.pid))
        self.assertIn("ODD RANK OUT", process.communicate(timeout=60)[0])
        self.assertEqual(process.returncode, 1)

    def test_json_is_as_documented(self):
        result = self.merge(self.file("all.json", *self.reports, "no report"), "--json")
        merged = json.loads(result.stdout)
        self.check_as_documented(merged, "merged")
        self.assertEqual((merged["schema"], merged["version"], merged["exit_code"]), ("drover.inspect.merged", 1, 3))
        for name, values in (("node", merged["nodes"]), ("user", merged["users"]), ("job", merged["jobs"]), ("rank", merged["jobs"][0]["ranks"]),
                             ("finding", merged["findings"])):
            self.assertTrue(values)
            for value in values:
                self.check_as_documented(value, name)
        self.check_as_documented(next(n for n in merged["nodes"] if n["name"] == "n4")["report"]["gpus"][0]["series"], "series")
        self.assertEqual(merged["findings"][0]["rule"], "ranks")
        self.assertEqual({finding["node"] for finding in merged["findings"]}, {f"n{i}" for i in range(1, 9)})
        nodes = {node["name"]: node for node in merged["nodes"]}
        self.assertEqual(nodes["n4"]["report"], self.reports[3])

    def test_bad_input_is_a_row_and_the_rest_is_merged(self):
        older = {**self.reports[1], "version": 99}
        broken = json.dumps(self.reports[2])[:1000]
        path = self.file("all.json", self.reports[0], older, broken, self.reports[3], self.reports[3])
        result = self.merge(path, "/nonexistent.json", str(self.folder), "--json")
        self.assertEqual(result.returncode, 3)
        merged = json.loads(result.stdout)
        problems = "\n".join(f"{node['name']}: {node['problem']}" for node in merged["nodes"] if node["problem"])
        self.assertIn(f"{path}, line 2: version is 99", problems)
        self.assertIn(f"{path}, line 3: it ends in the middle", problems)
        self.assertIn(f"left out is what is older: {path}, line", next(node["note"] for node in merged["nodes"] if node["name"] == "n4"))
        self.assertIn("/nonexistent.json: there is no such file", problems)
        self.assertEqual(problems.count("\n"), 3)
        self.assertEqual(sum(1 for node in merged["nodes"] if node["report"]), 2)
        self.assertRegex(self.merge(path, "--check").stdout, r"\AUNKNOWN: 2 of 4 nodes have no report")

    def test_exit_code_is_the_worst(self):
        def one(name, node):
            return {**merge_reports.demo(driver.program, name), "node": node}
        for names, code in ((["healthy-node"], 0), (["healthy-node", "idle-job"], 1), (["idle-job", "gpu-lost"], 2), (["unknown-mig"], 3)):
            path = self.file("x.json", *[one(name, f"n{i}") for i, name in enumerate(names)])
            for output in ("--check", "--json", "--prometheus"):
                self.assertEqual(self.merge(path, output).returncode, code, names)

    def test_too_far_apart_is_said(self):
        self.reports[5]["unix_time"] += 7200
        text = " ".join(self.merge(self.file("a", *self.reports)).stdout.split())
        self.assertNotIn("ODD RANK", text)
        self.assertIn("not compared: its nodes were looked at 2 h 00 min apart", text)

    def test_mistakes(self):
        path = self.file("a", *self.reports)
        for args in ([], [path, "--json", "--check"], [path, "--window", "5s"]):
            result = self.merge(*args)
            self.assertEqual((result.returncode, result.stdout), (2, ""), args)
        result = driver.run("inspect", "--json", "merge", path)
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn("--json must stand behind merge", result.stderr)

    def test_what_others_wrote_cannot_reach_the_terminal(self):
        for report in self.reports:
            report["node"] += EVIL
            for finding in report["findings"]:
                finding.update(verdict=EVIL, user=EVIL, command=EVIL, job=EVIL, because=[EVIL], do=[EVIL], limits=[EVIL], not_because=[EVIL])
            for gpu in report["gpus"]:
                gpu["processes"][0].update(user=EVIL, job=EVIL)
        path = self.file("a", *self.reports, EVIL)
        for args in ([], ["--check"], ["--json"], ["--prometheus"]):
            self.assertNotRegex(self.merge(path, *args).stdout, "[\x00-\x08\x0b-\x1f\x7f\u2028]")

    def parsed(self, text):
        from prometheus_client.parser import text_string_to_metric_families
        families = list(text_string_to_metric_families(text))
        names = [family.name for family in families]
        self.assertEqual(len(names), len(set(names)), "a name comes twice")
        samples = {}
        for family in families:
            self.assertEqual(family.type, "gauge")
            self.assertTrue(family.documentation)
            for sample in family.samples:
                key = (sample.name, tuple(sorted(sample.labels.items())))
                self.assertNotIn(key, samples)
                samples[key] = sample.value
        return samples

    @unittest.skipUnless(importlib.util.find_spec("prometheus_client"), "no prometheus_client")
    def test_metrics_by_prometheus_own_parser(self):
        samples = self.parsed(driver.run("inspect", "--prometheus").stdout)
        self.assertIn(("drover_inspect_exit_code", ()), samples)
        for demo in ("spinning-odd-rank-out", "gpu-lost", "no-gpu", "unknown-mig", "orphan-data-workers"):
            samples = self.parsed(driver.run("inspect", "--demo", demo, "--prometheus").stdout)
            self.assertGreater(len(samples), 10)
        for report in self.reports[:3]:
            report["node"] += EVIL
            report["findings"][0].update(user=EVIL, verdict=EVIL, job=EVIL)
            report["gpus"][0].update(name=EVIL, uuid=EVIL)
            report["gpus"][1].update(index=0, uuid=EVIL, name=EVIL)  # twice the same labels
        samples = self.parsed(self.merge(self.file("a", *self.reports, EVIL), "--prometheus").stdout)
        nodes = {dict(labels)["node"]: value for (name, labels), value in samples.items() if name == "drover_node_up"}
        self.assertEqual(sorted(nodes.values())[0], 0)
        self.assertEqual(sum(nodes.values()), 8)
        busy = {dict(labels)["node"]: value for (name, labels), value in samples.items() if name == "drover_gpu_busy_ratio"}
        self.assertEqual(len(busy), 8)
        ranks = [dict(labels) for (name, labels) in samples if name == "drover_finding" and dict(labels)["rule"] == "ranks"]
        self.assertEqual([(labels["gpu"], labels["pid"]) for labels in ranks], [("1", "4001")])


if __name__ == "__main__":
    driver.main()
