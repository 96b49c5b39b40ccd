#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: mpirun_test.py PATH_OF_DROVER: `drover inspect` as the ranks of a real mpirun (Open MPI), and the merge of their reports."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import driver  # noqa: E402

RANKS = 4


def mpirun(*args, folder):
    """Alone on this machine: no network, and no ssh to anywhere."""
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_plm": "isolated",
                   "OMPI_MCA_btl": "self,vader", "TMPDIR": folder}
    return subprocess.run(["mpirun", "--oversubscribe", "-n", str(RANKS), *args], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=driver.LIMIT, env=environment, check=False)


class Mpirun(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="mpirun-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def check_merge(self, files):
        self.assertEqual(len(files), RANKS)
        reports = [json.loads(file.read_text()) for file in files]
        self.assertEqual(sorted(report["rank"] for report in reports), list(range(RANKS)))
        self.assertEqual({report["world_size"] for report in reports}, {RANKS})
        result = driver.run("inspect", "merge", *map(str, files), "--json")
        merged = json.loads(result.stdout)
        self.assertEqual([(node["name"], node["problem"]) for node in merged["nodes"]], [(reports[0]["node"], None)])
        self.assertRegex(merged["nodes"][0]["note"], rf"\A{RANKS} ranks of one launch looked at this node; taken is the report of rank \d\Z")
        self.assertEqual((result.returncode, result.stderr), (merged["nodes"][0]["exit_code"], ""))
        text = driver.run("inspect", "merge", *map(str, files)).stdout
        self.assertIn(f"note: {reports[0]['node']}: {RANKS} ranks of one launch", " ".join(text.split()))
        for line in text.splitlines():
            self.assertLessEqual(len(line), 80, line)

    def test_a_file_for_each_rank(self):
        result = mpirun(driver.program, "inspect", "--json", "--output", str(self.folder / "report-%t.json"), folder=str(self.folder))
        self.assertEqual(result.stdout, "", result.stderr)
        self.check_merge(sorted(self.folder.glob("report-*.json")))

    def test_files_that_mpirun_writes(self):
        result = mpirun("--output-filename", str(self.folder / "out"), driver.program, "inspect", "--json", folder=str(self.folder))
        self.check_merge(sorted(self.folder.glob("out/*/rank.*/stdout")))
        self.assertTrue(result.stdout)


if __name__ == "__main__":
    driver.main()
