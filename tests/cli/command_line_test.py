#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: command_line_test.py PATH_OF_DROVER: help, version, and what a wrong command line is told."""
import os
import pathlib
import re
import shutil
import tempfile
import unittest

import driver


class CommandLine(unittest.TestCase):
    def refused(self, args, *texts):
        """Exit code 2, nothing on stdout, a first line on stderr with all of `texts`, and where to find help."""
        result = driver.run(*args)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(result.stdout, "")
        lines = result.stderr.splitlines()
        self.assertTrue(lines[0].startswith("drover: "), result.stderr)
        for text in texts:
            self.assertIn(text, lines[0])
        self.assertRegex(lines[1], r"^Try 'drover.* --help'\.$")
        self.assertEqual(len(lines), 2)
        return lines

    def test_help_goes_to_stdout_everywhere(self):
        for command in ([], ["demo"], ["demo", "montecarlo"], ["demo", "matrix"], ["bench"], ["status"], ["inspect"]):
            for flag in ("--help", "-h"):
                result = driver.run(*command, flag)
                self.assertEqual((result.returncode, result.stderr), (0, ""), command)
                self.assertIn(" ".join(["Usage: drover", *command]), result.stdout)

    def test_version(self):
        result = driver.run("--version")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertRegex(result.stdout, r"^drover \d+\.\d+\.\d+\n$")

    def test_without_a_command_it_prints_help_and_fails(self):
        for command, listed in (([], "demo"), (["demo"], "montecarlo")):
            result = driver.run(*command)
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertIn(" ".join(["Usage: drover", *command]), result.stderr)
            self.assertIn(listed, result.stderr)

    def test_unknown_commands_and_options_are_named(self):
        self.refused(["frobnicate"], "frobnicate")
        self.refused(["--frobnicate"], "--frobnicate")
        lines = self.refused(["demo", "frobnicate"], "frobnicate")
        self.assertEqual(lines[1], "Try 'drover demo --help'.")
        lines = self.refused(["demo", "montecarlo", "--frobnicate"], "--frobnicate")
        self.assertEqual(lines[1], "Try 'drover demo montecarlo --help'.")
        self.refused(["demo", "montecarlo", "superfluous"], "superfluous")

    def test_what_was_typed_is_never_printed_raw(self):
        lines = self.refused(["demo", "montecarlo", "--x\x1b[31m\x07"])
        self.assertTrue(lines[0].isprintable(), lines[0])

    def test_numbers_that_make_no_sense(self):
        for option in ("--samples", "--iterations", "--workers", "--chunk"):
            for number in ("0", "-1", "abc", "", "1.5", "1e3", "0x10", "010", " 7", "99999999999999999999999"):
                with self.subTest(option=option, number=number):
                    self.refused(["demo", "montecarlo", option + "=" + number], option)
            self.refused(["demo", "montecarlo", option], option)
        self.refused(["demo", "montecarlo", "--workers", "5000"], "--workers", "1,024")
        self.refused(["demo", "montecarlo", "--samples", "1000000000", "--iterations", "1000000000"], "2^53")
        self.refused(["demo", "montecarlo", "--workers", "auto"], "--workers")
        self.refused(["demo", "montecarlo", "--samples", "1", "--samples", "2"], "--samples")

    def test_output_that_cannot_be_written_is_an_error(self):
        for command in (["--help"], ["demo", "montecarlo", "--samples=1", "--iterations=1", "--workers=1", "--json"]):
            with open("/dev/full", "w", encoding="ascii") as full:
                result = driver.subprocess.run([driver.program, *command], stdout=full, stderr=driver.subprocess.PIPE,
                                               text=True, timeout=driver.LIMIT)
            self.assertEqual(result.returncode, 1)
            self.assertRegex(result.stderr, r"(?m)^drover: .*No space left on device\n\Z")


class Bench(unittest.TestCase):
    """In a copied tree, so that the areas are known: PREFIX/bin/drover and PREFIX/libexec/drover/bench-*."""

    def setUp(self):
        self.prefix = pathlib.Path(tempfile.mkdtemp(prefix="cli-bench-"))
        self.addCleanup(shutil.rmtree, self.prefix)
        self.programs = self.prefix / "libexec" / "drover"
        self.programs.mkdir(parents=True)
        (self.prefix / "bin").mkdir()
        shutil.copy(driver.program, self.prefix / "bin" / "drover")

    def add_area(self, name, script):
        path = self.programs / ("bench-" + name)
        path.write_text("#!/bin/sh\n" + script)
        path.chmod(0o755)

    def bench(self, *args):
        return driver.subprocess.run([self.prefix / "bin" / "drover", "bench", *args], capture_output=True, text=True,
                                     timeout=driver.LIMIT)

    def test_runs_the_program_with_its_options_and_passes_on_its_exit_code(self):
        self.add_area("pool", 'printf "%s|" "$@"; exit 7\n')
        result = self.bench("pool", "--long", "--only", "a b", "--json")
        self.assertEqual((result.returncode, result.stdout, result.stderr), (7, "--json|--only|a b|--long|", ""))
        self.assertEqual(self.bench("pool").stdout, "|")

    def test_an_unknown_area_is_told_which_there_are(self):
        self.add_area("pool", "")
        self.add_area("shm", "")
        (self.programs / "bench-notes").write_text("not a program")
        for args in (["nosuch"], ["../pool"], ["notes"], []):
            result = self.bench(*args)
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertIn("areas: pool, shm (looked for bench-AREA in " + str(self.programs.resolve()), result.stderr)
        self.assertIn("areas: pool, shm", self.bench("--help").stdout)

    def test_without_any_program_it_says_where_it_looked(self):
        shutil.rmtree(self.programs)
        result = self.bench("pool")
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr, "no benchmark program.*" + re.escape(str(self.prefix.resolve())))

    def test_a_program_that_cannot_be_started_is_an_error(self):
        self.add_area("pool", "")
        (self.programs / "bench-pool").write_text("#!/no/such/interpreter\n")
        result = self.bench("pool")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"^drover: .*bench-pool.*\n$")


if __name__ == "__main__":
    driver.main()
