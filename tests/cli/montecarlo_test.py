#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: montecarlo_test.py PATH_OF_DROVER: what `drover demo montecarlo` says in a pipe."""
import json
import re
import unittest

import driver

SMALL = ["--samples", "12000", "--iterations", "50", "--workers", "2"]


def demo(*args):
    return driver.run("demo", "montecarlo", *args)


class MonteCarlo(unittest.TestCase):
    def test_prints_a_line_every_5000_samples_and_a_summary(self):
        result = demo(*SMALL)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        lines = result.stdout.splitlines()
        for line, done in zip(lines, ("5,000", "10,000", "12,000")):
            self.assertRegex(line, rf"^{done} of 12,000 samples, [\d,.]+/s, [\d:]+ left$")
        summary = "\n".join(lines[3:])
        self.assertRegex(summary, r"^12,000 samples of 50 iterations by 2 workers: [\d.]+ s, [\d,.]+ samples/s\n")
        self.assertRegex(summary, r"\nparallel efficiency [\d.]+ \(time of one sample on one core")
        self.assertRegex(summary, r"\nlargest error [\d.e-]+, at seed \d+, against the closed form \(allowed: 1e-10\)$")
        self.assertNotIn("\x1b", result.stdout)
        self.assertNotIn("\r", result.stdout)

    def test_json_is_one_object_and_progress_goes_to_stderr(self):
        result = demo(*SMALL, "--json", "--chunk", "7")
        self.assertEqual(result.returncode, 0, result.stderr)
        report = json.loads(result.stdout)
        given = {"demo": "montecarlo", "samples": 12000, "iterations": 50, "workers": 2, "chunk": 7, "allowed_error": 1e-10,
                 "ok": True}
        self.assertEqual({key: report[key] for key in given}, given)
        for key in ("wall_s", "samples_per_s", "one_core_sample_s", "efficiency", "largest_error"):
            self.assertGreater(report[key], 0, key)
        self.assertLess(report["largest_error"], 1e-13)
        self.assertIn(report["largest_error_seed"], range(12000))
        self.assertAlmostEqual(report["samples_per_s"] * report["wall_s"], 12000, places=3)
        self.assertIn("one core", report["efficiency_is"])
        self.assertEqual(len(re.findall(r"of 12,000 samples", result.stderr)), 3)

    def test_chunk_is_automatic_by_default(self):
        report = json.loads(demo("--samples", "3", "--iterations", "10", "--json").stdout)
        self.assertEqual((report["chunk"], report["samples"]), ("auto", 3))
        self.assertGreaterEqual(report["workers"], 1)

    def test_one_sample_of_one_iteration_is_a_job_too(self):
        result = demo("--samples", "1", "--iterations", "1")
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_the_hardest_seeds_are_right_at_full_length(self):
        report = json.loads(demo("--samples", "712", "--json").stdout)  # 709 and 711: partial sums of 16,000
        self.assertTrue(report["ok"])
        self.assertLess(report["largest_error"], 1e-12)


if __name__ == "__main__":
    driver.main()
