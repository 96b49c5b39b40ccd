#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: terminal_test.py PATH_OF_DROVER: `drover demo montecarlo` in a pseudo-terminal."""
import os
import pathlib
import re
import signal
import termios
import unittest

import driver

DEMO = ["demo", "montecarlo", "--workers", "2"]
ENDLESS = [*DEMO, "--samples", "10000000", "--iterations", "100000"]


def frames(output):
    return [frame.strip() for frame in re.split(rb"[\r\n]", output) if frame.strip()]


class Bar(unittest.TestCase):
    def test_fits_and_is_gone_at_the_end(self):
        for columns in (80, 40, 12, 3):
            with self.subTest(columns=columns), driver.Session(columns, *DEMO, "--samples", "400") as session:
                wide = 400  # the summary is text and may wrap; only the bar may not
                self.assertEqual(session.finish(), 0)
                bar, summary = session.output.decode().split("400 samples of", 1)
                self.assertEqual(driver.replay(bar, columns), [""])
                self.assertRegex(driver.replay("400 samples of" + summary, wide)[0], r"by 2 workers: [\d.]+ s")
                self.assertGreater(len(frames(bar.encode())), 1)
                self.assertEqual(session.wait_until_alone(), [])

    def test_shows_share_time_left_rate_and_counts_at_80_columns(self):
        with driver.Session(80, *DEMO, "--samples", "400") as session:
            session.finish()
            self.assertRegex(session.output, rb"\[=+> *\] \d+ %  \d:\d\d left  [\d,.]+/s  \d+/400 *\r")

    def test_is_drawn_at_most_ten_times_a_second(self):
        with driver.Session(80, *DEMO, "--samples", "200000", "--iterations", "100") as session:
            session.finish()
            seconds = float(re.search(rb"workers: ([\d.]+) s", session.output).group(1))
            self.assertLessEqual(session.output.count(b" left "), seconds * 10 + 2)

    def test_with_json_is_on_stderr_only(self):
        with driver.Session(80, *DEMO, "--samples", "400", "--json") as session:
            self.assertEqual(session.finish(), 0)
            self.assertEqual(len(session.output.split(b"{")), 2)
            self.assertIn(b"left", session.output.split(b"{")[0])


class Interrupt(unittest.TestCase):
    def check_left_clean(self, session, echo=""):
        said = [line for line in session.screen() if line.replace(echo, "")]
        self.assertEqual(said, [])  # the bar is gone, and nobody said a word
        self.assertEqual(termios.tcgetattr(session.slave), session.settings)
        self.assertNotIn(b"\x1b", session.output)
        self.assertEqual(session.wait_until_alone(), [])

    def test_control_c_ends_it_by_the_signal_and_leaves_nothing(self):
        for columns in (80, 40):
            with self.subTest(columns=columns), driver.Session(columns, *ENDLESS) as session:
                session.read_until(lambda output: len(frames(output)) >= 3)
                session.type(b"\x03")
                self.assertEqual(session.finish(), -signal.SIGINT)
                self.check_left_clean(session, echo="^C")

    def test_a_shell_sees_130_and_143(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            command = ["sh", "-c", '"$@"; echo "code $?"', "sh", driver.program, *ENDLESS]
            with self.subTest(signal=number):
                self.assertEqual(self.code_seen_by_shell(command, number), code)

    def code_seen_by_shell(self, command, number):
        """Starts the shell's command, sends the signal to its child, and gives the code that the shell printed."""
        with driver.subprocess.Popen(command, stdout=driver.subprocess.PIPE, stderr=driver.subprocess.DEVNULL, text=True,
                                     start_new_session=True) as shell:
            children = pathlib.Path(f"/proc/{shell.pid}/task/{shell.pid}/children")
            child = int(driver.wait_for(lambda: children.read_text().split())[0])
            driver.wait_for(lambda: self.catches(child, number))
            os.kill(child, number)
            return int(re.search(r"code (\d+)", shell.stdout.read()).group(1))

    @staticmethod
    def catches(pid, number):
        """Whether the process is drover with its handler for the signal in place."""
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        return int(re.search(r"SigCgt:\s*(\w+)", status).group(1), 16) >> (number - 1) & 1 and "Name:\tdrover" in status

    def test_sigterm_does_the_same(self):
        with driver.Session(80, *ENDLESS) as session:
            session.read_until(lambda output: len(frames(output)) >= 3)
            session.process.send_signal(signal.SIGTERM)
            self.assertEqual(session.finish(), -signal.SIGTERM)
            self.check_left_clean(session)

    def test_at_any_moment_it_ends_by_the_signal(self):
        for milliseconds in range(0, 400, 40):
            with self.subTest(milliseconds=milliseconds), driver.Session(80, *ENDLESS) as session:
                driver.time.sleep(milliseconds / 1000)  # the moment itself is what is varied here
                session.type(b"\x03")
                self.assertEqual(session.finish(), -signal.SIGINT)
                self.assertEqual(session.wait_until_alone(), [])


if __name__ == "__main__":
    driver.main()
