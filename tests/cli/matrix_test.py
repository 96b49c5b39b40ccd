#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: matrix_test.py PATH_OF_DROVER: what `drover demo matrix` says, and what it leaves."""
import json
import os
import pathlib
import unittest

import driver

SMALL = ["--rows", "1001", "--cols", "700", "--processes", "3"]


def demo(*args):
    return driver.run("demo", "matrix", *args)


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
